"""The end of a GEMV kernel: the columns of D that belong to B's own columns, without padding, are
multiplied by the global scales and stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tcir._mlir import ir, memref
from tcir.dialect import tc
from tcir.dialect.limits import QUARTER_LANES, QUARTERS
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64
from tcir.passes.emit.epilogue import NO_COLUMNS, Epilogue, rounded
from tcir.passes.emit.index import Index
from tcir.passes.emit.scaled_shape import ScaledShape
from tcir.passes.emit.tile_kernel import (
    STORE_COLUMNS,
    Source,
    load_registers,
    loop,
)
from tcir.passes.kernels.block_scaled import BlockScaledProduct


@dataclass(frozen=True)
class GemvResult:
    """Where and how a result is stored: `out` as ``[batch, M, N]``, and the epilogue of the sums,
    to which `finish` adds computations that precede it in the kernel.

    least: least number of columns of a register tile: NVVM loads vectors of at least two, and a
        register holds four bytes
    """

    out: ir.Value
    epilogue: Epilogue
    finish: Callable[[Epilogue], Epilogue]
    least: int = 2

    @staticmethod
    def create(
        source: Source, arguments: list[ir.Value], product: BlockScaledProduct
    ) -> GemvResult:
        """The result of a kernel that stores it itself; it is the last of the kernel's
        `arguments`."""
        dims = dimensions(source.op)
        columns = dims.index(COLUMNS) if COLUMNS in dims else NO_COLUMNS
        inner = source.epilogue(arguments, dims.index(ROWS), columns)

        def epilogue(sums: ir.Value, at: Sequence[Index]) -> ir.Value:
            return inner(sums, [at[dim] for dim in dims])

        least = 4 if source.after is not None and _has_bytes(source.after) else 2
        out = three_dimensional(arguments[-1], product.stage.shape)
        return GemvResult(out, epilogue, product.finish, least)

    @staticmethod
    def of_sums(out: ir.Value) -> GemvResult:
        """The result of a kernel that stores partial sums, which another kernel adds up."""
        return GemvResult(out, rounded(out.type.element_type), lambda sums: sums)

    def store(self, d: ir.Value, indices: Callable[[ir.Value], list[Index]]) -> None:
        """Stores the columns to `out`. ``indices(quarter)`` are the indices of lane 0 of that
        sub-partition."""
        columns = max(
            self.least, min(STORE_COLUMNS, 1 << (self.out.type.shape[-1] - 1).bit_length())
        )
        epilogue = self.finish(self.epilogue)
        with loop(QUARTERS) as quarter:
            at = indices(quarter)
            for first in range(0, self.out.type.shape[-1], columns):
                sums = load_registers(d, quarter, index.value(first), columns)
                place = index.values([*at[:-1], index.add(at[-1], first)])
                value = epilogue(sums, place)
                tc.StoreRowsOp(value, self.out, place, i64(QUARTER_LANES), i64(1))


def _has_bytes(after: tc.EpilogueOp) -> bool:
    kinds = [r.type for op in after.body.blocks[0] for r in op.operation.results]
    return any(tc.element_bytes(kind) == 1 for kind in kinds)


BATCH, ROWS, COLUMNS = range(3)


def dimensions(op: tc.BlockScaledMatmulOp) -> list[int]:
    """For each dimension of the result, the dimension of ``[batch, M, N]`` that it is."""
    batch = [BATCH] if op.a.type.rank == 3 else []
    return [*batch, ROWS, *([COLUMNS] if op.b.type.rank == op.a.type.rank else [])]


def three_dimensional(out: ir.Value, shape: ScaledShape) -> ir.Value:
    """`out` as ``[batch, M, N]``: missing dimensions are added with extent 1."""
    full = [shape.batch, shape.m, shape.n]
    have = list(out.type.shape)
    if have == full:
        return out
    groups: list[list[int]] = []
    rest = list(range(len(full)))
    for extent in have:
        groups.append([rest.pop(0)])
        while extent != _product(full, groups[-1]):
            groups[-1].append(rest.pop(0))
    groups[-1] += rest
    type_ = ir.MemRefType.get(full, out.type.element_type)
    return memref.ExpandShapeOp(type_, out, _attribute(groups), [], full).result


def _attribute(groups: list[list[int]]) -> ir.ArrayAttr:
    i64_ = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(i64_, n) for n in group]) for group in groups]
    )


def _product(full: list[int], group: list[int]) -> int:
    product = 1
    for dimension in group:
        product *= full[dimension]
    return product
