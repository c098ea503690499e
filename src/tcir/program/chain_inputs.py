"""Draws inputs of programs with several contractions: see `tcir.program.chains`.

Rows, columns and the elements along a sum are multiplied by different powers of two, except where a
later contraction would add numbers with different powers. The special values are those for which
sums do not depend on their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tcir.interp.types import Array
from tcir.program.chains import Chain
from tcir.program.factors import Contraction, Factor
from tcir.program.spans import MagnitudeSpan, Quantum, draw, draw_start, span_of, spread
from tcir.program.special import Placing, Special, meets_padding, special_values

ROW_EXPONENTS = 6
"""Largest power of two between rows or columns that no later contraction multiplies."""
TILT = 12
"""Largest power of two along a sum, which the other factor cancels."""
WIDE = "all bits"
"""Used in place of a special value: one input has all available bits, the others are powers of
two."""
_ORDER_FREE = ("NaN", "inf", "zeros", "inf - inf")
"""Special values whose row sums do not depend on summation order."""


def draw_chain(
    chain: Chain, specials: Sequence[Special] | None, generator: np.random.Generator
) -> dict[int, Array]:
    """Draws the inputs that are multiplied, or added to sums; returns them by number of the input.

    specials: special values to place; default: `chain_specials`
    """
    wanted = chain_specials(chain) if specials is None else specials
    wide = [chain.contractions[s.contraction].factors[s.side] for s in wanted if s.what == WIDE]
    widths = chain.widths(wide[0].argument if wide else None)
    drawn = _Drawing(chain, widths, generator).all()
    for n, contraction in enumerate(chain.contractions):
        placing = Placing(contraction, drawn, generator)
        placing.all([each for each in wanted if each.contraction == n and each.what != WIDE])
        if contraction.start is not None and chain.is_last(n):
            placing.start(contraction.start)
    return drawn


def chain_specials(chain: Chain) -> list[Special]:
    """Returns the special values that can be placed in inputs of which each row affects few
    results.
    """
    return [
        replace(special, contraction=n)
        for n, contraction in enumerate(chain.contractions)
        for special in (special_values(contraction, _ORDER_FREE) if chain.is_last(n) else ())
        if _is_first_use(chain, n, special.side)
    ]


def chain_alone(chain: Chain) -> list[list[Special]]:
    """Returns the special values that need executions of their own, because nearly all results may
    depend on them.
    """
    return [
        [Special(side, what, contraction.own_axis(contraction.pairs[0], side, 2), n)]
        for n, contraction in enumerate(chain.contractions)
        for side, factor in enumerate(contraction.factors)
        if _is_first_use(chain, n, side)
        for what in _kinds(chain, n, factor)
    ]


def _kinds(chain: Chain, number: int, factor: Factor) -> list[str]:
    """Returns the special values that one input has in an execution of its own."""
    kinds = [WIDE] if chain.share < span_of(factor, 0).precision else []
    if chain.is_last(number) or meets_padding(chain.contractions[number], factor):
        return kinds
    return kinds + [what for what in ("inf", "NaN") if _has(factor, what)]


def _is_first_use(chain: Chain, number: int, side: int) -> bool:
    argument = chain.contractions[number].factors[side].argument
    return argument >= 0 and chain.uses(argument)[0] == (number, side)


def _has(factor: Factor, what: str) -> bool:
    """Whether a factor's format has infinities (`what` "inf") or NaN ("NaN")."""
    value = float(np.array(float(what)).astype(factor.dtype))
    return bool(np.isinf(value) if what == "inf" else np.isnan(value))


@dataclass
class _Drawing:
    """Draws the inputs of a chain, so that its sums are about 1.

    widths:    bits by number of the input
    exponents: exponents of the quanta of inputs, and of sums (as -1 - number of the contraction)
    own:       number of an input -> a dimension over rows or columns, and exponents along it
    """

    chain: Chain
    widths: dict[int, int]
    generator: np.random.Generator
    drawn: dict[int, Array] = field(default_factory=dict)
    exponents: dict[int, int] = field(default_factory=dict)
    own: dict[int, tuple[int, Array]] = field(default_factory=dict)

    def all(self) -> dict[int, Array]:
        """Draws all inputs; returns them by number of the input."""
        for n, contraction in enumerate(self.chain.contractions):
            tilt = self._tilt(contraction)
            for side, factor in enumerate(contraction.factors):
                if factor.argument not in self.exponents:
                    other = self.exponents.get(contraction.factors[1 - side].argument)
                    wanted = -self.chain.bits(n, self.widths) // 2
                    wanted = wanted // 2 if other is None else wanted - other
                    self._factor(factor, wanted, (1 - 2 * side) * tilt, contraction)
            total = sum(self.exponents[f.argument] for f in contraction.factors)
            self.exponents[-1 - n] = total
            if contraction.start is not None:
                self._add(contraction.start, Quantum(total, self._own(contraction)), n)
        for addend, n in self.chain.addends:
            self._add(addend, Quantum(self.exponents[-1 - n], {}), n)
        return self.drawn

    def _add(self, addend: Factor, quantum: Quantum, number: int) -> None:
        bits = self.chain.bits(number, self.widths) - 1
        self.drawn[addend.argument] = draw_start(addend, [quantum], self.generator, bits)

    def _own(self, contraction: Contraction) -> dict[int, Array]:
        """Returns the exponents of rows and columns by loop."""
        found = {}
        for factor in contraction.factors:
            if factor.argument in self.own:
                axis, own = self.own[factor.argument]
                index = factor.dims[axis]
                assert index is not None
                found[index[0]] = own
        return found

    def _room(self, factor: Factor) -> tuple[MagnitudeSpan, int, int]:
        """Returns the span and width of an input, and the number of exponents left in its
        format."""
        span = span_of(factor, 0)
        width = min(self.widths[factor.argument], span.widths[1])
        return span, width, span.top - span.low - width

    def _tilt(self, contraction: Contraction) -> Array:
        """Draws exponents along the sum: those of the first factor; the second has their
        negatives."""
        axes = contraction.shared_axes(contraction.pairs[0])
        arguments = [factor.argument for factor in contraction.factors]
        if axes is None or any(a < 0 or len(self.chain.uses(a)) != 1 for a in arguments):
            return np.zeros(1, int)
        most = min(TILT, *(self._room(f)[2] // 3 for f in contraction.factors))
        count = contraction.factors[0].shape[axes[0]]
        return self.generator.integers(-most, most, count, endpoint=True)

    def _factor(self, factor: Factor, wanted: int, tilt: Array, contraction: Contraction) -> None:
        span, width, room = self._room(factor)
        exponent = np.zeros((1,) * len(factor.shape), int)
        lean = int(np.abs(tilt).max())
        if lean and (axes := contraction.shared_axes(contraction.pairs[0])):
            exponent = exponent + spread(axes[contraction.factors.index(factor)], tilt, factor)
        shift = 0
        if (row := self._row(factor)) is not None:
            shift = min(ROW_EXPONENTS, room // 3)
            own = self.generator.integers(0, shift, factor.shape[row], endpoint=True)
            self.own[factor.argument] = row, own
            exponent = exponent + spread(row, own, factor)
        base = int(np.clip(wanted, span.low + lean, span.top - width - shift - lean))
        self.exponents[factor.argument] = base
        widths = np.full(exponent.shape, width)
        self.drawn[factor.argument] = draw(factor, span, widths, base + exponent, self.generator)

    def _row(self, factor: Factor) -> int | None:
        """Returns the dimension along which an input is multiplied by powers of two; None: no
        dimension."""
        found = set[int | None]()
        for n, side in self.chain.uses(factor.argument):
            contraction = self.chain.contractions[n]
            axis, start = contraction.own_axis(contraction.pairs[0], side), contraction.start
            apart = start is None or (axis is not None and factor.dims[axis] in start.dims)
            found.add(axis if self.chain.is_last(n) and apart else None)
        return found.pop() if len(found) == 1 else None
