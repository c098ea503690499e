"""Operands of the tensor core: K slices of A and B, and the metadata of a sparse A."""

from __future__ import annotations

from collections.abc import Callable

from tcir._mlir import ir
from tcir.dialect.attributes import integer
from tcir.dialect.limits import MMA_K_BYTES, SLICE_COLUMNS
from tcir.interp.tile.compiler import Frame
from tcir.interp.tile.values import SmemTile, TmemTile
from tcir.machine import ElementAddresses, TmemAddr


def matrix_a(
    frame: Frame, a: SmemTile | TmemTile, index: int, row: int | None = None
) -> TmemAddr | ElementAddresses:
    """Returns K slice number `index` of A: 8 columns of tensor memory, or 32 bytes of every row of
    a shared tile. row: the first of 128 rows of the shared tile (None: all rows)
    """
    if isinstance(a, TmemTile):
        return frame.cta_run.tmem_operand(a.address(frame, SLICE_COLUMNS * index))
    if row is None:
        return slice_of(frame, a, index)
    step = MMA_K_BYTES // a.layout.element_bytes
    at = a.layout.elements_from(row, a.base, step * index, step)
    return frame.cta_run.element_operand(at)


def slice_of(
    frame: Frame, tile: SmemTile, index: int, width: int = 1, rows: tuple[int, int] | None = None
) -> ElementAddresses:
    """Returns K slice number `index` of a tile; a slice has `width` times 32 bytes of each row.
    rows: limits the slice to the rows [first, last)
    """
    step = width * MMA_K_BYTES // tile.layout.element_bytes
    at = tile.layout.elements(tile.base, step * index, step, rows)
    return frame.cta_run.element_operand(at)


def metadata_of(op: ir.OpView, slot: int | None) -> Callable[[Frame], int | None]:
    """Returns a function from a frame to the address of the metadata of a sparse A. The function
    returns None if `slot` is None.
    """
    column = 0 if slot is None else integer(op, "metadata_column")

    def address(frame: Frame) -> int | None:
        if slot is None:
            return None
        tile: TmemTile = frame.values[slot]
        return tile.address(frame, column)

    return address
