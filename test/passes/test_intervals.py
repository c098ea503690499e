"""Interval arithmetic on elements: numbers between the ends of operands give results between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir._mlir import ir
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.passes.analysis.element_graph import NotRaised, Number
from tcir.passes.raising.quantise.intervals import RULES, Interval, bounds

Array = np.ndarray[Any, Any]
F32, I32, WIDE = ("f32", np.float32), ("i32", np.int32), ("f64", np.float64)
TYPES = {
    **{f"arith.{name}": (F32, F32, "f32") for name in (
        "addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf")},
    **{f"arith.{name}": (I32, I32, "i32") for name in (
        "addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui", "shli",
        "shrsi", "shrui")},
    "math.absf": (F32, None, "f32"), "math.floor": (F32, None, "f32"),
    "math.ceil": (F32, None, "f32"), "arith.negf": (F32, None, "f32"),
    "arith.extf": (F32, None, "f64"), "arith.truncf": (F32, None, "f8E4M3FN"),
    "arith.bitcast": (F32, None, "i32"), "arith.extsi": (I32, None, "i64"),
    "arith.extui": (I32, None, "i64"), "arith.trunci": (I32, None, "i8"),
    "arith.sitofp": (I32, None, "f32"), "arith.uitofp": (I32, None, "f32"),
    "arith.fptosi": (F32, None, "i32"), "math.log2": (WIDE, None, "f64"),
    "math.exp2": (F32, None, "f32"), "math.powf": (F32, F32, "f32"),
}  # fmt: skip
PREDICATES = {"arith.cmpf": range(1, 15), "arith.cmpi": range(10)}
CASES = [
    *((name, *TYPES[name], "") for name in TYPES),
    *(
        (name, kind, kind, "i1", f"predicate = {n} : i64")
        for name, kind in (("arith.cmpf", F32), ("arith.cmpi", I32))
        for n in PREDICATES[name]
    ),
]


def test_every_rule_is_here() -> None:
    assert set(RULES) == {name for name, *_ in CASES}


def _operation(name: str, types: list[str], out: str, attribute: str) -> tuple[Any, Any]:
    values = ", ".join(f"%{n}: {kind}" for n, kind in enumerate(types))
    given = ", ".join(f"%{n}" for n in range(len(types)))
    with ir.Context():
        module = ir.Module.parse(f"""func.func @f({values}) {{
          %r = "{name}"({given}) {{{attribute}}} : ({", ".join(types)}) -> {out}
          return
        }}""")
    (function,) = module.body.operations
    return module, function.regions[0].blocks[0].operations[0].operation


def _numbers(draw: Any, kind: Any, count: int) -> Array:
    """Of all sizes and signs, next to each other or far apart."""
    if kind == np.int32:
        return (draw.integers(-(2**31), 2**31, count) >> draw.integers(0, 32, count)).astype(kind)
    bits = draw.integers(0, 0x7F800001, count).astype(np.uint32)
    bits = np.where(draw.random(count) < 0.1, 0, bits).astype(np.uint32)
    signs = draw.integers(0, 2, count).astype(np.uint32) << 31
    return (bits | signs).view(np.float32).astype(kind)


def _order(x: Array) -> Array:
    """Ranks that tell -0 from +0."""
    wide = x.astype(np.float64)
    return np.where(wide == 0, np.where(np.signbit(wide), -5e-324, 0.0), wide)


def _between(draw: Any, low: Array, high: Array) -> Array:
    """A number of each interval."""
    if low.dtype.kind == "i":
        return draw.integers(low, high.astype(np.int64) + 1).astype(low.dtype)
    at = draw.random(low.shape)
    inside = np.clip(low + (high - low) * at.astype(low.dtype), low, high)
    inside = np.where(np.isnan(inside) | (low == high), low, inside)
    return np.where(at < 0.2, low, np.where(at > 0.8, high, inside)).astype(low.dtype)


@pytest.mark.parametrize(("name", "a", "b", "out", "attribute"), CASES)
def test_between(name: str, a: Any, b: Any, out: str, attribute: str) -> None:
    draw = np.random.default_rng(7)
    kinds = [kind for kind in (a, b) if kind is not None]
    intervals, points = [], []
    for number, (_, kind) in enumerate(kinds):
        one = _numbers(draw, kind, 4000)
        near = one.view(np.int32 if kind != np.float64 else np.int64)
        near = (near + draw.integers(0, 4000, 4000, dtype=near.dtype)).view(kind)
        two = np.where(draw.random(4000) < 0.5, _numbers(draw, kind, 4000), near)
        if number and (draw.random() < 0.5 or name.startswith("arith.sh")):
            two = one = np.abs(one) % 31 if kind == np.int32 else one
        ok = ~np.isnan(two.astype(np.float64))
        two = np.where(ok, two, one)
        with np.errstate(all="ignore"):
            low = np.where(_order(one) <= _order(two), one, two)
            high = np.where(_order(one) <= _order(two), two, one)
            points.append([_between(draw, low, high) for _ in range(20)])
        intervals.append(Interval(low, high, np.ones(4000, np.bool_)))
    module, op = _operation(name, [text for text, _ in kinds], out, attribute)
    with module.context:
        variables = {str(n): each for n, each in enumerate(intervals)}
        found = bounds(Number(op, tuple(Number(None, name=n) for n in variables)), variables)
        for sample in zip(*points, strict=True):
            with np.errstate(all="ignore"):
                got = np.asarray(evaluate[name](Interpreter(), op.opview, *sample)[0])
            low, high, value = (_order(x) for x in (found.low, found.high, got))
            inside = (low <= value) & (value <= high)
            inside |= np.isnan(value) & np.isnan(low) & np.isnan(high)
            wrong = found.known & ~inside
            assert not wrong.any(), [
                (s[wrong][0], i.low[wrong][0], i.high[wrong][0]) for s, i in zip(sample, intervals)
            ]
    at_points = ("arith.ori", "arith.xori", "arith.fptosi", "math.exp2", "math.powf")
    assert found.known.any() or name in at_points


def test_an_op_without_a_rule() -> None:
    module, op = _operation("math.sin", ["f32"], "f32", "")
    with module.context, pytest.raises(NotRaised, match=r"got math\.sin"):
        x = Interval.point(np.float32([1.0]))
        bounds(Number(op, (Number(None, name="x"),)), {"x": x})
