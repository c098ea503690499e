"""The option `epilogue-tile`: which tiles are legal, which tile is chosen, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import QUARTER_LANES, TMEM_LANES, TMEM_LD_NUM
from tcir.errors import InputError
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.limits import MMA_N
from tcir.passes.emit.quantise import QUANTISED_COLUMNS
from tcir.passes.emit.staged_store import EpilogueTile, staged_tile
from tcir.passes.emit.tile_kernel import STORE_COLUMNS, Source

AUTO = "auto"
ROWS = (QUARTER_LANES, 2 * QUARTER_LANES, TMEM_LANES)
"""Rows of a tile: those of one, two or four warps, each of which reads its own 32 lanes."""
LOADED = tuple(n for n in TMEM_LD_NUM["32x32b"].values if n >= STORE_COLUMNS)
"""Columns that a thread can load and store at a time."""


@dataclass(frozen=True)
class TileStores:
    """How a kernel's results are stored, one `tile` at a time.

    stages: number of buffers from which TMA stores in turn; 0 if threads store
    why: the reason why this tile was chosen
    """

    tile: EpilogueTile
    stages: int
    why: str

    @staticmethod
    def of(
        source: Source, option: str, n_tile: int, stages: int, staged_rows: int = 0
    ) -> TileStores:
        """The tile that the `option` states or that the rule of ``auto`` chooses; raises a match
        failure for an illegal tile. staged_rows: the only legal number of rows with store=tma; 0:
        any number"""
        given = parse(option)
        if given is not None:
            _check_divides(source.op, given, n_tile)
            if not stages:
                _check_stored_by_threads(source, given)
            elif staged_rows and given.rows != staged_rows:
                raise match_failure(
                    source.op,
                    f"expected epilogue-tile={staged_rows}xN with store=tma, got {given}: rows of "
                    f"an image do not begin at the same lanes as a tile of {given.rows} rows; "
                    f"take epilogue-tile={staged_rows}x{given.columns}",
                )
            return TileStores(given, stages, "as the option says")
        if stages:
            tile = staged_tile(n_tile, source.function.type.results[0].element_type)
            tile = EpilogueTile(staged_rows or tile.rows, tile.columns)
            rows = "a warp's rows" if tile.warps == 1 else "all rows"
            why = f"auto: {rows}, the widest swizzle span that divides a tile's"
            return TileStores(tile, stages, why)
        columns = STORE_COLUMNS if source.quantise is None else QUANTISED_COLUMNS
        return TileStores(
            EpilogueTile(TMEM_LANES, columns), 0, "auto: all rows, as threads store them"
        )

    def staged_bytes(self, element: ir.Type) -> int:
        """Bytes of shared memory for the tiles from which TMA stores."""
        return self.stages * TMEM_LANES * self.tile.columns * tc.element_bytes(element)

    def __str__(self) -> str:
        tile, held = self.tile, f"{self.tile.columns} sums in registers of a thread"
        if self.stages:
            warps = "a warp stores each" if tile.warps == 1 else f"{tile.warps} warps share each"
            held = f"{TMEM_LANES // tile.rows * self.stages} in shared memory, {warps}"
        return f"epilogue-tile={tile} ({self.why}; {held})"


def parse(text: str) -> EpilogueTile | None:
    """Parses the value ``MxN`` of the option; returns None for ``auto`` and raises InputError for
    other text."""
    if text == AUTO:
        return None
    match = re.fullmatch(r"(\d+)x(\d+)", text)
    made = EpilogueTile(*map(int, match.groups())) if match else None
    if made is None or made.rows not in ROWS or made.columns not in MMA_N:
        rows = ", ".join(map(str, ROWS))
        raise InputError(
            f"expected epilogue-tile=auto or MxN, with M one of {rows} (a warp reads 32 lanes of "
            f"tensor memory, PTX ISA 9.7.16.8) and N {MMA_N}, got {text}; take epilogue-tile=auto"
        )
    return made


def _check_divides(op: ir.OpView, tile: EpilogueTile, n_tile: int) -> None:
    if n_tile % tile.columns:
        raise match_failure(
            op,
            f"the columns of epilogue-tile must divide n-tile={n_tile}, got {tile}: the last tile "
            "would otherwise read tensor memory past the accumulator; take "
            f"epilogue-tile={tile.rows}x{STORE_COLUMNS}",
        )


def _check_stored_by_threads(source: Source, tile: EpilogueTile) -> None:
    op, smallest = source.op, f"epilogue-tile={TMEM_LANES}x{STORE_COLUMNS}"
    if tile.rows != TMEM_LANES:
        raise match_failure(
            op,
            f"expected epilogue-tile={TMEM_LANES}xN with store=direct, got {tile}: each of the "
            "four warps stores its own 32 rows from registers, all at the same time, so there is "
            f"no staging buffer for fewer rows; take store=tma or {smallest}",
        )
    if source.quantise is not None and tile.columns != QUANTISED_COLUMNS:
        raise match_failure(
            op,
            f"expected epilogue-tile={TMEM_LANES}x{QUANTISED_COLUMNS} for results that are "
            f"quantised, got {tile}: a thread stores the scales of {QUANTISED_COLUMNS} columns "
            "together; leave it out",
        )
    if tile.columns not in LOADED:
        legal = ", ".join(map(str, LOADED))
        raise match_failure(
            op,
            f"expected {legal} columns of epilogue-tile with store=direct, got {tile}: one "
            "tcgen05.ld.32x32b loads a power of two of columns, each into a register of the "
            f"thread (PTX ISA 9.7.16.8.1); take {smallest}",
        )
