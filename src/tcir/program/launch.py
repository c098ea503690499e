"""How lowered kernels are launched: grid, block, shared memory, and what their parameters are.

The kernel's `llvm.func` carries it: ``tc.params``, a list with ``{kind = "tensor_map", arg, mode,
dtype, dims, strides, box, …}`` or ``{kind = "pointer", arg}`` per parameter (``arg`` counts the
caller's buffers: inputs, then results) or ``{kind = "workspace", bytes}``, ``tc.grid``,
``nvvm.reqntid``, ``tc.smem_bytes``, and ``tc.cluster`` where CTAs form clusters.

A module may hold several kernels, launched in the order of their attribute ``tc.order``. Buffers
after the caller's are workspaces between them: ``tc.workspaces`` on the `builtin.module` has their
sizes in bytes. What a kernel reads and writes: see `tcir.program.sequence`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tcir.errors import InputError, format_location
from tcir.interp import Outcome, OutputSpec
from tcir.program.inputs import poison
from tcir.program.memory_image import in_memory

if TYPE_CHECKING:
    from tcir.machine.tma.tensor_map import TensorMap

# Attributes of a tensor_map parameter that tcir.TensorMap calls otherwise; the rest is passed on.
_MAP_KEYS = {"strides": "strides_bytes"}
_NOT_PASSED = ("kind", "arg", "mode")
CLUSTER = "tc.cluster"


@dataclass(frozen=True)
class Launch:
    """Launch sizes of one kernel, and its parameters in order (plain Python data, no MLIR)."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_smem: int
    params: tuple[dict[str, Any], ...] = field(hash=False)
    cluster: tuple[int, int, int] = (1, 1, 1)

    @staticmethod
    def from_module(module: Any) -> Launch:
        """Reads the attributes of the one kernel in `module`, which stands at the thread level."""
        from tcir.program.signature import find_program

        return Launch.from_kernel(*find_program(module))

    @staticmethod
    def from_kernel(op: Any, level: str = "thread") -> Launch:
        """Reads the attributes of a kernel."""
        attributes = op.operation.attributes
        where = format_location(op.operation.location)
        needed = ("tc.params", "tc.grid", "nvvm.reqntid")
        missing = [name for name in needed if name not in attributes]
        if level != "thread" or missing:
            raise InputError(
                f"{where}expected a kernel (llvm.func) with {', '.join(needed)}, got level "
                f"'{level}' without {', '.join(missing) or 'any'}"
            )
        smem = "tc.smem_bytes"
        return Launch(
            name=str(attributes["sym_name"].value),
            grid=_triple(attribute_value(attributes["tc.grid"])),
            block=_triple(attribute_value(attributes["nvvm.reqntid"])),
            dynamic_smem=attribute_value(attributes[smem]) if smem in attributes else 0,
            params=tuple(attribute_value(attributes["tc.params"])),
            cluster=_triple(attribute_value(attributes[CLUSTER]) if CLUSTER in attributes else ()),
        )

    @property
    def buffers(self) -> tuple[int, ...]:
        """Numbers of the buffers that the kernel has, ascending."""
        return tuple(sorted({param["arg"] for param in self.params if "arg" in param}))

    def renumbered(self, numbers: Sequence[int]) -> Launch:
        """The same launch where buffer ``numbers[i]`` is called i."""
        params = tuple(
            {**param, "arg": numbers.index(param["arg"])} if "arg" in param else param
            for param in self.params
        )
        return replace(self, params=params)

    def arguments(
        self,
        inputs: Sequence[np.ndarray[Any, Any]],
        outputs: Sequence[np.ndarray[Any, Any]],
    ) -> list[Any]:
        """The kernel's arguments for `tcir.run_ptx`; `outputs` are written, not read."""
        from tcir.run import Uninitialized

        buffers = [*inputs, *outputs]
        arguments: list[Any] = []
        for number, param in enumerate(self.params):
            if param["kind"] == "workspace":
                arguments.append(Uninitialized(np.zeros(param["bytes"], np.uint8)))
                continue
            if not 0 <= param["arg"] < len(buffers):
                raise InputError(
                    f"parameter {number} of @{self.name} uses buffer {param['arg']}, "
                    f"got {len(buffers)} buffers"
                )
            buffer = buffers[param["arg"]]
            if param["kind"] == "pointer":
                written = param["arg"] >= len(inputs)
                arguments.append(Uninitialized(buffer) if written else buffer)
            elif param["kind"] == "tensor_map":
                arguments.append(tensor_map(param, buffer))
            else:
                raise InputError(
                    f"parameter {number} of @{self.name}: expected kind 'tensor_map', 'pointer' or "
                    f"'workspace', got '{param['kind']}'"
                )
        return arguments


@dataclass(frozen=True)
class LaunchSequence:
    """Launches in order, and the sizes in bytes of the workspaces between them."""

    launches: tuple[Launch, ...]
    workspaces: tuple[int, ...] = ()

    @staticmethod
    def from_module(module: Any) -> LaunchSequence:
        """Reads the kernels of `module`, which stands at the thread level."""
        from tcir.program.signature import find_programs, workspace_bytes

        launches = tuple(Launch.from_kernel(p.op, p.level) for p in find_programs(module))
        return LaunchSequence(launches, workspace_bytes(module))

    @property
    def only(self) -> Launch:
        """The launch, of a program that has just one."""
        if len(self.launches) != 1:
            names = ", ".join(f"@{launch.name}" for launch in self.launches)
            raise InputError(
                f"expected a program of one launch, got {len(self.launches)} ({names}); use "
                "Kernel.launches"
            )
        return self.launches[0]


def tensor_map(param: dict[str, Any], buffer: np.ndarray[Any, Any]) -> TensorMap:
    """The tensor map that a parameter of kind ``tensor_map`` describes, over `buffer`."""
    from tcir.machine.tma.tensor_map import TensorMap

    builders: dict[str, Callable[..., TensorMap]] = {
        "tiled": TensorMap.tiled,
        "im2col": TensorMap.im2col,
        "im2col_w128": partial(TensorMap.im2col_wide, mode="W128"),
    }
    options = {
        _MAP_KEYS.get(key, key): value for key, value in param.items() if key not in _NOT_PASSED
    }
    return builders[param["mode"]](buffer, **options)


def run_kernel(
    ptx: str,
    launch: Launch,
    inputs: Sequence[np.ndarray[Any, Any]],
    outputs: Iterable[OutputSpec],
    *,
    whole: Collection[int] = (),
    order_seed: int | None = None,
    hazards: str = "report",
    numerics: str = "exact",
) -> Outcome:
    """Executes PTX text on the machine over copies of `inputs`; results start as poison.

    Results in `whole` are for another kernel to read: a byte left unwritten there is an error
    finding. Raises `tcir.machine.MachineError` at an illegal act of the program, which ends the
    run.
    """
    from tcir.debug import LastWriters
    from tcir.run import run_ptx

    writers = LastWriters()
    results = [poison(spec) for spec in outputs]
    copies = [np.array(a, order="C") for a in inputs]
    report = run_ptx(
        ptx,
        entry=launch.name,
        grid=launch.grid,
        block=launch.block,
        cluster=launch.cluster,
        dynamic_smem=launch.dynamic_smem,
        args=launch.arguments(copies, results),
        hazards=hazards,
        order_seed=order_seed,
        numerics=numerics,
        observer=writers,
    )
    if report.errors:
        raise report.errors[0]
    return Outcome(
        outputs=results,
        level="ptx",
        findings=list(report.findings) + _holes(launch.name, writers, results, whole),
        counters=report.counters,
        incomplete=[str(item) for item in report.incomplete],
        sites={n: writers.finder(result) for n, result in enumerate(results)},
    )


def _holes(
    name: str, writers: Any, results: Sequence[np.ndarray[Any, Any]], whole: Collection[int]
) -> list[Any]:
    from tcir.machine import Finding

    holes = [(n, writers.unwritten(results[n])) for n in whole]
    return [
        Finding(
            "error",
            "workspace-never-written",
            f"@{name}",
            f"workspace of {results[n].nbytes} bytes",
            f"a store to {missing} of them",
        )
        for n, missing in holes
        if missing
    ]


def run_sequence(
    ptx: str,
    sequence: LaunchSequence,
    inputs: Sequence[np.ndarray[Any, Any]],
    outputs: Iterable[OutputSpec],
    **options: Any,
) -> Outcome:
    """Executes the kernels of PTX text one after the other; `options` as in `run_kernel`."""
    from tcir.program.sequence import RunStep, Step, run_in_order

    results = list(outputs)
    if len(sequence.launches) == 1 and not sequence.workspaces:
        only = sequence.only
        return in_memory(results, lambda specs: run_kernel(ptx, only, inputs, specs, **options))
    first = len(inputs) + len(results)

    def runner(launch: Launch) -> RunStep:
        def run(numbers: Sequence[int], arrays: Sequence[Any], wanted: Sequence[OutputSpec]) -> Any:
            writes = numbers[len(arrays) :]
            whole = [place for place, n in enumerate(writes) if n >= first]
            local = launch.renumbered(numbers)
            return run_kernel(ptx, local, arrays, wanted, whole=whole, **options)

        return run

    steps = [Step(launch.name, launch.buffers, runner(launch)) for launch in sequence.launches]
    sizes = dict(enumerate(sequence.workspaces, first))
    return in_memory(results, lambda specs: run_in_order(steps, inputs, specs, sizes))


def _triple(values: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*values, 1, 1, 1)[:3]
    return x, y, z


def attribute_value(attribute: Any) -> Any:
    """An MLIR attribute as Python data: str, int, float, bool, tuple, dict."""
    from tcir._mlir import ir

    if isinstance(attribute, ir.DictAttr):
        return {entry.name: attribute_value(entry.attr) for entry in attribute}
    if isinstance(attribute, ir.ArrayAttr):
        return tuple(attribute_value(item) for item in attribute)
    if isinstance(attribute, ir.UnitAttr):
        return True
    dense = (ir.DenseI64ArrayAttr, ir.DenseI32ArrayAttr, ir.DenseI16ArrayAttr, ir.DenseI8ArrayAttr)
    if isinstance(attribute, (*dense, ir.DenseBoolArrayAttr)):
        return tuple(attribute)
    if isinstance(attribute, ir.IntegerAttr | ir.FloatAttr | ir.BoolAttr | ir.StringAttr):
        return attribute.value
    raise InputError(f"no Python value for the attribute {attribute}")
