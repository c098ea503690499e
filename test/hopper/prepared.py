"""Compiled kernels in a folder, for a computer that has a GPU and no MLIR.

A folder has meta.json (launches, shapes, types), kernel.ptx, kernel.cubin and data.npz: two sets
of random inputs, and the results that the simulated machine gives for them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from tcir.interp import OutputSpec
from tcir.program.launch import Launch, LaunchSequence
from tcir.program.memory_image import image_spec, to_memory
from tcir.program.workspaces import Workspaces
from tcir.run import run_ptx

Array = np.ndarray[Any, Any]
SETS = 2


@dataclass(frozen=True)
class Prepared:
    """What `tcir.runtime.launch` and `tcir.testing.assert_same_as_gpu` need of a `tcir.Kernel`.

    inputs, wanted: memory images of each set, in the order of the signature.
    """

    name: str
    target: str
    signature: Any
    launches: LaunchSequence
    ptx: str
    cubin: bytes
    inputs: tuple[tuple[Array, ...], ...]
    wanted: tuple[tuple[Array, ...], ...]

    def __call__(self, *buffers: Array, order_seed: int | None = None) -> None:
        """Executes the PTX on the simulated machine: inputs first, then the results."""
        first = len(self.signature.inputs)
        held = [to_memory(array) for array in buffers]
        sizes = self.launches.workspaces.sizes
        arrays = [*held[:first], *self.launches.constants, *held[first:]]
        arrays += [np.zeros(size, np.uint8) for size in sizes]
        written = range(first + len(self.launches.constants), len(arrays))
        for launch, args in self.launches.calls(arrays, written):
            report = run_ptx(
                self.ptx, entry=launch.name, grid=launch.grid, block=launch.block,
                cluster=launch.cluster, dynamic_smem=launch.dynamic_smem, args=args,
                order_seed=order_seed,
            )  # fmt: skip
            assert report.ok, str(report)

    def launch(self, *buffers: Any, stream: Any = None) -> None:
        """Launches the kernel on a GPU."""
        from tcir.runtime import launch

        launch(self, *buffers, stream=stream)


def save(folder: Path, kernel: Any) -> None:
    """Writes a `tcir.Kernel`, with what the machine makes of random inputs."""
    from tcir.program.inputs import make_inputs

    folder.mkdir(parents=True)
    data: dict[str, Array] = {}
    for number in range(SETS):
        drawn = make_inputs(kernel.signature.inputs, number, "random")
        inputs = [np.asarray(array) for array in drawn]
        results = [np.zeros(spec.shape, spec.dtype) for spec in kernel.signature.outputs]
        kernel(*inputs, *results)
        for place, array in enumerate([*inputs, *results]):
            data[f"{number}_{place}"] = bytes_of(to_memory(array))
    for place, array in enumerate(kernel.launches.constants):
        data[f"constant_{place}"] = bytes_of(array)
    np.savez_compressed(folder / "data.npz", **data)  # type: ignore[arg-type]
    (folder / "kernel.ptx").write_text(kernel.ptx)
    (folder / "kernel.cubin").write_bytes(kernel.cubin)
    specs = [
        [[s.shape, s.dtype.name] for s in of]
        for of in (kernel.signature.inputs, kernel.signature.outputs)
    ]
    meta = {
        "name": kernel.name,
        "target": kernel.target,
        "launches": [asdict(launch) for launch in kernel.launches.launches],
        "workspaces": asdict(kernel.launches.workspaces),
        "constants": [[array.shape, array.dtype.name] for array in kernel.launches.constants],
        "inputs": specs[0],
        "outputs": specs[1],
    }
    (folder / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")


def load(folder: Path) -> Prepared:
    """Reads a kernel that `save` wrote."""
    meta = tuples(json.loads((folder / "meta.json").read_text()))
    inputs, outputs = (
        [OutputSpec(s, dtype(n)) for s, n in meta[of]] for of in ("inputs", "outputs")
    )
    with np.load(folder / "data.npz") as data:

        def arrays(number: int, specs: Sequence[OutputSpec], first: int) -> tuple[Array, ...]:
            return tuple(
                data[f"{number}_{first + n}"].view(image_spec(s).dtype).reshape(image_spec(s).shape)
                for n, s in enumerate(specs)
            )

        constants = tuple(
            data[f"constant_{n}"].view(dtype(name)).reshape(shape)
            for n, (shape, name) in enumerate(meta["constants"])
        )
        given = tuple(arrays(number, inputs, 0) for number in range(SETS))
        wanted = tuple(arrays(number, outputs, len(inputs)) for number in range(SETS))
    launches = LaunchSequence(
        tuple(Launch(**{**each, "params": tuple(each["params"])}) for each in meta["launches"]),
        Workspaces(**meta["workspaces"]),
        constants,
    )
    return Prepared(
        meta["name"], meta["target"], SimpleNamespace(inputs=inputs, outputs=outputs), launches,
        (folder / "kernel.ptx").read_text(), (folder / "kernel.cubin").read_bytes(), given, wanted,
    )  # fmt: skip


def dtype(name: str) -> np.dtype[Any]:
    """numpy's or ml_dtypes'."""
    return np.dtype(getattr(ml_dtypes, name, name))


def bytes_of(array: Array) -> Array:
    """An array's bytes."""
    return np.frombuffer(array.tobytes(), np.uint8)


def tuples(value: Any) -> Any:
    """JSON's lists as tuples."""
    if isinstance(value, list):
        return tuple(map(tuples, value))
    if isinstance(value, dict):
        return {key: tuples(each) for key, each in value.items()}
    return value
