"""Operands of a warp-level product: their tiles, the copies that fill the tiles, and the fragment
loads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.fragments import loads_for
from tcir.dialect.limits import ATOM_32B, COPY_BYTES, TMA_BOX, TMA_INNER_BOX_MULTIPLE
from tcir.layout.atoms import MmaAtom
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64, tails
from tcir.passes.emit.diagnostics import SMALLEST_MATMUL, match_failure
from tcir.passes.emit.index import Index
from tcir.passes.emit.operand_tiles import TiledOperand, k_major, mn_major
from tcir.passes.warp.swizzle import choose_swizzle, conflicts_of
from tcir.passmanager.remarks import remark
from tcir.target import TARGETS

Copy = Callable[[ir.Value, list[ir.Value], Index, Index], None]


@dataclass(frozen=True)
class WarpMatrix:
    """Operand A or B of the product `op`. sizes: its extents (mn, k); tile: the extents of a CTA's
    tile"""

    op: ir.OpView
    value: ir.Value
    operand: str
    major: str
    sizes: tuple[int, int]
    tile: tuple[int, int]
    atom: MmaAtom
    ldmatrix: bool

    @property
    def element(self) -> ir.Type:
        """Element type."""
        return self.value.type.element_type

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return tc.element_bytes(self.element)

    def ordered(self, pair: tuple[int, int]) -> tuple[int, int]:
        """Orders a pair (mn, k) as (outer, inner)."""
        return pair if self.major == "K" else (pair[1], pair[0])

    @property
    def via(self) -> tuple[str, str]:
        """The instruction that loads fragments, and the reason if that instruction is not
        ldmatrix."""
        if not self.ldmatrix:
            return "loads", "the option ldmatrix is false"
        return loads_for(self.atom.name, self.operand, self.major, self.bytes)

    @property
    def smem_type(self) -> tc.SmemType:
        """Type of a tile in the layout that TMA fills."""
        return (k_major if self.major == "K" else mn_major)(*self.tile, self.element)


def tma_obstacle(matrix: WarpMatrix, target: str) -> str:
    """Reason why TMA of `target` cannot fill the tiles of `matrix`; "" if it can."""
    row = matrix.ordered(matrix.sizes)[1] * matrix.bytes
    if row % TMA_INNER_BOX_MULTIPLE:
        return (
            f"rows of {matrix.operand} have {row} bytes, TMA addresses global memory in units of "
            f"{TMA_INNER_BOX_MULTIPLE}"
        )
    outer, inner = matrix.ordered(matrix.tile)
    kind = matrix.smem_type
    if kind.swizzle == ATOM_32B and not TARGETS[target].tma_atoms:
        return (
            f"tiles of {matrix.operand}, {matrix.major}-major and of {matrix.element}, need the "
            f"swizzle {ATOM_32B} to be read without bank conflicts, which TMA of {target} does not "
            "have"
        )
    whole = inner * matrix.bytes % kind.span == 0 and (matrix.major == "MN" or kind.rows == outer)
    if not whole or outer not in TMA_BOX:
        spans = f"{kind.span}" if kind.swizzle == ATOM_32B else "32, 64 or 128"
        return (
            f"the tile of {matrix.operand} has {outer} rows of {inner * matrix.bytes} bytes, TMA "
            f"fills rows of {spans} bytes, at most {TMA_BOX.values[-1]}"
        )
    left = conflicts_of(kind, matrix.atom.name, matrix.operand, matrix.via[0])
    if left:
        return f"the swizzle of TMA leaves {left} bank conflicts in the loads of {matrix.operand}"
    return ""


@dataclass(frozen=True)
class LoadedMatrix:
    """A matrix operand with the type of its tiles and the copies that fill them."""

    matrix: WarpMatrix
    type: tc.SmemType | tc.StagedType
    fill: Copy

    @staticmethod
    def by_tma(matrix: WarpMatrix, tensor: ir.Value, batch: int) -> LoadedMatrix:
        """The operand whose tiles are filled by boxes of a tensor map, which is built here. batch:
        extent of the batch, or 0"""
        mn, k = matrix.sizes
        order = ("k", "mn") if matrix.major == "K" else ("mn", "k")
        extents = {"mn": mn, "k": k, "batch": batch}
        names = (*order, "batch") if batch else order
        tiled = TiledOperand.create(tensor, names, extents, *matrix.tile)

        def fill(tile: ir.Value, at: list[ir.Value], mn: Index, k: Index) -> None:
            tiled.load(tile, {"mn": mn, "k": k, **({"batch": at[0]} if at else {})})

        return LoadedMatrix(matrix, tiled.type, fill)

    @staticmethod
    def by_cp_async(matrix: WarpMatrix, tensor: ir.Value) -> LoadedMatrix:
        """The operand whose tiles threads fill, 4 to 16 bytes at a time, with the swizzle that is
        best for the fragment loads."""
        (outer, inner), (tile_outer, tile_inner) = map(matrix.ordered, (matrix.sizes, matrix.tile))
        width = _copy_width(matrix, inner * matrix.bytes, tile_inner * matrix.bytes)
        swizzle, left = choose_swizzle(
            list(matrix.tile), matrix.element, matrix.major, width, matrix.atom.name,
            matrix.operand, matrix.via[0],
        )  # fmt: skip
        if left:
            remark(
                matrix.op,
                f"{matrix.operand}: no swizzle frees the tile of bank conflicts, {left} are left",
            )
        past = tails(outer % tile_outer != 0, inner % tile_inner != 0)

        def fill(tile: ir.Value, at: list[ir.Value], mn: Index, k: Index) -> None:
            first = [*at, *index.values(list(matrix.ordered((mn, k))))]
            tc.CpAsyncOp(tensor, first, tile, i64(width), ir.StringAttr.get(past))

        kind = tc.StagedType.build(list(matrix.tile), matrix.element, matrix.major, swizzle)
        return LoadedMatrix(matrix, kind, fill)

    def load(self, tile: ir.Value, k: int) -> ir.Value:
        """Builds ``tc.load_fragment`` of the columns of `tile` from `k` on."""
        matrix = self.matrix
        fragment = tc.FragmentType.build(
            [matrix.tile[0], matrix.atom.shape[2]],
            matrix.element,
            matrix.operand,
            matrix.atom.name,
        )
        via = ir.StringAttr.get(matrix.via[0])
        return tc.LoadFragmentOp(tile, i64(k), via, fragment).fragment


def _copy_width(matrix: WarpMatrix, row: int, tile_row: int) -> int:
    for width in reversed(COPY_BYTES):
        if row % width == 0 and tile_row % width == 0:
            return width
    raise match_failure(
        matrix.op,
        f"expected rows of {matrix.operand} of a multiple of {COPY_BYTES[0]} bytes, got {row} "
        f"(cp.async copies {COPY_BYTES} bytes from addresses that are multiples of that, PTX ISA "
        "9.7.9.25.3); pad the innermost dimension with zeros",
        SMALLEST_MATMUL,
    )
