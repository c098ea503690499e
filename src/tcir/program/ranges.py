"""Draws inputs over the whole range of their formats, for programs for which no inputs are known
that make all sums exact.

The sums of these programs round, and for some results the order of a sum decides whether it
overflows. The results are checked against a bound that propagates infinities and NaNs
(`tcir.validation.rules`).

- **Full range**: each slice of an input (`tcir.program.slices`) is multiplied by its own power of
  two, up to the largest and down to the smallest numbers; some slices have only one sign. An input
  with one slice is large in one execution and small in the next, so that products stay in range.
- **Special values**: NaN, infinities, the largest number, and zeros of both signs, each in a slice
  of its own; all other slices have a -0 and a subnormal number. An input with one slice has a NaN
  only if no other input has one, because all results would depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tcir.interp import OutputSpec
from tcir.interp.types import Array, DType
from tcir.program.codes import any_codes
from tcir.program.inputs import make_inputs
from tcir.program.slices import Slices, is_byte, is_drawn
from tcir.program.spans import info_of

_T = TypeVar("_T")
UP = (4, 7, 11, 16, 24, 36, 54, 80)
DOWN = (2, 5, 9, 14, 20, 30, 45, 70, 110)
"""Exponents of slices, as far as a format has them, in addition to its ends."""
_MODES = ("any", "ascending", "close", "closest", "positive", "negative")
"""Modes of consecutive slices: numbers of both signs or of one, with the largest last, or near each
other. Near numbers are far from 0 relative to their differences, which exposes variance formulas
with cancellation. With few slices, the last has the largest numbers, all negative, which exposes
the start value of maxima; or any of the smallest."""
_SHARED_BITS = {"close": 1 / 2, "closest": 5 / 6}
"""Mode -> fraction of the mantissa that near numbers share: enough that sums in the same format, or
in one of twice its bits, lose the variance."""
MANY = 8
"""Minimum number of slices of an input that has both ends of its range at once."""
REPEATS = 4
"""Largest number of slices with the same special value."""


@dataclass(frozen=True)
class Base:
    """Standard normal inputs, from which the other functions derive theirs.

    shrunk: inputs with one slice, except the first input, are divided by 2^shrunk and by about the
            square root of their number of rows, so that sums are at most about 1; None: they are
            not divided
    """

    specs: Sequence[OutputSpec]
    slices: Sequence[Slices]
    seed: int
    shrunk: int | None = 0

    @property
    def floats(self) -> list[int]:
        """Numbers of the inputs whose type has a range of exponents."""
        return [n for n, spec in enumerate(self.specs) if is_drawn(spec)]

    @property
    def whole(self) -> list[int]:
        """Numbers of the inputs that are a single slice."""
        return [n for n in self.floats if self.slices[n].count < 2]

    @property
    def many(self) -> bool:
        """Whether every input has many slices."""
        return all(self.slices[n].count >= MANY for n in self.floats)

    def arrays(self, number: int) -> list[Array]:
        """Draws random floats and arbitrary bytes. number: the number of the execution"""
        made = [np.array(each) for each in make_inputs(self.specs, self.seed + number, "random")]
        generator = np.random.default_rng([self.seed, number, 1])
        for n, spec in enumerate(self.specs):
            if is_byte(spec):
                made[n] = any_codes(spec, generator)
        for n in self.whole:
            if self.shrunk is not None and n and made[n].ndim > 1:
                rows = max(1, made[n].size // max(1, *made[n].shape))
                made[n] = _scaled(made[n], -self.shrunk - round(np.log2(rows) / 2))
        return made


def full_range(base: Base, number: int, strength: float) -> list[Array]:
    """Returns inputs at the ends of their range.

    number:   0 or 1. For 0, the first input with one slice is large, the second small, and so on in
              turn; for 1, the reverse. The slices of other inputs alternate likewise, except that
              if all inputs have many slices, one execution has large and small ones
    strength: fraction of the range that is used
    """
    generator = np.random.default_rng([base.seed, 1 + number])
    arrays = base.arrays(1 + number)
    for turn, n in enumerate(base.whole):
        low, high = _exponents(arrays[n].dtype)
        share = strength * (0.8 if len(base.whole) == 1 else 1 / 3)
        exponent = (high if (turn + number) % 2 == 0 else low) * share
        arrays[n] = _scaled(arrays[n], int(exponent))
    for n in set(base.floats) - set(base.whole):
        low, high = _exponents(arrays[n].dtype)
        up = [*(step for step in UP if step < high), high]
        down = [*(-step for step in DOWN if step < -low), low]
        ends = [e for pair in zip(up, np.resize(down, len(up)), strict=True) for e in pair] + down
        small = 0 if base.many else (number + n) % 2
        steps = ends if base.many else (up, down)[small]
        places = list(base.slices[n].places())
        order = generator.permutation(len(places))
        steps, modes = _some(steps, len(places)), _some(_MODES, len(places))
        for turn, place in enumerate(order):
            at, step = places[place], int(steps[turn % len(steps)] * strength)
            mode = modes[
                (turn + small + turn // len(modes)) % len(modes)
            ]  # each with each exponent
            part = arrays[n][at] if base.specs[n].unsigned else _as(mode, arrays[n][at])
            arrays[n][at] = _scaled(part, step)
    return arrays


def _some(values: Sequence[_T], count: int) -> list[_T]:
    """Returns at most `count` of the values, including the first and the last."""
    if len(values) <= count:
        return list(values)
    return [values[int(k)] for k in np.linspace(0, len(values) - 1, count).round()]


def special_values(base: Base, share: int, kinds: Sequence[float]) -> list[Array]:
    """Returns inputs with special values.

    share: a special value is in at most one of so many slices
    kinds: special values that may occur: NaN, infinities
    """
    generator = np.random.default_rng([base.seed, 0])
    arrays = base.arrays(0)
    cut = [n for n in base.floats if base.slices[n].count >= 2]
    for turn, n in enumerate(base.floats):
        spec, slices = base.specs[n], base.slices[n]
        values = [v for v in _kinds(spec.dtype, kinds) if not spec.unsigned or not np.signbit(v)]
        if slices.times_filling:
            values = [value for value in values if np.isfinite(value)]
        room = slices.count // share if len(cut) > 1 else max(slices.count // 2, 1)
        if n not in cut:
            room, values = int(not cut and turn == 0), values[:1]
        values = list(np.roll(values, -turn)) if n in cut else values
        places = list(slices.places())
        order = generator.permutation(len(places))
        for place, k in enumerate(order):
            part = arrays[n][places[k]]
            if place < min(room, REPEATS * len(values)):
                value = values[place % len(values)]
                part = _zeros(part, generator) if value == 0 else _with(part, [value], generator)
            elif not spec.unsigned:
                small = float(info_of(spec.dtype).smallest_subnormal)
                tiny = [-0.0, small] if part.size > 1 or place % 2 else [small]
                part = _with(part, tiny[: max(1, part.size // 4)], generator)
            arrays[n][places[k]] = part
    return arrays


def _kinds(dtype: DType, allowed: Sequence[float]) -> list[float]:
    """Returns the NaN and infinities that a format has, its largest number, and 0 for zeros of both
    signs."""
    with np.errstate(all="ignore"):
        stored = [(value, float(np.array(value).astype(dtype))) for value in allowed]
    has = [v for v, s in stored if (np.isnan(v) and np.isnan(s)) or v == s]
    return [*has, float(info_of(dtype).max), 0.0]


def _with(part: Array, values: Sequence[float], generator: np.random.Generator) -> Array:
    """Returns a copy of an array with these values at random places.

    A NaN is not the first element and has another behind it, since reductions may treat what is
    before and after it differently.
    """
    changed = np.array(part)
    flat = changed.reshape(-1)
    places = generator.choice(flat.size, min(len(values), flat.size), replace=False)
    for place, value in zip(places, values):
        if np.isnan(value) and flat.size > 2:
            place = place or flat.size // 2
            flat[(place + flat.size) // 2] = value
        flat[place] = np.array(value).astype(part.dtype)
    return changed


def _zeros(part: Array, generator: np.random.Generator) -> Array:
    signs = generator.choice([-1.0, 1.0], np.shape(part))
    return np.copysign(0.0, signs).astype(part.dtype)


def _exponents(dtype: DType) -> tuple[int, int]:
    """Returns the exponents of a type's smallest and largest power of two."""
    info = info_of(dtype)
    return int(np.log2(float(info.smallest_subnormal))), int(np.log2(float(info.max)))


def _as(mode: str, values: Array) -> Array:
    """Changes values to one of `_MODES`."""
    if mode == "ascending":
        return np.sort(values, axis=None).reshape(values.shape)
    if mode in _SHARED_BITS:
        bits = int(info_of(values.dtype).nmant * _SHARED_BITS[mode])
        near = 1 + np.asarray(values, np.float64) * 2.0**-bits
        return near.astype(values.dtype)
    signs = {"negative": -1.0, "positive": 1.0}
    return np.copysign(values, values.dtype.type(signs[mode])) if mode in signs else values


def _scaled(values: Array, exponent: int) -> Array:
    """Multiplies values by a power of two, limited to the type's range."""
    return _stored(np.asarray(values, np.float64) * 2.0**exponent, values.dtype)


def _stored(wide: Array, dtype: DType) -> Array:
    largest = float(info_of(dtype).max)
    return np.clip(wide, -largest, largest).astype(dtype)
