"""Correctly rounded quotients of f32 numbers by a divisor that many numbers share: its inverse is
computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcir._mlir import arith, ir, scf
from tcir.passes.emit import simt
from tcir.passes.emit.functions.f32 import each

MAGNITUDE = 0x7FFFFFFF
ONE, STEP = 127 << 23, 1 << 23
LEAST, MOST = ONE - 100 * STEP, 2.0**100
"""Bits of the least magnitude of a numerator but 0, 2^-100, and the largest one."""
DIVISORS = ONE - 20 * STEP, 40 * STEP
"""Bits of the least divisor, 2^-20, and those up to the largest, 2^20: no quotient overflows or is
subnormal, and no remainder loses digits."""


@dataclass(frozen=True)
class Divisor:
    """A divisor. inverse: its rounded inverse; usable: whether it is in the range for which the
    method is exact."""

    number: ir.Value
    inverse: ir.Value
    usable: ir.Value

    @staticmethod
    def of(number: ir.Value) -> Divisor:
        """Emits the inverse of the divisor: ``rcp.approx`` with one correction step."""
        near = each("rcp.approx.ftz.f32", number)
        error = simt.fma(arith.NegFOp(number).result, near, simt.number(1.0))
        least, count = DIVISORS
        usable = simt.less(simt.sub(_bits(number), least), count)
        return Divisor(number, simt.fma(near, error, near), usable)

    def divides(self, numbers: Sequence[ir.Value]) -> list[ir.Value]:
        """Emits `numbers` / divisor, rounded to nearest even.

        The product with the inverse errs by less than two units in the last place. An fma computes
        the remainder exactly, and subtracting the remainder's share makes the quotient correctly
        rounded (Markstein 1990, IA-64 software division); ``div.rn`` does the same, but computes an
        inverse for each quotient. If a number is out of range, one branch makes all numbers take
        ``div.rn``. 0 and -0 are in range: their remainder is 0, and its share, subtracted, is -0,
        which changes no zero.
        """
        inside = self.usable
        for number in numbers:
            inside = simt.both_bits(inside, _usable(number))
        kinds = [number.type for number in numbers]
        chosen = scf.IfOp(inside, kinds, has_else=True)
        with ir.InsertionPoint(chosen.then_block):
            scf.YieldOp([self._near(number) for number in numbers])
        with ir.InsertionPoint(chosen.else_block):
            scf.YieldOp([arith.DivFOp(number, self.number).result for number in numbers])
        return list(chosen.results)

    def _near(self, number: ir.Value) -> ir.Value:
        """The quotient of a number in range."""
        quotient = arith.MulFOp(number, self.inverse).result
        over = simt.fma(self.number, quotient, arith.NegFOp(number).result)
        return simt.fma(arith.NegFOp(over).result, self.inverse, quotient)


def _usable(number: ir.Value) -> ir.Value:
    """Whether a numerator is in range, or 0; a NaN is not."""
    high = arith.CmpFOp(arith.CmpFPredicate.OLE, _absolute(number), simt.number(MOST)).result
    shifted = simt.sub(simt.left(_bits(number), 1), 1)  # without the sign; of 0 the largest
    return simt.both_bits(high, simt.less(2 * LEAST - 2, shifted))


def _absolute(number: ir.Value) -> ir.Value:
    return simt.as_f32(simt.both_bits(_bits(number), MAGNITUDE))


def _bits(number: ir.Value) -> ir.Value:
    return arith.BitcastOp(ir.IntegerType.get_signless(32), number).result
