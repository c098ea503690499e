"""Effects of a tcgen05.mma on the memories of CTAs, without hazard checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.machine.memory.effects import Effect, SharedBytes, TensorWords
from tcir.machine.memory.tensor_memory import LANES, UNSPECIFIED_HALF, Lanes
from tcir.machine.numerics.exact_f32 import add_exactly
from tcir.machine.numerics.fused import FusedParams
from tcir.machine.numerics.fused_chain import add_in_steps
from tcir.machine.numerics.types import MmaTypes
from tcir.machine.tensor_core.d_lanes import Words, join_columns, stack_columns
from tcir.machine.tensor_core.issued_mma import LostWords
from tcir.machine.tensor_core.mma_operands import Codes, OperandSource
from tcir.machine.tensor_core.pipe import Places

EVERY_LANE = np.arange(LANES)
LONGEST, BLOCK = 8, 16
"""Largest numbers of mma in a chain, and of CTAs whose operands are in memory together."""
Operands = tuple[tuple[Codes, ...], NDArray[np.bool_]]


@dataclass(frozen=True)
class Fused:
    """A fused sum with an f32 result: its types and constants."""

    types: MmaTypes
    params: FusedParams


@dataclass(frozen=True)
class MmaArithmetic:
    """The functions that compute D from the operands of an mma.

    checked:  ``(A, B, D or None, cta, lost)``, with the machine's checks; `lost` receives the
              undefined parts of further operands, `cta` is 0 or 1
    reads:    places of the further operands, for the order of operations
    multiply: computes the same without checks, ``(A, B, D or None, *operands)``; None: not
        available
    operands: returns the further operands in tensor memory (codes [..., …] for each operand), and
        for each CTA whether the machine would report nothing about them
    together: whether A, B and D of `multiply` may have a leading axis
    fused:    description of `multiply` with which `add_exactly` can compute the same; None: it
              cannot
    """

    checked: Callable[[Codes, Codes, Words | None, int, LostWords], Words]
    reads: Places = ()
    multiply: Callable[..., Words] | None = None
    operands: Callable[[TensorWords], Operands] | None = None
    together: bool = False
    fused: Fused | None = None


@dataclass(frozen=True)
class Accumulator:
    """Place of D in tensor memory.

    every:   lanes of all rows; lanes: the lanes that are written
    columns: columns that D occupies
    parts:   number of parts into which D's columns are divided; each part is on other lanes
    enabled: the rows that are written; None: all
    """

    every: Lanes
    lanes: Lanes
    columns: slice
    parts: int
    enabled: NDArray[np.bool_] | None
    d_type: str

    def whole_lanes(self) -> NDArray[np.int64] | None:
        """Returns the lane of each row; None if a row is split over several lanes, or if some rows
        are not written.
        """
        return None if self.parts > 1 or self.enabled is not None else EVERY_LANE[self.every]

    def over(self, other: Accumulator) -> bool:
        """Whether the two accumulators consist of the same words, with each row in one lane."""
        own, lanes = self.whole_lanes(), other.whole_lanes()
        same = own is not None and lanes is not None and np.array_equal(own, lanes)
        return same and self.columns == other.columns

    def read(self, words: TensorWords) -> Words:
        """Reads D of one CTA, [rows, n]."""
        return join_columns(words[self.every, self.columns], self.parts)

    def read_all(self, words: TensorWords) -> Words:
        """Reads D of all CTAs, [CTAs, rows, n]."""
        if self.parts == 1:
            return np.ascontiguousarray(words[:, self.every, self.columns])
        return np.stack([self.read(one) for one in words])

    def write(self, words: TensorWords, product: Words) -> None:
        """Stores D of one CTA. No document describes the upper half of a word that contains an
        f16.
        """
        result = stack_columns(product, self.parts)
        if self.d_type == "f16":
            result |= UNSPECIFIED_HALF
        words[self.lanes, self.columns] = result if self.enabled is None else result[self.enabled]


class MmaEffect:
    """The `Effect` of one mma (`tcir.machine.memory.effects`)."""

    def __init__(
        self,
        a: OperandSource,
        b: OperandSource,
        d: Accumulator,
        arithmetic: MmaArithmetic,
        adds: bool,
        shifts: tuple[NDArray[np.int64], slice] | None,
    ) -> None:
        """adds: whether D is added. shifts: source lanes and columns of `.ashift`."""
        self.a, self.b, self.d, self.arithmetic = a, b, d, arithmetic
        self.adds, self.shifts = adds, shifts
        self.same_b = False
        """Whether B is the same in all CTAs."""

    def of_one_cta(self, cta_group: int, zeros: bool) -> MmaEffect | None:
        """Returns this effect. Returns None if `apply` cannot execute it: for an mma of a pair,
        with zero columns, or without unchecked arithmetic.
        """
        whole = self.a.codes is not None and self.arithmetic.multiply is not None
        return self if whole and cta_group == 1 and not zeros else None

    def varies(self, shared: NDArray[np.bool_]) -> None:
        self.same_b = not shared[self.b.where].any()

    def then(self, other: Effect) -> Effect | None:
        return MmaChain((self,)).then(other)

    def apply(self, smem: SharedBytes, tmem: TensorWords) -> NDArray[np.bool_] | None:
        if self.arithmetic.fused is None:
            blocks = [slice(n, n + BLOCK) for n in range(0, len(tmem), BLOCK)]
            well = [self.multiply(smem[block], tmem[block]) for block in blocks]
            return None if well[0] is None else np.concatenate([x for x in well if x is not None])
        add_together((self,), smem, tmem)
        return None

    def shift(self, tmem: TensorWords) -> None:
        """Executes `.ashift` on the columns of A."""
        if self.shifts is not None:
            source, moved = self.shifts
            tmem[:, :, moved] = tmem[:, source, moved]

    def codes(self, smem: SharedBytes, tmem: TensorWords) -> tuple[Codes, Codes]:
        """Returns A and B, each [CTAs, rows, K]. A B that all CTAs share is [1, rows, K]."""
        assert self.a.codes is not None and self.b.codes is not None
        b = self.b.codes(smem[:1] if self.same_b else smem, tmem)
        return self.a.codes(smem, tmem), b

    def joins(self, other: MmaEffect) -> bool:
        """Whether this product, which is issued right after `other`, and `other` can be added to D
        as one sum.
        """
        return (
            self.adds
            and self.shifts is None
            and other.shifts is None
            and self.a.elements is not None  # D is no operand
            and self.arithmetic.fused is not None
            and self.arithmetic.fused == other.arithmetic.fused
            and self.same_b == other.same_b
            and self.d.over(other.d)
        )

    def multiply(self, smem: SharedBytes, tmem: TensorWords) -> NDArray[np.bool_] | None:
        """Executes `apply` with the unchecked function `MmaArithmetic.multiply`."""
        multiply = self.arithmetic.multiply
        assert multiply is not None
        av, bv = self.codes(smem, tmem)
        of = self.arithmetic.operands
        more, well = of(tmem) if of is not None else ((), None)
        before = self.d.read_all(tmem) if self.adds else None
        if self.same_b and not more:
            # All CTAs multiply by one B: their rows of A are those of one product.
            flat = None if before is None else before.reshape(-1, before.shape[-1])
            product = multiply(av.reshape(-1, av.shape[-1]), bv[0], flat)
            products = product.reshape(*av.shape[:2], -1)
        elif self.arithmetic.together:
            products = multiply(av, np.broadcast_to(bv, (len(av), *bv.shape[1:])), before, *more)
        else:
            products = np.stack(
                [
                    multiply(
                        a,
                        bv[0 if self.same_b else n],
                        None if before is None else before[n],
                        *(operand[n] for operand in more),
                    )
                    for n, a in enumerate(av)
                ]
            )
        for words, product in zip(tmem, products, strict=True):
            self.d.write(words, product)
        self.shift(tmem)
        return well


class MmaChain:
    """The `Effect` of consecutive mma that add to one D (`tcir.machine.memory.effects`)."""

    def __init__(self, parts: Sequence[MmaEffect]) -> None:
        self.parts = parts

    def varies(self, shared: NDArray[np.bool_]) -> None:
        pass  # each part has been told

    def then(self, other: Effect) -> Effect | None:
        if (
            len(self.parts) < LONGEST
            and isinstance(other, MmaEffect)
            and other.joins(self.parts[0])
        ):
            return MmaChain((*self.parts, other))
        return None

    def apply(self, smem: SharedBytes, tmem: TensorWords) -> None:
        add_together(self.parts, smem, tmem)


def add_together(parts: Sequence[MmaEffect], smem: SharedBytes, tmem: TensorWords) -> None:
    """Adds several products to one D. For each block of CTAs whose sums are exact in any order, the
    products are computed as one float32 product.
    """
    for start in range(0, len(tmem), BLOCK):
        block = slice(start, start + BLOCK)
        if not _at_once(parts, smem[block], tmem[block]):
            for part in parts:
                part.multiply(smem[block], tmem[block])


def _at_once(parts: Sequence[MmaEffect], smem: SharedBytes, tmem: TensorWords) -> bool:
    first = parts[0]
    fused, lanes = first.arithmetic.fused, first.d.whole_lanes()
    if fused is None or lanes is None:
        return False
    codes = [part.codes(smem, tmem) for part in parts]
    a, b = (np.stack(of, axis=-2) for of in zip(*codes, strict=True))
    how = lanes, first.d.columns.start, fused.types, fused.params, first.adds
    if not add_exactly(_joined(a), _joined(b), tmem, *how) and not (
        first.arithmetic.together and add_in_steps(a, b, tmem, *how)
    ):
        return False
    parts[-1].shift(tmem)
    return True


def _joined(codes: Codes) -> Codes:
    """Codes [CTAs, rows, steps, K] as [CTAs, rows, steps · K]."""
    return codes.reshape(*codes.shape[:2], -1)
