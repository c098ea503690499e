"""The inputs and results of a program.

A kernel's parameters (the kernel ABI) are the function's inputs and then its results. An argument
that is only the ``outs`` of a `linalg.fill` contains no data that is read, and is dropped.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcir._mlir import memref, vector
from tcir.dialect import tc
from tcir.dialect.attributes import is_buffer, is_fill_only
from tcir.dialect.operation import traits_of
from tcir.dialect.ops.attention import LENGTHS
from tcir.dialect.upstream import by_name, names
from tcir.errors import InputError, format_location
from tcir.interp import OutputSpec
from tcir.interp.types import DTYPES, is_integer
from tcir.passes.emit.calls import inlined
from tcir.program.constants import constants_of
from tcir.program.indices import bound_of
from tcir.program.programs import Program, find_program

if TYPE_CHECKING:
    from tcir._mlir import ir

POWERS = "float8_e8m0fnu"
"""Type of scales that are powers of two."""
_TYPES = {**DTYPES, **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)}}


@dataclass(frozen=True)
class Signature:
    """The inputs and results of a program, in the order of the kernel ABI.

    unread: positions of arguments that are not inputs, because their data is never read
    """

    name: str
    level: str
    inputs: tuple[OutputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    unread: tuple[int, ...] = ()


def numpy_type(element: Any, location: object = None) -> np.dtype[Any]:
    """Returns the numpy (or ml_dtypes) type of an MLIR element type; InputError if it has none."""
    try:
        return np.dtype(_TYPES[str(element)])
    except KeyError:
        raise InputError(
            f"{format_location(location)}expected one of the element types {', '.join(_TYPES)}, "
            f"got {element}"
        ) from None


def views_of(program: Program) -> dict[int, OutputSpec]:
    """Returns shape and type of each buffer, by number, of a tile program or of one launch of a
    sequence; empty for other programs.
    """
    whole = program.level == "tensor" and program.attribute("tc.args") is None
    if program.level == "thread" or whole:
        return {}
    specs = [_spec(kind, program.op) for kind in program.buffer_types]
    return dict(zip(program.buffers, specs, strict=True))


def signature_of(module: Any, entry: str | None = None) -> Signature:
    """Returns the signature of the program in `module`, at the tensor or the tile level, with calls
    inlined."""
    module = inlined(module)
    program = find_program(module, entry)
    op, level = program.op, program.level
    if level == "thread":
        raise InputError(
            f"{format_location(op.operation.location)}a kernel of llvm and nvvm ops does not "
            "declare the shapes of its buffers; start from the tensor or the tile level"
        )
    arguments = list(op.operation.regions[0].blocks[0].arguments)
    unread: tuple[int, ...] = ()
    if level == "tensor":
        unread = tuple(a.arg_number for a in arguments if is_fill_only(a))
        inputs = [a for a in arguments if a.arg_number not in unread]
        results = list(op.type.results)
        outputs = [_spec(r, op) for r in results]
    else:
        written = _written_arguments(op)
        inputs = [a for i, a in enumerate(arguments) if i not in written]
        outputs = [_spec(arguments[i].type, op) for i in sorted(written)]
    if not outputs:
        raise InputError(
            f"{format_location(op.operation.location)}expected a program with a result to compare, "
            f"got @{program.name} without" + (_RETURNED if any(map(is_buffer, arguments)) else "")
        )
    inputs = inputs[: len(inputs) - len(constants_of(module))]
    specs = [_spec(a.type, op) for a in inputs]
    names = {spec.dtype.name for spec in specs}
    body = [each.operation for each in op.operation.regions[0].blocks[0]]
    packed = [each.results[0].type for each in body if traits_of(each).arithmetic == "codes"]
    names |= {_spec(kind, op).dtype.name for kind in packed}
    specs = [_of_places(spec, a) for spec, a in zip(specs, inputs, strict=True)]
    specs = _with_scales(specs, names)
    return Signature(program.name, level, tuple(specs), tuple(outputs), unread)


_RETURNED = (
    " (which memref is the result is not declared); return it\nsmallest accepted example: "
    "func.func @f(%x: memref<1xf32>) -> memref<1xf32> { return %x : memref<1xf32> }"
)


def _of_places(spec: OutputSpec, argument: ir.Value) -> OutputSpec:
    """Marks an input of indices, and the sizes of groups."""
    for use in argument.uses:
        owner = use.owner
        sizes = traits_of(owner).group_sizes
        if sizes and getattr(owner.operation.opview, sizes) == argument:
            rows = int(owner.operands[0].type.shape[-2])
            groups = spec.shape[0] if owner.operation.opview.masked else 1
            return replace(spec, groups=(rows, groups * rows))
        op = owner.operation.opview
        if isinstance(op, tc.AttentionOp) and op.sequences and use.operand_number >= LENGTHS:
            return replace(spec, ends=op.extents()["mn"[use.operand_number - LENGTHS]])
        if isinstance(op, tc.AttentionOp) and op.page and use.operand_number == LENGTHS:
            spec = replace(spec, first=op.extents()["n"] + 1)
    return replace(spec, below=bound_of(argument)) if is_integer(spec.dtype) else spec


def _with_scales(specs: list[OutputSpec], names: set[str]) -> list[OutputSpec]:
    """Marks unsigned inputs: block scales of type f8E4M3FN, and the global scales used with scales.

    Block scales are those of f4E2M1FN operands; elements of both types in one contraction have
    scales of type f8E8M0FNU. `names`: the types of inputs, and of their packed forms.
    """
    scale = scale_type(names)
    if scale == POWERS:
        return [replace(s, unsigned=s.dtype == np.float32 and not s.shape) for s in specs]
    if not scale:
        return specs
    return [replace(s, unsigned=s.dtype.name == scale or not s.shape) for s in specs]


def scale_type(names: Set[str]) -> str:
    """Returns the name of the type of block scales among the types of a contraction's operands; ""
    if there is none.

    It is f8E8M0FNU if this type is among them. Otherwise it is f8E4M3FN, if f4E2M1FN is among them.
    """
    if POWERS in names:
        return POWERS
    return "float8_e4m3fn" if "float4_e2m1fn" in names else ""


def _spec(kind: Any, op: Any) -> OutputSpec:
    from tcir._mlir import ir

    where = op.operation.location
    if not isinstance(kind, ir.RankedTensorType | ir.MemRefType):
        raise InputError(
            f"{format_location(where)}expected tensors or memrefs in the signature, got {kind} (a "
            f"kernel's arguments are buffers in memory); write it as tensor<{kind}>, and read it "
            "by tensor.extract %t[]"
        )
    if not kind.has_static_shape:
        raise InputError(f"{format_location(where)}expected static shapes to execute, got {kind}")
    return OutputSpec(tuple(kind.shape), numpy_type(kind.element_type, where))


_UPSTREAM_STORES = by_name({memref.StoreOp: 1, vector.StoreOp: 1, vector.TransferWriteOp: 1})
"""Upstream op that stores -> position of the operand it stores to; ops of tc have a trait for
it."""
_VIEWS = names(
    memref.CollapseShapeOp, memref.ExpandShapeOp, memref.CastOp, memref.SubViewOp,
    tc.MakeTensorMapOp,
)  # fmt: skip
"""Ops whose first operand is the buffer that their result names."""


def _stored_to(operation: ir.Operation) -> ir.Value | None:
    """Returns the memref that an op stores to, or its tensor map; None if the op does not store."""
    if operation.name in _UPSTREAM_STORES:
        return operation.operands[_UPSTREAM_STORES[operation.name]]
    name = traits_of(operation).stores
    return getattr(operation.opview, name) if name else None


def _written_arguments(op: Any) -> set[int]:
    """Returns the positions of the memref arguments that a tile program stores to."""
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
