"""Arithmetic on a value per lane (``vector<32xindex>``), written with Python's operators."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import arith, ir, vector
from tcir.dialect import tc
from tcir.dialect.ops.lanes import lane_vector
from tcir.passes.emit import index
from tcir.passes.emit.index import Index


@dataclass(frozen=True)
class Lanes:
    """A value per lane; the other operand of an operator may be one number for all lanes.

    Quotients and remainders are of non-negative values. ``below`` compares unsigned, so a negative
    value is below nothing.
    """

    value: ir.Value

    def __add__(self, other: Lanes | Index) -> Lanes:
        return Lanes(arith.addi(self.value, _value(other)))

    def __mul__(self, other: Lanes | Index) -> Lanes:
        return self if isinstance(other, int) and other == 1 else Lanes(
            arith.muli(self.value, _value(other))
        )  # fmt: skip

    def __floordiv__(self, other: int) -> Lanes:
        return self if other == 1 else Lanes(arith.divui(self.value, _value(other)))

    def __mod__(self, other: int) -> Lanes:
        return Lanes(arith.remui(self.value, _value(other)))

    def __and__(self, other: Lanes) -> Lanes:
        return Lanes(arith.andi(self.value, other.value))

    def below(self, limit: Index) -> Lanes:
        """Whether each value is in ``[0, limit)``."""
        return Lanes(arith.cmpi(arith.CmpIPredicate.ult, self.value, _value(limit)))

    def equals(self, number: Index) -> Lanes:
        """Whether each value is `number`."""
        return Lanes(arith.cmpi(arith.CmpIPredicate.eq, self.value, _value(number)))

    def where(self, condition: Lanes, otherwise: Index) -> Lanes:
        """This value in the lanes where `condition` holds, `otherwise` in the others."""
        return Lanes(arith.select(condition.value, self.value, _value(otherwise)))


def lane_index() -> Lanes:
    """0 to 31."""
    return Lanes(tc.LaneIndexOp().lanes)


def spread(number: Index) -> Lanes:
    """The same number in every lane; a value per lane is returned as it is."""
    if isinstance(number, ir.Value) and isinstance(number.type, ir.VectorType):
        return Lanes(number)
    return Lanes(vector.broadcast(lane_vector(ir.IndexType.get()), index.value(number)))


def _value(number: Lanes | Index) -> ir.Value:
    return number.value if isinstance(number, Lanes) else spread(number).value
