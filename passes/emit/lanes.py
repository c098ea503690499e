"""Arithmetic on a value per lane (``vector<32xindex>``), with Python's operators."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import arith, ir, vector
from tcir.dialect import tc
from tcir.dialect.ops.lanes import lane_vector
from tcir.passes.emit import index
from tcir.passes.emit.index import Index


@dataclass(frozen=True)
class LaneValue:
    """A value per lane. The other operand of an operator may be a single number for all lanes.

    Quotients and remainders are of non-negative values. ``below`` compares as unsigned numbers, so
    for a negative value it is always false.
    """

    value: ir.Value

    def __add__(self, other: LaneValue | Index) -> LaneValue:
        return LaneValue(arith.addi(self.value, _value(other)))

    def __mul__(self, other: LaneValue | Index) -> LaneValue:
        return (
            self
            if isinstance(other, int) and other == 1
            else LaneValue(arith.muli(self.value, _value(other)))
        )

    def __floordiv__(self, other: int) -> LaneValue:
        return self if other == 1 else LaneValue(arith.divui(self.value, _value(other)))

    def __mod__(self, other: int) -> LaneValue:
        return LaneValue(arith.remui(self.value, _value(other)))

    def __and__(self, other: LaneValue) -> LaneValue:
        return LaneValue(arith.andi(self.value, other.value))

    def below(self, limit: Index) -> LaneValue:
        """Whether each value is in ``[0, limit)``."""
        return LaneValue(arith.cmpi(arith.CmpIPredicate.ult, self.value, _value(limit)))

    def equals(self, number: Index) -> LaneValue:
        """Whether each value is `number`."""
        return LaneValue(arith.cmpi(arith.CmpIPredicate.eq, self.value, _value(number)))

    def where(self, condition: LaneValue, otherwise: Index) -> LaneValue:
        """This value in the lanes where `condition` is true, `otherwise` in the other lanes."""
        return LaneValue(arith.select(condition.value, self.value, _value(otherwise)))


def lane_index() -> LaneValue:
    """The numbers of the lanes, 0 to 31."""
    return LaneValue(tc.LaneIndexOp().lanes)


def spread(number: Index) -> LaneValue:
    """Broadcasts a number to every lane; returns a value per lane unchanged."""
    if isinstance(number, ir.Value) and isinstance(number.type, ir.VectorType):
        return LaneValue(number)
    return LaneValue(vector.broadcast(lane_vector(ir.IndexType.get()), index.value(number)))


def _value(number: LaneValue | Index) -> ir.Value:
    return number.value if isinstance(number, LaneValue) else spread(number).value
