"""``tc.fragment_epilogue`` and the ops of its body, on whole tiles."""

from __future__ import annotations

import numpy as np

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer, string
from tcir.dialect.warp_types import ATOM_COLUMNS
from tcir.errors import IncompleteError
from tcir.interp.tensor.epilogue import half
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute, sequence
from tcir.interp.tile.loads import gather
from tcir.interp.tile.movement import segments
from tcir.interp.tile.values import MemRef
from tcir.interp.tile.warp import held_by, pixels, walk_of
from tcir.interp.tile.wgmma import settled
from tcir.interp.types import Array, dtype_of

TAILS = {-2: "outer", -1: "inner"}
"""Dimension of the result, counted from the end -> name of its tail."""


@execute(tc.FragmentEpilogueOp)
def fragment_epilogue(compiler: Compiler, op: tc.FragmentEpilogueOp) -> Step:
    (sums_,), _ = segments(compiler, op)
    block, dtype = op.body.blocks[0], dtype_of(op.sums.type.element)
    totals = compiler.slots_of(block.arguments)
    ours = (tc.ElementOp, tc.YieldOp)
    body = sequence(
        [
            compiler.step(each) if isinstance(each, ours) else _computed(compiler, each)
            for each in block.operations
        ]
    )

    site = compiler.site(op)

    def compute(frame: Frame) -> None:
        sums = settled(frame, sums_, site).view(dtype)
        given = [half(n, ATOM_COLUMNS, sums) for n in range(2)] if op.gated else [sums]
        for total, each in zip(totals, given, strict=True):
            frame.values[total] = each
        frame.agent.machine.counters.fragment_numbers += sums.size
        body(frame)

    return compute


def _computed(compiler: Compiler, op: ir.OpView) -> Step:
    """Applies the tensor level's rule to all elements; values outside the tensor may overflow."""
    operands, result = compiler.operands(op), compiler.result(op)
    compute, interpreter = evaluate[op.operation.name], Interpreter()

    def elementwise(frame: Frame) -> None:
        v = frame.values
        with np.errstate(all="ignore"):
            (v[result],) = compute(interpreter, op, *(v[each] for each in operands))

    return elementwise


@execute(tc.ElementOp)
def element(compiler: Compiler, op: tc.ElementOp) -> Step:
    """Reads the elements of the tensor at the indices of the accumulator's elements. MachineError
    for an index outside the tensor, unless `tails` names the dimension.
    """
    around = op.operation.parent.opview
    if isinstance(op.tensor.type, tc.FragmentType):
        (source_,) = compiler.operands(op)
        return compiler.assigns(op, lambda frame: frame.values[source_])
    return _load(compiler, op, around, around.out.type, walk_of(around))


@execute(tc.FetchFragmentOp)
def fetch_fragment(compiler: Compiler, op: tc.FetchFragmentOp) -> Step:
    """Reads a whole tile of the tensor. MachineError for an index outside the tensor, unless
    `tails` names the dimension.
    """
    return _load(compiler, op, op, op.fragment.type, None)


@execute(tc.FragmentPartOp)
def fragment_part(compiler: Compiler, op: tc.FragmentPartOp) -> Step:
    """Returns some columns of a fragment; IncompleteError if a warp does not have whole rows."""
    (whole_,), result, site = compiler.operands(op), compiler.result(op), compiler.site(op)
    first, width = integer(op, "first"), op.columns.type.shape[1]
    part = held_by(compiler, op.whole.type)

    def take(frame: Frame) -> None:
        if part(frame).shape[1] != op.whole.type.shape[1]:
            raise IncompleteError(f"{site}: expected warps that hold whole rows, got parts")
        frame.values[result] = settled(frame, whole_, site)[:, first : first + width]

    return take


def _load(
    compiler: Compiler,
    op: tc.ElementOp | tc.FetchFragmentOp,
    at_op: ir.OpView,
    kind: tc.FragmentType,
    walk: tuple[int, int] | None,
) -> Step:
    """Reads the elements at the places of the agent's part of a fragment of `kind`, at the indices
    of `at_op`."""
    source_, result, site = compiler.operands(op)[0], compiler.result(op), compiler.site(op)
    indices_, tails = compiler.slots_of(at_op.indices), string(at_op, "tails")
    part, dims = held_by(compiler, kind), op.dims

    def load(frame: Frame) -> None:
        source: MemRef = frame.values[source_]
        mine = part(frame)
        at = _places(mine.moved([frame.values[slot] for slot in indices_]), mine.shape, walk)
        zero = np.zeros((1, 1), np.int64)
        for dim, extent in zip(dims, source.shape, strict=True):
            if dim is None or (walk is not None and dim != len(at) - 1):
                continue
            past = bool((at[dim] >= extent).any())
            if past and TAILS.get(dim - len(at)) not in tails.split():
                raise frame.cta_run.error(
                    "tile-outside-tensor",
                    f"expected a tile inside {list(source.shape)}, since tails does not name "
                    f"dimension {dim} of the result, got one up to index {int(at[dim].max())}",
                    site,
                )
        places = [zero if dim is None else at[dim] for dim in dims]
        frame.values[result] = gather(frame, source, places, zero.shape, site)

    return load


def _places(first: list[int], shape: tuple[int, ...], walk: tuple[int, int] | None) -> list[Array]:
    """Indices of a tile's elements in the result, one broadcastable array per dimension."""
    *batch, row, column = first
    rows = row + np.arange(shape[0], dtype=np.int64)[:, None]
    columns = column + np.arange(shape[1], dtype=np.int64)[None, :]
    if walk is not None:
        return [*pixels(rows, walk), columns]
    return [*(np.full((1, 1), each, np.int64) for each in batch), rows, columns]


@execute(tc.YieldOp)
def yield_(compiler: Compiler, op: tc.YieldOp) -> Step:
    """Yields the fragment that is the result of the enclosing op."""
    (value_,), around = compiler.operands(op), op.operation.parent.opview
    result, part = compiler.slot(around.out), held_by(compiler, around.out.type)

    def make(frame: Frame) -> None:
        frame.values[result] = np.broadcast_to(frame.values[value_], part(frame).shape).copy()

    return make
