"""Exact quotients of f32 numbers by a divisor that many have: its inverse is computed once."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import arith, ir, scf
from tcir.passes.emit import simt
from tcir.passes.emit.functions.f32 import each

MAGNITUDE = 0x7FFFFFFF
ONE, STEP = 127 << 23, 1 << 23
NUMERATORS = ONE - 100 * STEP, 200 * STEP
DIVISORS = ONE - 20 * STEP, 40 * STEP
"""Bits of the least magnitude, 2^-100 and 2^-20, and those up to the largest, 2^100 and 2^20: there
no quotient overflows or is subnormal, and no remainder loses digits."""


@dataclass(frozen=True)
class Divisor:
    """A divisor; inverse: its rounded inverse; usable: whether it is in range."""

    number: ir.Value
    inverse: ir.Value
    usable: ir.Value

    @staticmethod
    def of(number: ir.Value) -> Divisor:
        """Computes the inverse: ``rcp.approx``, corrected once."""
        near = each("rcp.approx.ftz.f32", number)
        error = simt.fma(arith.NegFOp(number).result, near, simt.number(1.0))
        return Divisor(number, simt.fma(near, error, near), _within(_bits(number), DIVISORS))

    def divides(self, number: ir.Value) -> ir.Value:
        """`number` / divisor, rounded to nearest even.

        The product with the inverse errs by less than two units in the last place. An fma computes
        the remainder exactly, and adding the remainder's share makes the quotient correctly rounded
        (Markstein 1990, IA-64 software division); ``div.rn`` is the same, with an inverse for each
        quotient. Numbers out of range, and -0, take ``div.rn``.
        """
        bits = _bits(number)
        inside = simt.either_bits(_within(bits, NUMERATORS), simt.equal(bits, 0))
        inside = simt.both_bits(inside, self.usable)
        chosen = scf.IfOp(inside, [number.type], has_else=True)
        with ir.InsertionPoint(chosen.then_block):
            quotient = arith.MulFOp(number, self.inverse).result
            left = simt.fma(arith.NegFOp(self.number).result, quotient, number)
            scf.YieldOp([simt.fma(self.inverse, left, quotient)])
        with ir.InsertionPoint(chosen.else_block):
            scf.YieldOp([arith.DivFOp(number, self.number).result])
        return chosen.results[0]


def _bits(number: ir.Value) -> ir.Value:
    return arith.BitcastOp(ir.IntegerType.get_signless(32), number).result


def _within(bits: ir.Value, room: tuple[int, int]) -> ir.Value:
    least, count = room
    return simt.less(simt.sub(simt.both_bits(bits, MAGNITUDE), least), count)
