"""Neutral elements of the ops with which reductions combine elements."""

from __future__ import annotations

from tcir._mlir import arith, ir
from tcir.dialect.upstream import by_name

NEUTRAL = by_name({
    arith.AddFOp: "zero", arith.AddIOp: "zero", arith.OrIOp: "zero", arith.XOrIOp: "zero",
    arith.MaxUIOp: "zero", arith.MulIOp: "one", arith.AndIOp: "ones",
    arith.MinUIOp: "ones", arith.MaximumFOp: "least", arith.MaxNumFOp: "least",
    arith.MaxSIOp: "least", arith.MinimumFOp: "most", arith.MinNumFOp: "most",
    arith.MinSIOp: "most",
})  # fmt: skip
"""By op: its operands may be combined in any order."""


def neutral(combine: ir.OpView, kind: ir.Type) -> ir.Value:
    """The neutral element of `combine`, as a number of type `kind` in a register."""
    return arith.ConstantOp(kind, neutral_attribute(combine, kind)).result


def neutral_attribute(combine: ir.OpView, kind: ir.Type) -> ir.Attribute:
    """The neutral element of `combine`, as an attribute of type `kind`."""
    name = NEUTRAL[combine.operation.name]
    if isinstance(kind, ir.FloatType):
        number = {"zero": 0.0, "one": 1.0, "least": -float("inf"), "most": float("inf")}[name]
        return ir.FloatAttr.get(kind, number)
    bits = combine.operation.results[0].type.width
    integer = {"zero": 0, "one": 1, "ones": -1, "least": -(1 << bits - 1)}
    return ir.IntegerAttr.get(kind, integer.get(name, (1 << bits - 1) - 1))
