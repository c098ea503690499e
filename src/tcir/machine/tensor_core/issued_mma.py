"""One tcgen05.mma after its issue: its effects when it completes, and the results that a race makes
undefined.

The tensor core computes a row of D from a row of A, and a column of D from a row of B. A write that
races with the mma's reads of some rows therefore leaves only the corresponding rows and columns of
D undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.machine.memory.tensor_memory import (
    POISON_WORD,
    UNSPECIFIED_HALF,
    Accumulation,
    Lanes,
    TensorMemory,
)
from tcir.machine.memory.undefined import Origin, Undefined
from tcir.machine.order.clocks import Access
from tcir.machine.order.ordering import PipeProduct
from tcir.machine.order.shadow import Shadow
from tcir.machine.tensor_core.d_lanes import Words, join_columns, stack_columns
from tcir.machine.tensor_core.mma_operands import Codes, OperandPlace, OperandSource
from tcir.machine.tensor_core.pipe import Missing, Pipe
from tcir.machine.tensor_core.zero_columns import ZeroColumns

Mask = NDArray[np.bool_]


def poison(d_type: str) -> np.uint32:
    """Returns the value that D gets if an operand is undefined: a NaN, if D's type has one."""
    return np.uint32(0x7FFF if d_type == "f16" else POISON_WORD)


class LostWords:
    """The words of D [rows, columns] that depend on an undefined operand."""

    def __init__(self, rows: int, columns: int) -> None:
        self.where = np.zeros((rows, columns), bool)
        self.origin: Origin | None = None

    def rows(self, missing: Missing) -> None:
        """Marks the rows of D that depend on an undefined row of A."""
        if missing is not None:
            self.where[missing.where], self.origin = True, missing.origin

    def columns(self, missing: Missing) -> None:
        """Marks the columns of D that depend on an undefined row of B."""
        if missing is not None:
            self.where[:, missing.where], self.origin = True, missing.origin

    def words(self, missing: Undefined | None) -> None:
        """Marks the undefined words of the accumulator."""
        if missing is not None:
            self.where |= missing.where
            self.origin = missing.origin


@dataclass(frozen=True)
class AccumulatorPlace:
    """Place of D in tensor memory: `rows` rows per CTA and n columns, in `columns`.

    lanes: all lanes that contain D. parts: number of parts into which D's columns are divided; each
        part is on other lanes. zeros: see `zero_columns`.
    """

    rows: int
    n: int
    parts: int
    lanes: Lanes
    columns: slice
    d_type: str
    zeros: ZeroColumns | None = None


@dataclass(frozen=True)
class MmaPart:
    """One CTA's part of an mma.

    a, b: operands in shared memory. lanes: lanes of D that the mma writes; on: mask of these lanes
        among all lanes of D (None: all).
    """

    tmem: TensorMemory
    a: OperandPlace | None
    b: OperandPlace | None
    lanes: Lanes
    on: Mask | None


Multiply = Callable[[Codes, Codes, Words | None, int, LostWords], Words]
Shift = tuple[NDArray[np.int64], slice]
"""Source lanes and columns: arguments of `shift_lanes`."""


class IssuedMma:
    """An issued mma of a CTA or a pair: D = multiply(A, B, D). sources: A and B in each CTA."""

    access: Access

    def __init__(
        self,
        pipe: Pipe,
        d: AccumulatorPlace,
        parts: Sequence[MmaPart],
        sources: Sequence[tuple[OperandSource, OperandSource]],
        multiply: Multiply,
        site: object,
    ) -> None:
        self.pipe, self.d, self.parts, self.multiply, self.site = pipe, d, parts, multiply, site
        self.add_d = False
        self.shift: Shift | None = None
        """Shift by `.ashift`; None: none."""
        self._sources = sources
        """Emptied at completion, because the sources are large."""
        self._raced: list[tuple[list[Mask], Origin]] = []

    # --- what it does ----------------------------------------------------------------------------

    def run(self) -> None:
        """Reads A, B and D, and writes D."""
        bv, missing_columns = _stacked([b.read() for _, b in self._sources])
        if self.d.zeros is not None:
            bv, missing_columns = self.d.zeros.spread(bv, missing_columns)
        for number, (a, _) in enumerate(self._sources):
            self._run(number, a, bv, missing_columns)
        self._sources = ()
        for masks, origin in self._raced:
            for part, mask in zip(self.parts, masks, strict=True):
                self._lose(part, mask, origin)

    def _run(self, number: int, a: OperandSource, bv: Codes, missing_columns: Missing) -> None:
        place, part = self.d, self.parts[number]
        tmem = part.tmem
        av, missing_rows = a.read()
        d, before, lost = None, None, LostWords(place.rows, place.n)
        if self.add_d:
            where = (place.lanes, place.columns)
            before = tmem.missing(where, self.pipe.origin("accumulator", self.site))
            if before is not None:
                lost.words(Undefined(join_columns(before.where, place.parts), before.origin))
            d = join_columns(tmem.words[where], place.parts)
        product = self.multiply(av, bv, d, number, lost)
        lost.rows(missing_rows)
        lost.columns(missing_columns)
        undefined = None
        if lost.origin is not None:
            product[lost.where] = poison(place.d_type)
            undefined = Undefined(stack_columns(lost.where, place.parts), lost.origin)
        result = stack_columns(product, place.parts)
        if place.d_type == "f16":
            result |= UNSPECIFIED_HALF
        if part.on is not None:
            result, undefined = result[part.on], undefined and undefined.of(part.on)
            before = before and before.of(part.on)
        tmem.words[part.lanes, place.columns] = result
        tmem.written((part.lanes, place.columns), undefined, self.site, before)
        if self.shift is not None:
            shift_lanes(tmem, *self.shift)

    # --- what a race takes of it -----------------------------------------------------------------

    def begin(self, access: Access) -> None:
        """Notes that the mma was issued; `access` is its access."""
        self.access = access
        assert isinstance(access.target, PipeProduct)
        self._accumulator = access.target.accumulator
        self._sums = [
            part.tmem.accumulate(
                self._accumulator, self.d.columns, anew=not self.add_d and part.on is None
            )
            for part in self.parts
        ]

    def reads(self, shadow: Shadow, words: NDArray[np.int64]) -> str:
        """Describes the rows of A and B that the mma reads from these words of shared memory."""
        operands = [("A", part.a) for part in self.parts] + [("B", part.b) for part in self.parts]
        found = [(name, _rows(operand, shadow, words)) for name, operand in operands]
        return " and ".join(
            f"rows {_runs(rows)} of {name}"
            for name, rows in found
            if rows is not None and rows.any()
        )

    def lose(self, shadow: Shadow, words: NDArray[np.int64], origin: Origin) -> bool:
        """Makes undefined the results that depend on these words of shared memory, because a write
        of the words races with the mma.

        Returns False if the results have already been read, or if they have been overwritten by an
        operation other than further sums of the same accumulator.
        """
        masks = self._depending(shadow, words)
        if self._sources:
            self._raced.append((masks, origin))
            return True
        found = list(zip(self.parts, self._sums, masks, strict=True))
        if not all(self._unused(part, sums, mask) for part, sums, mask in found):
            return False
        for part, sums, mask in found:
            if part.tmem.accumulations[self._accumulator] is sums:  # else another one is there now
                self._lose(part, mask, origin)
        return True

    def _depending(self, shadow: Shadow, words: NDArray[np.int64]) -> list[Mask]:
        """For each CTA, a mask of the words of D [lanes, columns] that are computed from these
        words."""
        halves = [_rows(part.b, shadow, words) for part in self.parts]
        size = (self.d.n if self.d.zeros is None else int(self.d.zeros.kept.sum())) // len(halves)
        columns = np.concatenate([np.zeros(size, bool) if h is None else h for h in halves])
        if self.d.zeros is not None:
            kept = columns
            columns = np.zeros(self.d.n, bool)
            columns[self.d.zeros.kept] = kept
        masks = []
        for part in self.parts:
            mask = np.broadcast_to(columns, (self.d.rows, self.d.n)).copy()
            if (rows := _rows(part.a, shadow, words)) is not None:
                mask[rows] = True
            mask = stack_columns(mask, self.d.parts)
            masks.append(mask if part.on is None else mask[part.on])
        return masks

    def _unused(self, part: MmaPart, sums: Accumulation, mask: Mask) -> bool:
        """Whether only further sums of this accumulator can have used these words."""
        if sums.was_read(mask, part.lanes):
            return False
        assert part.tmem.shadow is not None
        return all(
            isinstance(last.target, PipeProduct) and last.target.accumulator == self._accumulator
            for last in part.tmem.shadow.writers_at((part.lanes, self.d.columns))
        )

    def _lose(self, part: MmaPart, mask: Mask, origin: Origin) -> None:
        tmem, where = part.tmem, (part.lanes, self.d.columns)
        if mask.any():
            half = UNSPECIFIED_HALF if self.d.d_type == "f16" else 0
            tmem.words[where] = np.where(mask, poison(self.d.d_type) | half, tmem.words[where])
            tmem.lose(where, Undefined(mask, origin), self.site)


def _stacked(halves: list[tuple[Codes, Missing]]) -> tuple[Codes, Missing]:
    """Concatenates B of a pair: the even CTA's rows, then the odd one's."""
    if len(halves) == 1:
        return halves[0]
    missing: Missing = None
    if origins := [m.origin for _, m in halves if m is not None]:
        rows = [np.zeros(len(b), bool) if m is None else m.where for b, m in halves]
        missing = Undefined(np.concatenate(rows), origins[0])
    return np.concatenate([b for b, _ in halves]), missing


def shift_lanes(tmem: TensorMemory, source: NDArray[np.int64], columns: slice) -> None:
    """In these columns, moves the words of lane ``source[l]`` to lane l."""
    tmem.words[:, columns] = tmem.words[source, columns]
    tmem.moved((slice(None), columns), (source, columns))


def _rows(
    operand: OperandPlace | None, shadow: Shadow, words: NDArray[np.int64]
) -> NDArray[np.bool_] | None:
    """Mask of an operand's rows with an element in these words of a shared memory; None: the
    operand is elsewhere."""
    if operand is None or operand.shadow is not shadow or not words.size:
        return None
    return operand.rows(words)


def _runs(chosen: Mask) -> str:
    """Formats row numbers as "0..3, 8"."""
    edges = np.flatnonzero(np.diff(chosen, prepend=False, append=False)).tolist()
    spans = zip(edges[::2], edges[1::2], strict=True)
    return ", ".join(f"{a}..{b - 1}" if b - a > 1 else f"{a}" for a, b in spans)
