"""Launches of lowered kernels: grid, block, shared memory, parameters.

The kernel's `llvm.func` has these attributes:

- ``tc.params``: a list with one entry per parameter: ``{kind = "tensor_map", arg, mode, dtype,
  dims, strides, box, …}``, ``{kind = "pointer", arg}`` or ``{kind = "workspace", bytes}``, where
  ``arg`` is the number of one of the caller's buffers (first inputs, then results)
- ``tc.grid``, ``nvvm.reqntid``, ``tc.smem_bytes``
- ``tc.cluster`` if CTAs form clusters
- ``tc.programmatic`` if the launch may start before the previous launch has ended
- ``tc.unwritten`` if the kernel leaves elements of its results as they are

A module may contain several kernels, which are launched in the order of their attribute
``tc.order``. Buffers numbered after the caller's are workspaces between the kernels
(`tcir.program.workspaces`); buffers between the caller's inputs and results are constants
(``tc.constants``). `tcir.program.execution` states which buffers a kernel reads and which it
writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tcir.errors import InputError, format_location
from tcir.program.capacity import check_workspaces
from tcir.program.constants import constant_arrays, folded_launches
from tcir.program.programs import Program, find_program, find_programs
from tcir.program.symbols import legal_symbol
from tcir.program.workspaces import NONE, Workspaces

if TYPE_CHECKING:
    import numpy as np

    from tcir._mlir import ir
    from tcir.interp.types import Array
    from tcir.machine.tma.tensor_map import TensorMap

# Attributes of a tensor_map parameter that tcir.TensorMap calls otherwise; the rest is passed on.
_MAP_KEYS = {"strides": "strides_bytes"}
_NOT_PASSED = ("kind", "arg", "mode")
CLUSTER, PROGRAMMATIC = "tc.cluster", "tc.programmatic"
UNWRITTEN = "tc.unwritten"


@dataclass(frozen=True)
class Launch:
    """Launch sizes of one kernel, and its parameters in order (plain Python data, no MLIR).

    name:   name of the kernel in PTX
    symbol: name of the launch in the program, if it differs from `name`: PTX cannot spell it (pass
            legalize-symbols), or the kernel is launched several times (pass share-kernels); else ""
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_smem: int
    params: tuple[dict[str, Any], ...] = field(hash=False)
    cluster: tuple[int, int, int] = (1, 1, 1)
    programmatic: bool = False
    symbol: str = ""
    unwritten: bool = False

    @property
    def title(self) -> str:
        """Name of the launch in the program."""
        return self.symbol or self.name

    @staticmethod
    def from_module(module: ir.Module) -> Launch:
        """Reads the attributes of the one kernel in `module`, a thread-level module."""
        return Launch.from_program(find_program(module))

    @staticmethod
    def from_program(program: Program) -> Launch:
        """Reads the attributes of a kernel."""
        attributes = program.op.operation.attributes
        where = format_location(program.op.operation.location)
        needed = ("tc.params", "tc.grid", "nvvm.reqntid")
        missing = [name for name in needed if name not in attributes]
        if program.level != "thread" or missing:
            raise InputError(
                f"{where}expected a kernel (llvm.func) with {', '.join(needed)}, got level "
                f"'{program.level}' without {', '.join(missing) or 'any'}"
            )
        smem = "tc.smem_bytes"
        name, symbol = legal_symbol(program.symbol), program.symbol
        params = tuple(attribute_value(attributes["tc.params"]))
        if program.repeat is not None:
            symbol, here = program.repeat.name, program.repeat.here
            params = tuple({**p, "arg": here([p["arg"]])[0]} if "arg" in p else p for p in params)
        return Launch(
            name=name,
            symbol="" if name == symbol else symbol,
            grid=_triple(attribute_value(attributes["tc.grid"])),
            block=_triple(attribute_value(attributes["nvvm.reqntid"])),
            dynamic_smem=attribute_value(attributes[smem]) if smem in attributes else 0,
            params=params,
            cluster=_triple(attribute_value(attributes[CLUSTER]) if CLUSTER in attributes else ()),
            programmatic=PROGRAMMATIC in attributes,
            unwritten=UNWRITTEN in attributes,
        )

    @property
    def buffers(self) -> tuple[int, ...]:
        """Numbers of the kernel's buffers, ascending."""
        return tuple(sorted({param["arg"] for param in self.params if "arg" in param}))

    def renumbered(self, numbers: Sequence[int]) -> Launch:
        """Returns a copy of the launch in which buffer ``numbers[i]`` has the number i."""
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
        """Returns the kernel's arguments for `tcir.run_ptx`. The arrays `outputs` are
        uninitialised: the kernel only writes them.
        """
        import numpy as np

        from tcir.run import Uninitialized

        buffers = [*inputs, *outputs]
        arguments: list[Any] = []
        for number, param in enumerate(self.params):
            if param["kind"] == "workspace":
                check_workspaces({number: param["bytes"]})
                arguments.append(Uninitialized(np.zeros(param["bytes"], np.uint8)))
                continue
            if not 0 <= param["arg"] < len(buffers):
                raise InputError(
                    f"parameter {number} of @{self.name} uses buffer {param['arg']}, "
                    f"got {len(buffers)} buffers"
                )
            buffer = buffers[param["arg"]]
            if param["kind"] == "value":
                arguments.append(buffer)
                continue
            written = param["arg"] >= len(inputs)
            if param["kind"] == "pointer":
                arguments.append(Uninitialized(buffer) if written else buffer)
            elif param["kind"] == "tensor_map":
                made = tensor_map(param, buffer)
                arguments.append(replace(made, uninitialized=True) if written else made)
            else:
                raise InputError(
                    f"parameter {number} of @{self.name}: expected kind 'tensor_map', 'pointer', "
                    f"'value' or 'workspace', got '{param['kind']}'"
                )
        return arguments


Call = tuple[Launch, list[Any]]
"""A launch and its arguments for `tcir.run_ptx`."""


@dataclass(frozen=True)
class LaunchSequence:
    """Launches in order, and the buffers that the caller does not pass.

    workspaces: buffers between launches
    constants:  memory images of the program's constants, whose numbers follow those of the caller's
                inputs
    folded:     names of launches that computed some of the constants at compile time
    """

    launches: tuple[Launch, ...]
    workspaces: Workspaces = NONE
    constants: tuple[Array, ...] = field(default=(), hash=False, compare=False)
    folded: tuple[str, ...] = ()

    @staticmethod
    def from_module(module: ir.Module) -> LaunchSequence:
        """Reads the kernels of `module`, a thread-level module."""
        return LaunchSequence.from_programs(module, find_programs(module))

    @staticmethod
    def from_programs(module: ir.Module, programs: Sequence[Program]) -> LaunchSequence:
        """Reads the kernels of the programs found in `module`."""
        launches = tuple(Launch.from_program(program) for program in programs)
        sequence = LaunchSequence(launches, Workspaces.of(module))
        constants = constant_arrays(module)
        if not constants:
            return sequence
        from tcir.program.memory_image import images  # needs numpy

        arrays = tuple(images(constants))
        for array in arrays:
            array.flags.writeable = False  # copies of it stay on devices
        return replace(sequence, constants=arrays, folded=folded_launches(module))

    def calls(self, arrays: Sequence[Any], written: Collection[int]) -> Iterator[Call]:
        """Yields each launch with its arguments.

        arrays:  the caller's arguments, with the constants after the inputs, and then the
                 workspaces
        written: numbers of the arrays that are uninitialised before the first launch
        """
        known = set(range(len(arrays))) - set(written)
        for launch in self.launches:
            reads = [n for n in launch.buffers if n in known]
            writes = [n for n in launch.buffers if n not in known]
            yield (
                launch,
                launch.renumbered([*reads, *writes]).arguments(
                    [arrays[n] for n in reads], [arrays[n] for n in writes]
                ),
            )
            known |= set(writes)

    @property
    def only(self) -> Launch:
        """Returns the only launch. Raises InputError if there are several."""
        if len(self.launches) != 1:
            names = ", ".join(f"@{launch.name}" for launch in self.launches)
            raise InputError(
                f"expected a program of one launch, got {len(self.launches)} "
                f"({names or 'all results are without elements'}); use Kernel.launches"
            )
        return self.launches[0]


def tensor_map(param: dict[str, Any], buffer: np.ndarray[Any, Any]) -> TensorMap:
    """Builds the tensor map over `buffer` that a parameter of kind ``tensor_map`` describes."""
    from tcir.machine.tma.tensor_map import TensorMap

    builders: dict[str, Callable[..., TensorMap]] = {
        "tiled": TensorMap.tiled,
        "im2col": TensorMap.im2col,
        "im2col_w": partial(TensorMap.im2col_wide, mode="W"),
        "im2col_w128": partial(TensorMap.im2col_wide, mode="W128"),
    }
    options = {
        _MAP_KEYS.get(key, key): value for key, value in param.items() if key not in _NOT_PASSED
    }
    return builders[param["mode"]](buffer, **options)


def _triple(values: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*values, 1, 1, 1)[:3]
    return x, y, z


def attribute_value(attribute: Any) -> Any:
    """Converts an MLIR attribute to Python data (str, int, float, bool, tuple, dict); InputError
    for any other attribute.
    """
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
