"""Chooses the number of threads that share a row, the part of the row that each thread holds in
registers, and where threads exchange sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tcir._mlir import ir
from tcir.dialect.limits import WARP
from tcir.passes.analysis.row_chain import LONGEST, RowChain, moving
from tcir.passes.emit import narrow, simt
from tcir.passes.emit.limits import ceil_div

RUN = 8
"""The most elements of a run."""
BYTES = 16
"""The most bytes of an access."""
HELD = 16
"""Elements of a row per thread: the threads of a row are as few as hold it so."""
LOADED = 32
"""Elements that a thread loads before it sums them."""
KEPT = 64
"""The most elements of a row that stay in a thread's registers, if the row is then read once."""
FEW_ROWS = 256
"""Rows below which CTAs do not share an SM."""
WIDE_GROUP, TALL_GROUP = (1024, LONGEST >> 10), (256, 128)
"""Threads, and elements that each keeps: of few rows or of the longest, and of long rows of f32,
whose threads have 255 registers then."""
ENOUGH = 1 << 17
"""Threads that keep all SMs loading: 1,024 on each of 132 SMs or so."""
MOST = 512
"""Threads of a group: with more each had fewer than 128 registers."""
WARP_ROW, WARP_ROWS = 1 << 10, 1 << 10
"""Elements of a row that one warp holds faster than several can exchange its sums, and the least
rows, so that every SM has warps."""
FEW = 16
"""Elements that one thread sums faster than several threads can exchange: windows of pooling."""
WARPS_ACROSS = 16
"""Warps of a CTA, each with sums of several cells: few cells are few CTAs, whose loads have to
occupy an SM."""


@dataclass(frozen=True)
class ThreadGroup:
    """The group of threads that reduces a cell: one row, or a run of rows side by side.

    cells:  number of cells
    across: whether neighbours in a warp have different cells
    run:    consecutive elements that a thread loads at once
    size:   threads of a cell, a power of two
    side:   cells of a CTA
    pieces: runs (across: columns) that a thread holds at once
    rounds: number of steps that each take `pieces` runs
    """

    cells: int
    across: bool
    run: int
    size: int
    side: int
    pieces: int
    rounds: int

    @property
    def waits(self) -> bool:
        """Whether no other CTAs can run while a thread waits: all CTAs are on the SMs at once, and
        each thread holds its whole part of a row."""
        few = self.cells * self.size <= ENOUGH
        return few and self.rounds == 1 and not self.across

    @property
    def threads(self) -> int:
        """Number of threads of a CTA."""
        return self.size * self.side

    @property
    def ctas(self) -> int:
        """Number of CTAs of the grid."""
        return ceil_div(self.cells, self.side)

    @property
    def distances(self) -> list[int]:
        """The distances between lanes that exchange sums, in order."""
        first = self.side if self.across else 1
        last = min(WARP, self.threads if self.across else self.size)
        return [1 << n for n in range(5) if first <= 1 << n < last]

    @property
    def warps(self) -> int:
        """Number of warps that share a cell."""
        return max(1, (self.threads if self.across else self.size) // WARP)

    @property
    def writers(self) -> int:
        """The lanes of a warp that hold the sums of different cells and store them."""
        return min(self.side, WARP) if self.across else 1

    def _values(self) -> int:
        """32-bit words of a cell: up to two a value."""
        return 2 * (self.run if self.across else 1)

    def bytes_of(self, sums: int) -> int:
        """Bytes of shared memory that `sums` reductions need."""
        if self.warps == 1:
            return 0
        return sums * (self.threads // WARP) * self.writers * self._values() * 4

    def slot(self, inside: ir.Value, warp: ir.Value, number: int) -> ir.Value:
        """Byte offset in shared memory at which a warp stores its partial result of reduction
        `number`. inside: number of the thread's cell in the CTA"""
        unit = self._values() * 4
        place = simt.mul(warp, self.writers * unit)
        if self.across:
            place = simt.add(place, simt.mul(inside, unit))
        return simt.add(place, number * self.bytes_of(1))

    def slot_of(self, inside: ir.Value, warp: int, number: int) -> ir.Value:
        """Byte offset in shared memory at which warp `warp` of the thread's cell has stored its
        partial result."""
        unit = self._values() * 4
        if self.across:
            place = simt.mul(inside, unit)
            return simt.add(place, warp * self.writers * unit + number * self.bytes_of(1))
        place = simt.mul(inside, self.warps * unit)
        return simt.add(place, warp * unit + number * self.bytes_of(1))

    def words(self, chain: RowChain) -> str:
        """Describes the schedule and its reason, for a remark."""
        count = len(chain.sums)
        sums = f"{count} reduction{'s' if count > 1 else ''} over {prod(chain.columns)} elements"
        if self.across:
            who = (
                f"{self.size} threads share {self.run} adjacent results, {self.side} such groups "
                "per CTA (memory is contiguous across the results)"
            )
        else:
            who = (
                f"{self.size} thread{'s' if self.size > 1 else ''} per row, {self.side} "
                f"row{'s' if self.side > 1 else ''} per CTA (memory is contiguous along rows)"
            )
        held = (
            "elements stay in registers"
            if self.rounds == 1
            else f"each reduction reads the elements again, in {self.rounds} rounds"
        )
        return f"{sums}: {who}; loads of {self.run} element{'s' if self.run > 1 else ''}; {held}"


def group_of(results: Sequence[ir.Value], chain: RowChain) -> ThreadGroup | None:
    """The group of threads for the chain of these results; None if a single thread computes an
    element equally fast."""
    result = results[0]
    shape = result.type.shape
    rows, columns = prod(shape[d] for d in chain.rows), prod(chain.columns)
    along = ("d", chain.rows[-1]) if chain.across else ("c", len(chain.columns) - 1)
    written = [result.type] if chain.across or chain.own else []
    elements = [each.element_type for each in (*moving(chain.loads, along), *written)]
    if result.type.element_type.width < 8 and result.type.element_type.width != 1:
        return None
    if columns < FEW and not chain.own and len(results) == 1:
        return None
    if chain.across:
        return _across(rows, columns, run_of(shape[chain.rows[-1]], elements), bool(chain.own))
    run = run_of(chain.columns[-1] if chain.columns else 1, elements)
    runs = columns // run
    warp = columns <= WARP_ROW and rows >= WARP_ROWS and run > 2
    most, kept = (WARP, KEPT) if warp else _most(rows, columns, elements)
    size = min(most, _power(ceil_div(runs * run, HELD)))
    while rows * size < ENOUGH and size < min(most, _power(runs)):
        size *= 2
    pieces = ceil_div(runs, size)
    rounds = 1
    if pieces * run > kept:
        pieces = LOADED // run
        rounds = ceil_div(runs, pieces * size)
    side = max(1, 128 // size)
    while side > 1 and side * size > WARP and rows * size < ENOUGH and not warp:
        side //= 2
    return ThreadGroup(rows, False, run, size, side, pieces, rounds)


def _most(rows: int, columns: int, elements: Sequence[ir.Type]) -> tuple[int, int]:
    """The most threads of a row and the most elements that each keeps."""
    if MOST * LOADED < columns <= LONGEST and (rows < FEW_ROWS or columns > MOST * KEPT):
        return WIDE_GROUP
    if MOST * LOADED < columns <= prod(TALL_GROUP) and all(e.width == 32 for e in elements):
        return TALL_GROUP
    return MOST, KEPT


def _across(rows: int, columns: int, run: int, own: bool) -> ThreadGroup | None:
    cells = rows // run
    side = WARP
    size = 1
    while cells * size < ENOUGH and size < _power(columns) and size * side < WARPS_ACROSS * WARP:
        if size * side >= 128 and side > 4:
            side //= 2
        size *= 2
    if size == 1 and not own:
        return None
    pieces = min(ceil_div(columns, size), max(1, LOADED // run))
    return ThreadGroup(cells, True, run, size, side, pieces, ceil_div(columns, size * pieces))


def run_of(extent: int, elements: Sequence[ir.Type]) -> int:
    """Number of consecutive elements of a thread along a dimension of `extent`: up to 16 bytes of
    the narrowest type."""
    if not elements or not all(map(narrow.has_runs, elements)):
        return 1
    least = min(max(1, each.width // 8) for each in elements)
    run = min(RUN, BYTES // least)
    while extent % run:
        run //= 2
    return run


def _power(count: int) -> int:
    """The smallest power of two that is not less."""
    return 1 << max(0, count - 1).bit_length()
