"""Bundles: folders with kernels, inputs and expected results, to be run on another computer's GPU.

    bundle/
      README.md        answers to questions that the person with the GPU may have
      run.py           python run.py: runs, checks and times the kernels; writes a report
      tcir/            the parts of this package that run.py needs
      launch.json      the launches in order: sizes and parameters; the buffers, including
                       workspaces between launches; the origin of the program; digests of the data
      kernel.cubin  kernel.ptx
      data.npz         each buffer's bytes before the launches, and the bytes expected after them

The expected bytes are those that the simulated machine computes. A GPU computes other bits for
approximate functions (`ex2.approx`, `rsqrt.approx`); for a program that uses them, the results have
a reference and an error bound instead of expected bytes (`Near`). A kit is a folder that contains
README.md, run.py and tcir/, and one folder per bundle with the other entries.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tcir.errors import Error, IncompleteError, InputError
from tcir.runtime.cubin import triple
from tcir.runtime.micro_kernel import Array
from tcir.runtime.module import Triple
from tcir.runtime.replay import seal
from tcir.storage import outermost
from tcir.target import DEFAULT_TARGET, EMULATING

SCHEMA = 5
CARRIED = (
    "__init__.py",
    "errors.py",
    "files.py",
    "target.py",
    *(
        f"runtime/{name}.py"
        for name in (
            "__init__", "devices", "dlpack", "driver", "memory", "module", "replay", "tensor_map",
            "timing", "visit",
        )
    ),
    "emulation/errors.py",
    "emulation/narrow.py",
)  # fmt: skip
"""Files of the package copied into a bundle."""

RUN = '''"""Runs the kernels of this folder on a GPU; see --help. Needs cuda-python and numpy."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from tcir.runtime.visit import main  # noqa: E402

sys.exit(main(HERE))
'''


class BufferTable:
    """The distinct buffers among the kernels' arguments, and the arguments as JSON."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []

    def _place(self, array: Array) -> tuple[int, int]:
        whole = outermost(array)
        if not (array.flags.c_contiguous and whole.flags.c_contiguous):
            raise InputError(f"expected C-contiguous arrays, got strides {array.strides}")
        number = next((n for n, a in enumerate(self.arrays) if a is whole), len(self.arrays))
        if number == len(self.arrays):
            self.arrays.append(whole)
        return number, array.ctypes.data - whole.ctypes.data

    def describe(self, argument: Any) -> dict[str, Any]:
        """One parameter as JSON."""
        if isinstance(argument, np.generic):
            return {"kind": "bytes", "hex": argument.tobytes().hex()}
        if isinstance(argument, bytes | bytearray):
            return {"kind": "bytes", "hex": bytes(argument).hex()}
        if hasattr(argument, "fields"):
            number, offset = self._place(argument.array)
            return {
                "kind": "tensor_map",
                "buffer": number,
                "offset": offset + argument.offset_bytes,
                "fields": dataclasses.asdict(argument.fields),
            }
        if isinstance(argument, list | tuple):
            raise InputError("--bundle: expected arrays, scalars, bytes and maps, got parts=")
        number, offset = self._place(getattr(argument, "array", argument))
        return {"kind": "pointer", "buffer": number, "offset": offset}


@dataclass(frozen=True)
class BundledLaunch:
    """One launch of a bundle, with the arguments of `tcir.run_ptx`."""

    entry: str
    grid: Sequence[int] | int
    block: Sequence[int] | int
    cluster: Sequence[int] | int = (1, 1, 1)
    dynamic_smem: int = 0
    args: Sequence[Any] = ()
    programmatic: bool = False

    def sizes(self) -> dict[str, Any]:
        """The launch sizes as JSON and as arguments of `tcir.run_ptx`."""
        return {
            "grid": triple(self.grid),
            "block": triple(self.block),
            "cluster": triple(self.cluster),
            "dynamic_smem": self.dynamic_smem,
            "programmatic": self.programmatic,
        }


@dataclass(frozen=True)
class Near:
    """A result that approximate functions influence, with its error bound.

    array:     the result
    reference: the result of the original program, before any pass
    errors:    maximum error of each element, float64
    """

    array: Array
    reference: Array
    errors: Array

    def fields(self) -> dict[str, Array]:
        """Arrays of data.npz by name; an element of the result is converted to float64 exactly."""
        return {"reference": self.reference.astype(np.float64), "errors": self.errors}


def write(
    folder: Path,
    ptx: str,
    calls: Sequence[BundledLaunch],
    *,
    workspaces: Sequence[Array] = (),
    target: str = DEFAULT_TARGET.name,
    emulate: bool = False,
    origin: dict[str, Any] | None = None,
) -> None:
    """Executes launches of PTX on the simulated machine, one after the other, and writes a bundle
    that can be run.
    """
    check_new(folder)
    pack(
        folder, ptx, calls,
        workspaces=workspaces, target=target, emulate=emulate, origin=origin,
    )  # fmt: skip
    carry(folder)


def check_new(folder: Path) -> None:
    """Raises InputError if the folder exists and is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"--bundle {folder}: expected a new or empty folder")


def carry(folder: Path) -> None:
    """Writes the files that a folder needs so that its bundles can be run: README.md, run.py, and
    parts of this package.
    """
    folder.mkdir(parents=True, exist_ok=True)
    package = Path(__file__).resolve().parent.parent
    for name in CARRIED:
        target_file = folder / "tcir" / name
        target_file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(package / name, target_file)
    (folder / "tcir/emulation/__init__.py").write_text('"""Tensor maps of emulated programs."""\n')
    (folder / "run.py").write_text(RUN)
    shutil.copyfile(package / "runtime" / "KIT.md", folder / "README.md")


def pack(
    folder: Path,
    ptx: str,
    calls: Sequence[BundledLaunch],
    *,
    workspaces: Sequence[Array] = (),
    near: Sequence[Near] = (),
    target: str = DEFAULT_TARGET.name,
    emulate: bool = False,
    origin: dict[str, Any] | None = None,
) -> None:
    """Executes launches of PTX on the simulated machine, one after the other, and writes the data
    of a bundle.

    workspaces: arguments that one kernel writes entirely and another kernel reads
    near:       results that have an error bound; if there are any, workspaces are not compared
    emulate:    whether to rewrite a program for sm_100a to an equivalent program for a GPU of
                compute capability 9.0 (docs/explanation/emulation.md); the expected bytes are those
                of the original program
    origin:     origin of the data, as launch.json states it: the program, the pipeline, the seed of
                the inputs

    Raises `Error` if the simulated machine reports a finding, because its results are then no
    reference, and EmulationError for a program that cannot be emulated.
    """
    from tcir.codegen.cubin import assemble

    if not calls:
        raise InputError(
            f"--bundle {folder}: the program has no launch, since all its results are without "
            "elements: there is nothing to run"
        )
    carried, launched, origin = ptx, list(calls), dict(origin or {})
    if emulate:
        origin["emulated"] = target
        carried, launched = _emulated(ptx, calls)
        target = EMULATING
    cubin = assemble(carried, target=target)
    table = BufferTable()
    params = [[table.describe(argument) for argument in call.args] for call in calls]
    before = [array.copy() for array in table.arrays]
    _run(ptx, calls, workspaces)
    data: dict[str, Array] = {}
    buffers = []
    for number, (first, last) in enumerate(zip(before, table.arrays, strict=True)):
        data[f"before{number}"], after = raw(first), raw(last)
        changed = bool((data[f"before{number}"] != after).any())
        if changed:
            data[f"expected{number}"] = after
        bound = next((each for each in near if np.may_share_memory(last, each.array)), None)
        if bound is not None:
            _check_bound(bound, after)
            data |= {f"{name}{number}": array for name, array in bound.fields().items()}
        buffers.append(
            {
                "dtype": first.dtype.name,
                "shape": first.shape,
                "bytes": first.nbytes,
                "before_sha256": digest(data[f"before{number}"]),
                "expected_sha256": digest(after),
                "written": changed,
                "bounded": bound and bound.array.dtype.name,
                "workspace": any(np.may_share_memory(last, array) for array in workspaces),
            }
        )
    names = ", ".join(f"@{call.entry}" for call in calls)
    if not any(b["written"] for b in buffers):
        raise InputError(f"{names}: the kernel must write to a buffer, but it changed none")
    launches = [
        {"kernel": call.entry, **call.sizes(), "params": given}
        for call, given in zip(launched, params, strict=True)
    ]
    save(
        folder,
        carried,
        cubin.data,
        data,
        {"target": target, "launches": launches, "buffers": buffers, "origin": origin},
    )


@dataclass(frozen=True)
class _Named:
    """The name and sizes of a call, in the form that `emulate_all` takes."""

    name: str
    grid: Triple
    block: Triple
    cluster: Triple
    dynamic_smem: int


def _emulated(ptx: str, calls: Sequence[BundledLaunch]) -> tuple[str, list[BundledLaunch]]:
    """The program rewritten for compute capability 9.0, and its calls."""
    from tcir.emulation import emulate_all, narrow
    from tcir.runtime.on_gpu import types_of_maps

    sizes = [
        _Named(
            each.entry,
            triple(each.grid),
            triple(each.block),
            triple(each.cluster),
            each.dynamic_smem,
        )
        for each in calls
    ]
    types = types_of_maps([list(call.args) for call in calls])
    made, launches = emulate_all(ptx, sizes, narrow=narrow.some(types))
    return made, [
        dataclasses.replace(call, block=each.block, dynamic_smem=each.dynamic_smem)
        for call, each in zip(calls, launches, strict=True)
    ]


def _check_bound(near: Near, after: Array) -> None:
    from tcir.runtime.replay import excess

    dtype = near.array.dtype.name
    if dtype not in ("float32", "float16", "bfloat16"):
        raise InputError(
            f"--bundle: results of approximate functions must be f32, f16 or bf16, got {dtype}: "
            "its error has no bound per element"
        )
    ratio = excess(after, dtype, **near.fields())
    if not ratio <= 1:
        raise Error(
            f"no bundle is written: the largest error is {ratio:.2g} times its bound on the machine"
        )


def save(
    folder: Path,
    ptx: str,
    cubin: bytes,
    data: dict[str, Array],
    description: dict[str, Any],
) -> None:
    """Writes the data files of a bundle, and their digests."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.ptx").write_bytes(ptx.encode())
    (folder / "kernel.cubin").write_bytes(cubin)
    np.savez_compressed(folder / "data.npz", **data)  # type: ignore[arg-type]
    description = {
        "schema": SCHEMA,
        "cubin_sha256": hashlib.sha256(cubin).hexdigest(),
        "ptx_sha256": hashlib.sha256(ptx.encode()).hexdigest(),
        **description,
    }
    description["sha256"] = seal(description)
    (folder / "launch.json").write_text(json.dumps(description, indent=1) + "\n")


def _run(ptx: str, calls: Sequence[BundledLaunch], workspaces: Sequence[Array]) -> None:
    """Executes the calls; `Error` on any finding or incompletely written workspace."""
    from tcir.debug import LastWriters
    from tcir.run import Uninitialized, run_ptx

    for call in calls:
        writers = LastWriters()
        report = run_ptx(ptx, entry=call.entry, args=call.args, observer=writers, **call.sizes())
        if report.incomplete:
            raise IncompleteError(f"@{call.entry}: no expected result: {report}")
        if not report.ok:
            raise Error(
                f"@{call.entry}: no bundle is written, since the machine has findings: {report}"
            )
        for argument in call.args:
            array = argument.array if isinstance(argument, Uninitialized) else None
            missing = 0
            if any(array is workspace for workspace in workspaces):
                missing = writers.unwritten(argument.array)
            if missing:
                raise Error(
                    f"@{call.entry}: all {argument.array.nbytes} bytes of a workspace must be "
                    f"written, since the next launch reads it; {missing} bytes are not"
                )


def digest(data: Array) -> str:
    """SHA-256 of an array's bytes."""
    return hashlib.sha256(data.tobytes()).hexdigest()


def raw(array: Array) -> Array:
    """An array's bytes."""
    return np.frombuffer(array.tobytes(), np.uint8)
