"""Common code of the tiling passes: the kernel function, its main loop and its epilogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from tcir._mlir import arith, func, ir, scf
from tcir.dialect import tc
from tcir.dialect.limits import GRID, QUARTER_LANES, QUARTERS, TMEM_LANES, WARP
from tcir.dialect.loops import MOST_TRIPS
from tcir.dialect.operation import Op
from tcir.dialect.ops.block_scaled import ELEMENT_BITS
from tcir.dialect.warp_map import warp_map_of
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64, i64s
from tcir.passes.emit.diagnostics import SMALLEST_CONV, SMALLEST_MATMUL, match_failure
from tcir.passes.emit.epilogue import Epilogue, Staged, fused, rounded
from tcir.passes.emit.index import Index, constant
from tcir.passes.emit.lanes import LaneValue
from tcir.passes.emit.limits import MMA_N, MMA_N_PAIR, ceil_div, round_up
from tcir.passes.emit.quantise import QUANTISED_COLUMNS, Quantiser, padded_columns
from tcir.passes.emit.tensor_functions import replacement
from tcir.target import DEFAULT_TARGET

Places: TypeAlias = "Callable[[Index], Callable[[Index], list[Index]]]"
"""``places(quarter)(column)``: the indices of lane 0 of a sub-partition, by the tile's column."""
STORE_COLUMNS = 16
"""Columns of D that one ``tc.tmem_ld`` loads to registers."""


@dataclass(frozen=True)
class Source:
    """The op on tensors that a pass tiles, and its function.

    after: the epilogue of the op's result, if any
    quantise: its final ``tc.quantise_blocks``, if any
    """

    function: func.FuncOp
    op: ir.OpView
    after: tc.EpilogueOp | None = None
    quantise: tc.QuantiseBlocksOp | None = None

    def epilogue(
        self,
        arguments: Sequence[ir.Value],
        row_dim: int | None,
        column_dim: int | None = None,
        staged: Staged | None = None,
        group: Index | None = None,
    ) -> Epilogue:
        """The epilogue of a kernel with these `arguments`. Lanes go along `row_dim` of its output
        (None: each lane has its own indices), and columns along `column_dim` (None: the last
        dimension). `staged` and `group` are as in `fused`."""
        if self.after is None:
            wide = self.op.result.type.element_type
            return rounded(wide if self.quantise else arguments[-1].type.element_type)
        inputs = [argument(arguments, each.tensor) for each in self.after.elements]
        return fused(self.after, inputs, row_dim, column_dim, staged, group)

    def column(self, sums: Index) -> Index:
        """The column of the output that belongs to a column of the sums."""
        return index.div(sums, 2) if self.after is not None and self.after.gated else sums

    @property
    def quantised_columns(self) -> int:
        """Number of columns of the sums that are quantised, including the columns whose scales are
        padding; 0 if nothing is quantised."""
        if self.quantise is None:
            return 0
        sums = 2 if self.after is not None and self.after.gated else 1
        return sums * padded_columns(self.quantise)

    def indices(self, places: Places) -> Places:
        """Converts indices of the sums to indices of the output."""

        def of_output(quarter: ir.Value) -> Callable[[ir.Value], list[Index]]:
            at = places(quarter)

            def indices(column: ir.Value) -> list[Index]:
                *rows, first = at(column)
                return [*rows, self.column(first)]

            return indices

        return of_output

    def quantiser(self, arguments: Sequence[ir.Value]) -> Quantiser:
        """The quantiser of the results, in a kernel with these `arguments`."""
        assert self.quantise is not None
        norm = self.quantise.norm
        number = None if norm is None else argument(arguments, norm)
        return Quantiser.create(self.quantise, arguments[-2:], number)


def quantiser_of(result: ir.Value) -> tc.QuantiseBlocksOp | None:
    """The ``tc.quantise_blocks`` that reads a result, or the result of its ``tc.epilogue``; None if
    there is none."""
    users = [use.owner.opview for use in result.uses]
    if len(users) != 1 or users[0].operation.operands[0] != result:
        return None
    (user,) = users
    if isinstance(user, tc.EpilogueOp):
        return quantiser_of(user.out)
    return user if isinstance(user, tc.QuantiseBlocksOp) else None


def find_sources(
    module: ir.Module,
    kind: type[Op],
    pass_name: str,
    epilogues: bool = False,
    others: bool = False,
    computed: Callable[[ir.OpView], None] | None = None,
) -> list[Source]:
    """The op of class `kind` of every function that is not tiled yet; a function without such an op
    is a match failure.

    epilogues: whether a ``tc.epilogue`` of the op's result may follow
    others: whether functions without such an op are instead left to another pass
    computed: checks an op whose operands the function computes; None rejects such functions
    """
    sources = []
    for function in (op for op in module.body.operations if isinstance(op, func.FuncOp)):
        if "tc.kernel" in function.attributes:
            continue
        ops = list(function.regions[0].blocks[0]) if function.regions[0].blocks else []
        wanted = [op for op in ops if isinstance(op, kind)]
        if others and not wanted:
            continue
        if computed is not None and len(wanted) == 1 and wanted[0] in ops:
            made = [op for op in ops[: ops.index(wanted[0])] if _is_computing(op)]
            if made:
                ops = [op for op in ops if op not in made]
                computed(wanted[0])
        if epilogues and (source := _with_epilogue(function, ops, wanted)):
            sources.append(source)
            continue
        if len(wanted) != 1 or len(ops) != 2 or list(ops[1].operands) != list(wanted[0].results):
            names = ", ".join(op.operation.name for op in ops) or "nothing"
            raise match_failure(
                wanted[1] if len(wanted) > 1 else (ops[0] if ops else function),
                f"{pass_name} expected a function of one {kind.OPERATION_NAME} and func.return, "
                f"got {names} (run raise-to-tc first, and use the pipeline for this op; layers "
                "takes convolutions and products in one function)",
                SMALLEST_CONV if kind is tc.Conv2dOp else SMALLEST_MATMUL,
            )
        sources.append(Source(function, wanted[0]))
    return sources


def _is_computing(op: ir.OpView) -> bool:
    """Whether an op before a product computes an operand of it (fuse-operands)."""
    return op.operation.name.partition(".")[0] in ("arith", "linalg", "tensor")


def _with_epilogue(
    function: func.FuncOp, ops: list[ir.OpView], wanted: list[ir.OpView]
) -> Source | None:
    """Matches a function of a wanted op, an epilogue and a quantiser, of which the last two may be
    missing."""
    if len(wanted) != 1 or ops[0] != wanted[0]:
        return None
    rest, last = list(ops[1:-1]), ops[0]
    after = rest[0] if rest and isinstance(rest[0], tc.EpilogueOp) else None
    if after and after.sums == last.result:
        last = rest.pop(0)
    quantise = rest[0] if rest and isinstance(rest[0], tc.QuantiseBlocksOp) else None
    if quantise and quantise.values == last.operation.results[0]:
        last = rest.pop(0)
    returned = list(ops[-1].operands) == list(last.operation.results)
    found = not rest and returned and (after or quantise)
    return Source(function, ops[0], after, quantise) if found else None


def choose_n_tile(op: ir.OpView, option: int, extent: int, cta_group: int = 1) -> int:
    """Number of columns of an output tile: `option` or, if that is 0, the width of equal tiles of
    `extent`, at most 128 for each CTA of the group."""
    legal = MMA_N if cta_group == 1 else MMA_N_PAIR
    if option == 0:
        tiles = ceil_div(extent, 128 * cta_group)
        return round_up(ceil_div(extent, tiles), legal.values[0])
    if option not in legal:
        raise match_failure(
            op,
            f"expected n-tile to be {legal}, got {option} (N of tcgen05.mma.kind::f16 with "
            f"M = {TMEM_LANES * cta_group}, {legal.source}); take {legal.nearest(option)}, or 0 to "
            f"choose; smallest accepted: n-tile={legal.values[0]}",
        )
    return option


def memref_of(tensor: ir.RankedTensorType) -> ir.MemRefType:
    """The contiguous row-major memref of a tensor type; 4- and 6-bit elements are packed."""
    shape, element = list(tensor.shape), tensor.element_type
    bits = ELEMENT_BITS.get(str(element), 8)
    if bits < 8:
        shape[-1] = shape[-1] * bits // 8
        element = ir.IntegerType.get_signless(8)
    return ir.MemRefType.get(shape, element)


@contextmanager
def kernel(
    source: Source,
    grid: Sequence[int],
    warps: int | None = None,
    target: str = DEFAULT_TARGET.name,
    output: ir.MemRefType | None = None,
    cluster: Sequence[int] | None = None,
) -> Iterator[list[ir.Value]]:
    """Replaces the source function by a kernel; yields the kernel's arguments (the inputs, then the
    output).

    warps:  warps of a kernel without roles; by default those of the warp map that ``tc.warp_map``
            of the source function names
    output: memref that the kernel writes, if another kernel writes the function's result
    cluster: CTAs of a cluster

    Inside the context, the insertion point is in the kernel, and new ops get the location of the
    source op.
    """
    for axis, (size, limit) in enumerate(zip(grid, GRID)):
        if size > limit:
            raise match_failure(
                source.op,
                f"expected at most {limit} tiles along grid {'xyz'[axis]}, got {size} (launch "
                "limit); split the problem",
            )
    old = source.function
    types = [memref_of(t) for t in old.type.inputs]
    types += [memref_of(t) for t in old.type.results] if output is None else [output]
    new = replacement(old, types, [])
    new.attributes["tc.kernel"] = ir.UnitAttr.get()
    new.attributes["tc.grid"] = i64s(grid)
    if cluster is not None:
        new.attributes["tc.cluster"] = i64s(cluster)
    if warps is None:
        warps = warp_map_of(new).warps
    new.attributes["tc.block"] = i64s([warps * WARP, 1, 1])
    new.attributes["tc.target"] = ir.StringAttr.get(target)
    block = new.add_entry_block([source.op.location] * len(types))
    with ir.InsertionPoint(block), source.op.location:
        yield list(block.arguments)
        func.ReturnOp([])
    old.operation.erase()


def block_id(axis: str) -> ir.Value:
    """The index of the CTA in the grid."""
    dimension = ir.Attribute.parse(f"#gpu<dim {axis}>")
    return ir.Operation.create(
        "gpu.block_id", results=[ir.IndexType.get()], attributes={"dimension": dimension}
    ).result


def argument(arguments: Sequence[ir.Value], value: ir.Value) -> ir.Value:
    """The kernel's argument for `value`, an argument of the source function."""
    return arguments[ir.BlockArgument(value).arg_number]


def accumulator(n_tile: int, element: ir.Type | None = None) -> ir.Value:
    """Allocates a tensor-memory tile for D, in f32 or in type `element`."""
    kind = tc.TmemType.build([TMEM_LANES, n_tile], element or ir.F32Type.get())
    return tc.TmemTileOp(kind).tile


def zero_of(element: ir.Type) -> ir.Attribute:
    """The constant 0 of a type, as an attribute."""
    floating = isinstance(element, ir.F32Type)
    return ir.FloatAttr.get(element, 0.0) if floating else ir.IntegerAttr.get(element, 0)


def clear_accumulator(d: ir.Value, quarter: ir.Value) -> None:
    """Emits stores of zeros to the lanes of D that belong to sub-partition `quarter`."""
    kind = ir.VectorType.get([QUARTER_LANES, STORE_COLUMNS], d.type.element)
    zero = arith.ConstantOp(
        kind, ir.DenseElementsAttr.get_splat(kind, zero_of(d.type.element))
    ).result
    with loop(d.type.shape[1], STORE_COLUMNS) as column:
        tc.TmemStOp(zero, d, quarter, column)


@contextmanager
def loop(count: int, step: int = 1) -> Iterator[ir.Value]:
    """Builds an ``scf.for`` from 0 to `count`; yields the induction variable."""
    op = scf.ForOp(index.value(0), index.value(count), index.value(step))
    with ir.InsertionPoint(op.body):
        yield op.induction_variable
        scf.YieldOp([])


@contextmanager
def counting_loop(lower: Index, upper: Index, most: int) -> Iterator[ir.Value]:
    """Builds an ``scf.for`` with up to `most` iterations. Its variable continues to count when the
    loop is executed again."""
    op = scf.ForOp(index.value(lower), index.value(upper), index.value(1))
    op.attributes[MOST_TRIPS] = i64(most)
    with ir.InsertionPoint(op.body):
        yield op.induction_variable
        scf.YieldOp([])


class Accumulate:
    """The ``accumulate`` operands of a main loop: false only for the very first mma.

    step: the loop's iteration; None if D is initialised to zero, so that even the first mma
        accumulates
    """

    def __init__(self, step: ir.Value | None) -> None:
        self._always = constant(1, ir.IntegerType.get_signless(1))
        self._next = self._always
        if step is not None:
            self._next = arith.cmpi(arith.CmpIPredicate.ne, step, index.value(0))

    def take(self) -> ir.Value:
        """Returns the operand ``accumulate`` of the next mma in program order."""
        now, self._next = self._next, self._always
        return now


def load_registers(
    d: ir.Value, quarter: ir.Value, column: ir.Value, columns: int = STORE_COLUMNS
) -> ir.Value:
    """Emits a load of `columns` columns of D, for the lanes of a sub-partition, as a register
    tile."""
    return tc.TmemLdOp(
        d, quarter, column, ir.VectorType.get([QUARTER_LANES, columns], d.type.element)
    ).value


def store_tile(
    d: ir.Value,
    out: ir.Value,
    *,
    rows: int,
    along: tuple[int, int | None],
    indices: Places,
    epilogue: Epilogue,
    columns: int = STORE_COLUMNS,
    reads: Places | None = None,
) -> None:
    """Emits stores of the result of `epilogue` on D to `out`, by sub-partition, `columns` columns
    at a time.

    ``indices(quarter)(column)`` are the indices of lane 0 of the sub-partition `quarter`. `along`
    names the dimensions of `out` that lanes and columns follow; None for columns means the last
    dimension.
    reads: indices that the epilogue uses for its reads, if they differ from `indices`
    """
    row_dim, column_dim = along

    def store(value: ir.Value, at: list[Index]) -> None:
        op = tc.StoreRowsOp(value, out, index.values(at), i64(rows), i64(row_dim))
        if column_dim not in (None, out.type.rank - 1):
            op.attributes["column_dim"] = i64(column_dim)

    _store_quarters(d, indices, epilogue, store, columns, reads)


def quantise_tile(
    d: ir.Value,
    quantiser: Quantiser,
    *,
    indices: Places,
    epilogue: Epilogue,
) -> None:
    """Emits stores of the quantised result of `epilogue` on D, 64 columns at a time. `indices` are
    as in `store_tile`."""
    _store_quarters(d, indices, epilogue, quantiser.store, QUANTISED_COLUMNS)


def store_tile_lanes(
    d: ir.Value,
    out: ir.Value,
    *,
    places: Callable[[ir.Value], list[LaneValue]],
    column: Callable[[ir.Value], Index],
    epilogue: Epilogue,
    first: Callable[[ir.Value], list[Index]] | None = None,
    columns: int = STORE_COLUMNS,
) -> None:
    """Like `store_tile`, but each lane has its own indices; a lane whose indices are outside `out`
    stores nothing.

    ``places(quarter)`` are the indices of the sub-partition's lanes, without the column;
    ``first(quarter)`` are the indices of lane 0, which the epilogue uses if lanes are consecutive.
    """
    with loop(QUARTERS) as quarter:
        lanes = [place.value for place in places(quarter)]
        start: list[Index] = [*lanes] if first is None else first(quarter)
        with loop(d.type.shape[1], columns) as n:
            sums = load_registers(d, quarter, n, columns)
            at = index.value(column(n))
            tc.StoreLanesOp(epilogue(sums, [*start, at]), out, lanes, at)


def _store_quarters(
    d: ir.Value,
    indices: Places,
    epilogue: Epilogue,
    store: Callable[[ir.Value, list[Index]], None],
    columns: int = STORE_COLUMNS,
    reads: Places | None = None,
) -> None:
    with loop(QUARTERS) as quarter:
        place = indices(quarter)
        read = None if reads is None else reads(quarter)
        with loop(d.type.shape[1], columns) as column:
            sums = load_registers(d, quarter, column, columns)
            at = place(column)
            store(epilogue(sums, at if read is None else read(column)), at)
