"""Draws inputs over the full range of their formats, and with special values, for programs whose
sums round.

An element counts as checked if its bound is finite, or if it is certain whether it is NaN, an
infinity or a number. A draw in which too few elements are checked is repeated with numbers nearer
to 1, or left out; the report names what was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

import numpy as np

from tcir.interp import OutputSpec
from tcir.interp.types import Array, is_integer
from tcir.program.boundary.gradients import Following
from tcir.program.ranges import Base, full_range, special_values
from tcir.program.slices import Run, is_byte, is_drawn, slices_of
from tcir.validation.coverage import FULL_RANGE, SPECIAL_VALUES, Coverage
from tcir.validation.draws import Draw

FLOATS = "random floats"
SINGLE = "single products"
STRENGTHS = (1.0, 0.25, 0.0625)
"""Parts of the range that are tried."""
SHRUNK = (1, 3, None)
"""How far random matrices are shrunk (`tcir.program.ranges.Base`)."""
SPECIALS = (
    (4, (np.nan, np.inf, -np.inf)),
    (16, (np.nan, np.inf, -np.inf)),
    (4, (np.inf, -np.inf)),
    (4, ()),
)
"""One slice in so many is special, and what the values are, besides finite ones: NaN has no meaning
to some programs (conversions to integers), infinities neither."""
SOME = 1 / 4
"""Fraction of the elements that must be checked of random floats, and next to special values."""
CHECKED = 1 / 2
"""Fraction of the elements that must be checked of a draw over the range."""


@dataclass
class Ranged:
    """Makes the draws of one program.

    run:      executes the program on tensors
    bound:    sets the bound of a draw, in which elements may be open; returns whether it has one
    work:     number of products and elements of one execution
    filtered: numbers of the inputs that are multiplied by values from a pad or an insertion
    single:   changes random inputs so that each sum has a single product; None if that is
              impossible
    follow:   replaces the inputs that are computed from other inputs
    spans:    whether other draws cover the full range, so that only special values are missing
    executed: the kinds of input that the draws cover
    missing:  descriptions of the omitted draws, with the reasons
    """

    specs: Sequence[OutputSpec]
    seed: int
    run: Run
    bound: Callable[[Draw], bool]
    work: int
    filtered: set[int]
    single: Callable[[list[Array]], list[Array] | None]
    follow: Following
    spans: bool = False
    executed: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def coverage(self) -> Coverage:
        """Coverage of the draws."""
        wanted = (FULL_RANGE, SPECIAL_VALUES)
        small = [
            f"no {what}, as {why}"
            for what, why in self.missing.items()
            if what not in self.executed
        ]
        has = [*self.executed, FULL_RANGE] if self.spans else self.executed
        return Coverage([what for what in wanted if what in has], "; ".join(small))

    def draws(self) -> list[Draw]:
        """Draws random floats, special values, and the full range, except draws in which nothing
        could be checked.
        """
        for number, spec in enumerate(self.specs):
            wide = is_integer(spec.dtype) and not is_byte(spec)
            if wide and not spec.says_where and not self.spans:
                self.missing[f"full range in argument {number}"] = "its integers may be indices"
        if not any(map(is_drawn, self.specs)):
            return []
        base = self._base()
        floats, base = ([], base) if self.spans else self._floats(base)
        tries = (special_values(base, share, kinds) for share, kinds in SPECIALS)
        specials = self._first(SPECIAL_VALUES, tries, SOME)
        ranges = [] if self.spans else self._ranges(base)
        if specials and base.many and floats:  # which has random floats in its other slices
            floats, specials = [], [replace(specials[0], words=f"{FLOATS}, {SPECIAL_VALUES}")]
        return [*floats, *specials, *ranges, *self._single(base)]

    def ranges(self) -> list[Draw]:
        """Draws random floats twice: with magnitudes up to about 10, where functions are most
        curved, and over the full range of the type.
        """
        if not any(map(is_drawn, self.specs)):
            return []
        base = self._base()
        bent = [
            (4 * array).astype(array.dtype) if n in base.floats else array
            for n, array in enumerate(base.arrays(3))
        ]
        draw, checked, _ = self._tried(FLOATS, bent)
        return [*([draw] if draw and checked >= SOME else []), *self._ranges(base)]

    def _base(self) -> Base:
        whole = Base(self.specs, slices_of(self.specs, [], lambda _: None, 0, set()), self.seed)
        slices = slices_of(self.specs, whole.arrays(0), self.run, self.work, self.filtered)
        return Base(self.specs, slices, self.seed)

    def _ranges(self, base: Base) -> list[Draw]:
        made = [
            self._first(
                FULL_RANGE, (full_range(base, n, strength) for strength in STRENGTHS), CHECKED
            )
            for n in ((0,) if base.many else (0, 1))
        ]
        return [draw for draws in made for draw in draws]

    def _floats(self, base: Base) -> tuple[list[Draw], Base]:
        """The most telling draws of floats; they are executed even if they show little."""
        best: list[tuple[float, Draw, Base]] = []
        for shrunk in SHRUNK if base.whole else (None,):
            tried = replace(base, shrunk=shrunk)
            draw, checked, _ = self._tried(FLOATS, tried.arrays(3))
            if draw is not None:
                best.append((checked, draw, tried))
            if checked >= SOME:
                break
        if not best:
            return [], base
        _, draw, base = max(best, key=itemgetter(0))
        return [draw], base

    def _single(self, base: Base) -> list[Draw]:
        """Inputs whose sums are single products, if their results are at least as exact as those of
        `base`."""
        arrays = None if self.spans else self.single(base.arrays(4))
        draw = self._tried(SINGLE, arrays)[0] if arrays is not None else None
        if draw is None or draw.bound is None:
            return []
        exact = min(float((error == 0).mean()) for error in draw.bound.errors)
        return [draw] if exact >= CHECKED else []

    def _first(self, words: str, tries: Iterator[list[Array]], least: float) -> list[Draw]:
        """The first draw of which a large enough share is checked."""
        why = ""
        for arrays in tries:
            draw, checked, because = self._tried(words, arrays)
            if draw is not None and checked >= least:
                self.missing.pop(words, None)
                self.executed.append(words)
                return [draw]
            why = because or why
        self.missing[words] = why
        return []

    def _tried(self, words: str, arrays: list[Array]) -> tuple[Draw | None, float, str]:
        """A draw with its reference and bound, the share of results that it checks, and the reason
        if it is unusable."""
        arrays = self.follow(arrays)
        draw = Draw(arrays, words, rounded=True, partly=True)
        results = self.run(arrays)
        if results is None:
            return None, 0.0, "the program has no meaning on them"
        draw.reference = results
        if not self.bound(draw) or draw.bound is None:
            return None, 0.0, draw.no_bound
        checked = draw.bound.checked(results, nan=words == SPECIAL_VALUES)
        return draw, checked, f"only {checked:.0%} of the results have a bound below their size"
