"""Epilogues element by element: the body of a ``tc.epilogue`` computed on the numbers of one
thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tcir._mlir import arith, ir
from tcir.dialect import tc
from tcir.dialect.upstream import names
from tcir.passes.emit import narrow, simt
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.fp8 import FP8
from tcir.passes.emit.tile_kernel import Source

INSTEAD = "take pipeline gemm"
LEAST_BITS = 16
"""Least bits of a number that has a register of its own."""
BYTES = {
    **dict.fromkeys(FP8, names(tc.ElementOp, arith.ExtFOp, arith.TruncFOp)),
    "i8": names(arith.TruncIOp, arith.FPToSIOp, arith.FPToUIOp),
}
"""Ops that may have values of a byte: reads and conversions."""


def check_by_element(
    source: Source, pass_name: str, quantised: bool = False, gated: bool = False
) -> None:
    """Rejects an epilogue that a kernel cannot compute element by element.

    quantised: whether the kernel can quantise results in blocks
    gated: whether the kernel can compute the gate and the value of a gated activation
    """
    if not quantised:
        check_not_quantised(source.quantise, pass_name)
    if source.after is not None:
        check_elements(source.after, f"in {pass_name}", INSTEAD, gated)


def check_not_quantised(op: tc.QuantiseBlocksOp | None, pass_name: str) -> None:
    """Rejects an op that is followed by block quantisation."""
    if op is not None:
        raise match_failure(
            op,
            f"expected results of one tensor in {pass_name}, got tc.quantise_blocks (no thread has "
            f"all columns of a block); {INSTEAD}, or quantise by a launch of its own, as "
            "split-launches{quantise-apart=true} makes it",
        )


def check_elements(after: tc.EpilogueOp, where: str, instead: str, gated: bool = False) -> None:
    """Rejects an epilogue that combines two columns unless `gated` is set, or that computes with
    types of which a thread cannot hold single numbers (`check_types`)."""
    if after.gated and not gated:
        raise match_failure(
            after,
            f"expected a result for every sum {where}, got one result for each two columns, as a "
            f"gated activation makes; {instead}, or return the sums",
        )
    for each in list(after.body.blocks[0])[:-1]:
        check_types(each, where, instead)


def check_types(op: ir.OpView, where: str, instead: str) -> None:
    """Rejects types of numbers, or of tensors of numbers, that a thread cannot hold one by one."""
    values = [*op.operation.operands, *op.operation.results]
    for kind in (getattr(v.type, "element_type", v.type) for v in values):
        if op.operation.name in BYTES.get(str(kind), ()):
            continue
        if str(kind) != "i1" and kind.width < LEAST_BITS:
            raise match_failure(
                op,
                f"expected {op.operation.name} of f32, f16, bf16, i16 or i32 in an epilogue {where}"
                f", got {kind} (registers have no bytes, and fp8 is only converted, PTX ISA "
                f"9.7.9.21); extend first and round last, or {instead}",
            )


def number_at(
    after: tc.EpilogueOp,
    pointer_of: Callable[[ir.Value], ir.Value],
    at: Sequence[ir.Value],
    *totals: ir.Value,
    group: ir.Value | None = None,
) -> ir.Value:
    """Emits the element of the result at the indices `at`, i32 values. `totals` are its sums: one
    sum, or a gate and a value.

    pointer_of: returns the address of an argument of the function of `after`
    group: number of the row's group, for tensors that are read by group
    """
    block = after.body.blocks[0]
    known = {
        argument: total if total.type == argument.type else arith.truncf(argument.type, total)
        for argument, total in zip(block.arguments, totals, strict=True)
    }
    *ops, end = block.operations
    for each in ops:
        with each.location:
            operands = [known[o] for o in each.operation.operands if o in known]
            known[each.operation.results[0]] = _number(each, operands, pointer_of, at, group)
    return known[end.operands[0]]


def _number(
    op: ir.OpView,
    operands: Sequence[ir.Value],
    pointer_of: Callable[[ir.Value], ir.Value],
    at: Sequence[ir.Value],
    group: ir.Value | None,
) -> ir.Value:
    if isinstance(op, tc.ElementOp):
        places = [None if dim is None else at[dim] for dim in op.dims]
        outer = [group] if op.of_group else []
        return element(pointer_of(op.tensor), op.tensor.type, [*outer, *places])
    if op.operation.name == "arith.constant":
        return narrow.constant(op.operation.results[0].type, op.operation.attributes["value"])
    return narrow.computed(op, operands)


def store(pointer: ir.Value, place: ir.Value, number: ir.Value, kind: ir.Type) -> None:
    """Stores a number to element number `place`, an i64, of a tensor at `pointer`."""
    narrow.store(pointer, place, [number], kind)


def element(
    pointer: ir.Value, kind: ir.RankedTensorType, at: Sequence[ir.Value | None]
) -> ir.Value:
    """Loads the element of a tensor at `pointer` that has the indices `at`; an index None means
    0."""
    return narrow.load(pointer, place_of(kind, at), kind.element_type)


def place_of(kind: ir.RankedTensorType, at: Sequence[ir.Value | None]) -> ir.Value:
    """The row-major number, an i64, of the element at the indices `at`; an index None means 0.

    Numbers below 2^32 are computed in 32 bits, which takes a third of the instructions that 64 bits
    take.
    """
    small = prod(kind.shape) < 1 << 32
    place: ir.Value | None = None
    for number, extent in zip(at, kind.shape, strict=True):
        if extent == 1:
            continue
        index = simt.constant(0) if number is None else number
        index = index if small else simt.wide(index)
        place = index if place is None else simt.add(simt.mul(place, extent), index)
    if place is None:
        return simt.constant(0, 64)
    return simt.wide(place) if small else place
