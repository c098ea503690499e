"""What a program takes and gives, and at which level it stands.

Kernel ABI: the function's inputs, then its results. An argument that is only the ``outs`` of a
`linalg.fill` carries no data and is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from tcir.errors import InputError, format_location
from tcir.interp import OutputSpec

if TYPE_CHECKING:
    from tcir._mlir import ir

_TYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
    "i1": np.bool_,
    "index": np.int64,
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True)
class Signature:
    """The inputs and results of a program, in the order of the kernel ABI."""

    name: str
    level: str
    inputs: tuple[OutputSpec, ...]
    outputs: tuple[OutputSpec, ...]


def numpy_type(element: Any, location: object = None) -> np.dtype[Any]:
    """The numpy (or ml_dtypes) type of an MLIR element type."""
    try:
        return np.dtype(_TYPES[str(element)])
    except KeyError:
        raise InputError(
            f"{format_location(location)}expected an element type out of {', '.join(_TYPES)}, "
            f"got {element}"
        ) from None


@dataclass(frozen=True)
class Program:
    """A function to execute, and its level."""

    op: Any
    level: str

    @property
    def name(self) -> str:
        """The function's name."""
        return _name(self.op)

    @property
    def order(self) -> int | None:
        """Its place in the sequence of launches."""
        attributes = self.op.operation.attributes
        return int(attributes["tc.order"].value) if "tc.order" in attributes else None

    @property
    def buffers(self) -> tuple[int, ...]:
        """Numbers of the buffers that it has: its arguments in order (on tensors: and results)."""
        from tcir.program.launch import Launch

        if self.level == "thread":
            return Launch.from_kernel(self.op).buffers
        attributes = self.op.operation.attributes
        if "tc.args" in attributes:
            return tuple(attributes["tc.args"])
        return tuple(range(len(self._types)))

    @property
    def _types(self) -> list[Any]:
        arguments = self.op.operation.regions[0].blocks[0].arguments
        results = self.op.type.results if self.level == "tensor" else []
        return [*(argument.type for argument in arguments), *results]

    @property
    def views(self) -> dict[int, OutputSpec]:
        """Shape and type of each buffer, by number, of tile programs and parts of a sequence."""
        whole = self.level == "tensor" and "tc.args" not in self.op.operation.attributes
        if self.level == "thread" or whole:
            return {}
        specs = [_spec(kind, self.op) for kind in self._types]
        return dict(zip(self.buffers, specs, strict=True))


def find_programs(module: Any) -> list[Program]:
    """The programs of `module` in the order of their launches: one, or all with ``tc.order``."""
    programs = [Program(op, level) for op, level in _programs(module)]
    orders = [program.order for program in programs]
    if len(programs) < 2 or None in orders or len(set(orders)) < len(orders):
        return [Program(*find_program(module))]
    return sorted(programs, key=lambda program: program.order or 0)


def workspace_bytes(module: Any) -> tuple[int, ...]:
    """Sizes of the workspaces between the kernels of `module`: its attribute ``tc.workspaces``."""
    attributes = module.operation.attributes
    return tuple(attributes["tc.workspaces"]) if "tc.workspaces" in attributes else ()


def _programs(module: Any) -> list[tuple[Any, str]]:
    programs: list[tuple[Any, str]] = []
    for op in _functions(module.operation):
        name = op.operation.name
        attributes = op.operation.attributes
        if name == "llvm.func" and "nvvm.kernel" in attributes:
            programs.append((op, "thread"))
        elif name == "func.func" and len(op.operation.regions[0].blocks):
            programs.append((op, "tile" if "tc.kernel" in attributes else "tensor"))
    return programs


def find_program(module: Any, entry: str | None = None) -> tuple[Any, str]:
    """The operation of the program in `module` and its level: "tensor", "tile" or "thread"."""
    programs = _programs(module)
    if entry is not None:
        programs = [(op, level) for op, level in programs if _name(op) == entry] or programs
    if len(programs) != 1:
        names = ", ".join(f"@{_name(op)}" for op, _ in programs) or "none"
        raise InputError(
            f"{format_location(module.operation.location)}expected one function with a body "
            f"(func.func, or llvm.func with nvvm.kernel) to execute, got {names}; "
            "put each program in a file of its own"
        )
    return programs[0]


def level_of(module: Any) -> str:
    """The level `module` stands at."""
    return find_program(module)[1]


def signature_of(module: Any, entry: str | None = None) -> Signature:
    """The signature of the program in `module`, from the tensor or the tile level."""
    op, level = find_program(module, entry)
    if level == "thread":
        raise InputError(
            f"{format_location(op.operation.location)}a kernel of llvm and nvvm ops does not say "
            "the shapes of its buffers; start from the tensor or the tile level"
        )
    arguments = list(op.operation.regions[0].blocks[0].arguments)
    if level == "tensor":
        inputs = [a for a in arguments if not is_fill_only(a)]
        results = list(op.type.results)
        outputs = [_spec(r, op) for r in results]
    else:
        written = _written_arguments(op)
        inputs = [a for i, a in enumerate(arguments) if i not in written]
        outputs = [_spec(arguments[i].type, op) for i in sorted(written)]
    if not outputs:
        raise InputError(
            f"{format_location(op.operation.location)}expected a program with a result to compare, "
            f"got @{_name(op)} without"
        )
    specs = [_spec(a.type, op) for a in inputs]
    names = {spec.dtype.name for spec in specs}
    body = [each.operation for each in op.operation.regions[0].blocks[0]]
    packed = [each.results[0].type for each in body if each.name == "tc.pack_codes"]
    names |= {_spec(kind, op).dtype.name for kind in packed}
    return Signature(_name(op), level, tuple(_with_scales(specs, names)), tuple(outputs))


def _with_scales(specs: list[OutputSpec], names: set[str]) -> list[OutputSpec]:
    """Marks what has no sign: block scales of type f8E4M3FN, and the global scales beside scales.

    Block scales are those beside f4E2M1FN operands; elements of both types in one contraction have
    scales of type f8E8M0FNU. `names`: the types of inputs, and of what they are packed to.
    """
    if "float8_e8m0fnu" in names:
        return [replace(s, unsigned=s.dtype == np.float32 and not s.shape) for s in specs]
    if "float4_e2m1fn" not in names:
        return specs
    return [replace(s, unsigned=s.dtype.name == "float8_e4m3fn" or not s.shape) for s in specs]


def is_fill_only(argument: Any) -> bool:
    """Whether a tensor argument is only the ``outs`` of a `linalg.fill`: its data is never read."""
    uses = list(argument.uses)
    return bool(uses) and all(
        use.owner.operation.name == "linalg.fill" and use.operand_number == 1 for use in uses
    )


def _functions(operation: Any) -> list[Any]:
    found = []
    for block in operation.regions[0]:
        for op in block:
            if op.operation.name in ("gpu.module", "builtin.module"):
                found += _functions(op.operation)
            else:
                found.append(op)
    return found


def _name(op: Any) -> str:
    return str(op.operation.attributes["sym_name"].value)


def _spec(kind: Any, op: Any) -> OutputSpec:
    from tcir._mlir import ir

    where = op.operation.location
    if not isinstance(kind, ir.RankedTensorType | ir.MemRefType):
        raise InputError(
            f"{format_location(where)}expected tensors or memrefs in the signature, got {kind}"
        )
    if not kind.has_static_shape:
        raise InputError(f"{format_location(where)}expected static shapes to execute, got {kind}")
    return OutputSpec(tuple(kind.shape), numpy_type(kind.element_type, where))


_UPSTREAM_STORES = {"memref.store": 1, "vector.store": 1, "vector.transfer_write": 1}
"""Upstream ops that store, and the operand they store to; the ops of tc say so themselves."""
_VIEWS = ("memref.collapse_shape", "memref.expand_shape", "memref.cast", "memref.subview")


def _stored_to(operation: ir.Operation) -> ir.Value | None:
    """The memref that an op stores to through a pointer, if it does."""
    from tcir.dialect.operation import traits_of

    if operation.name in _UPSTREAM_STORES:
        return operation.operands[_UPSTREAM_STORES[operation.name]]
    name = traits_of(operation).stores
    return getattr(operation.opview, name) if name else None


def _written_arguments(op: Any) -> set[int]:
    """Positions of the memref arguments of a tile program that it stores to."""
    from tcir._mlir import ir

    written: set[int] = set()

    def visit(operation: Any) -> Any:
        value = _stored_to(operation)
        if value is not None:
            while not isinstance(value, ir.BlockArgument):
                owner = value.owner.operation
                if owner.name not in _VIEWS:
                    return ir.WalkResult.ADVANCE
                value = owner.operands[0]
            if value.owner == op.operation.regions[0].blocks[0]:
                written.add(ir.BlockArgument(value).arg_number)
        return ir.WalkResult.ADVANCE

    op.operation.walk(visit)
    return written
