"""Bounds on the error of the gradients that a kernel for the backward pass of attention computes,
element by element.

A kernel computes ``x = fma(S, c, -lse log2(e))``, ``p = ex2(x)``, ``ds = p (dp - delta)`` in f32
from sums of products S and dp. It rounds p and ds to the type of the operands, and multiplies them.
It does not normalise rows, because lse (the logarithm of a row's sum of exponentials) is an
operand. So the error follows step by step from the rules of these ops (`tcir.validation.rules`),
where the errors of products are those of sums in any order. The numbers of each step here are those
of such a kernel; their distance from the reference, which rounds once, is added.

The largest terms are the roundings of p and ds. For a gradient of the queries they are 2^-11 (f16)
or 2^-8 (bf16) of ``scale * sum |ds| |k|``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tcir.dialect.attributes import string
from tcir.dialect.ops.attention import LOG2_E
from tcir.interp.bands import allowed
from tcir.interp.online_softmax import log2_scale
from tcir.interp.tensor.attention import by_heads
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.tensor.math import fma
from tcir.interp.types import Array
from tcir.validation.rules import RULES, Known

if TYPE_CHECKING:
    from tcir.dialect import tc

Products: TypeAlias = Callable[[Known, Known], Known]
"""Sums of products of rows with columns, in f32, by a tensor core."""


def attention_backward(
    op: tc.AttentionBackwardOp, operands: Sequence[Known], products: Products
) -> list[Known]:
    """Computes the gradients of ``tc.attention_backward`` and bounds on their errors."""
    of, queries, keys = op.extents(), string(op, "q_layout"), string(op, "kv_layout")
    q, k, v, dout = (
        each.like(partial(by_heads, layout=layout))
        for each, layout in zip(operands, (queries, keys, keys, queries), strict=False)
    )
    lse, delta = (each.like(lambda array: array[..., None]) for each in operands[4:])
    group = of["h"] // of["g"]
    kept = allowed(of["m"], of["n"], of["n"], op.band)
    found: dict[str, list[Known]] = {"q": [], "k": [], "v": []}
    for batch in range(of["b"]):
        for shared in range(of["g"]):
            of_keys = [each.like(itemgetter((batch, shared))) for each in (k, v)]
            factors = []
            for head in range(shared * group, (shared + 1) * group):
                own = [each.like(itemgetter((batch, head))) for each in (q, dout, lse, delta)]
                p, ds = _scores(op, own, of_keys, kept, products)
                factors.append((p, ds, *own[:2]))
                if op.of_queries:
                    found["q"].append(_sums(ds, of_keys[0], kept, products, op.factor))
            if not op.of_queries:
                p, ds, mine, gradients = (_stacked(each) for each in zip(*factors, strict=True))
                every = np.tile(kept.T, group)
                turned = [each.like(np.transpose) for each in (ds, p)]
                found["k"].append(_sums(turned[0], mine, every, products, op.factor))
                found["v"].append(_sums(turned[1], gradients, every, products, 1.0))
    results = evaluate["tc.attention_backward"](Interpreter(), op, *(x.value for x in operands))
    layouts = [queries] if op.of_queries else [keys, keys]
    parts = [found["q"]] if op.of_queries else [found["k"], found["v"]]
    return [
        _beside(result, Known(*(_whole(result, layout, each) for each in _fields(known))), layout)
        for result, known, layout in zip(results, parts, layouts, strict=True)
    ]


def _scores(
    op: tc.AttentionBackwardOp,
    rows: Sequence[Known],
    keys: Sequence[Known],
    kept: Array,
    products: Products,
) -> tuple[Known, Known]:
    """p and ds of a head, rounded, [m, n]; 0 where a row does not have the key, or anything where a
    kernel multiplies this 0 by an infinity or NaN of the row.

    rows: q, dout, lse and delta; keys: k and v
    """
    (q, dout, lse, delta), (k, v) = rows, keys
    kind = np.asarray(q.value).dtype
    with np.errstate(all="ignore"):
        s, dp = products(q, k.like(np.transpose)), products(dout, v.like(np.transpose))
        c, log2_e = map(_number, (float(log2_scale(op.factor)), -LOG2_E))
        shift = RULES["arith.mulf"](lse.value * log2_e.value, lse, log2_e)
        dead = np.isneginf(lse.wide) & ~lse.open
        shift = _where(~dead, shift)
        x = RULES["math.fma"](fma(s.value, c.value, shift.value), s, c, shift)
        p = RULES["math.exp2"](np.exp2(x.wide).astype(np.float32), x)
        none = ~kept | dead
        strange = none & (np.isnan(lse.wide) | (dead & ~np.isfinite(s.wide)))
        p = _where(~none, p)
        p = p.opened(p.open | strange)
        rest = RULES["arith.subf"](dp.value - delta.value, dp, delta)
        ds = _where(~none, RULES["arith.mulf"](p.value * rest.value, p, rest))
        ds = ds.opened(ds.open | strange | (none & ~np.isfinite(rest.wide)))
        truncated = RULES["arith.truncf"]
        return truncated(p.value.astype(kind), p), truncated(ds.value.astype(kind), ds)


def _number(number: float) -> Known:
    return Known.exact(np.asarray(number, np.float32))


def _where(mask: Array, known: Known) -> Known:
    """The numbers where `mask` is set, elsewhere exact zeros."""

    def cut(array: Array) -> Array:
        return np.where(mask, array, np.zeros((), np.asarray(array).dtype))

    return Known(cut(known.value), cut(known.error), cut(known.square))


def _sums(factor: Known, other: Known, kept: Array, products: Products, scale: float) -> Known:
    """A gradient: the sums of products, times `scale`. An infinity or NaN of a row that is
    multiplied by zero, or not at all, makes its sums anything."""
    with np.errstate(all="ignore"):
        sums = products(factor, other)
        number = _number(scale)
        known = RULES["arith.mulf"](sums.value * number.value, sums, number)
        strange = ~np.isfinite(other.wide)
        return known.opened(known.open | ((~kept * 1.0) @ (strange * 1.0) > 0))


def _fields(known: Sequence[Known]) -> tuple[Array, Array, Array]:
    value, error, square = (
        np.stack([getattr(each, name) for each in known]) for name in ("value", "error", "square")
    )
    return value, error, square


def _stacked(known: Sequence[Known]) -> Known:
    """The rows of all heads, one after another."""
    return Known(*(each.reshape(-1, each.shape[-1]) for each in _fields(known)))


def _whole(result: Array, layout: str, heads: Array) -> Array:
    """An array of heads in the shape and order of a result."""
    shape = by_heads(result, layout).shape
    return by_heads(heads.reshape(shape), layout)


def _beside(result: Array, chain: Known, layout: str) -> Known:
    """The errors of a chain of rounded steps from a reference that is rounded once."""
    exact, wide = np.asarray(result, np.float64), chain.wide
    finite = np.isfinite(exact) & np.isfinite(wide)
    with np.errstate(invalid="ignore"):
        away = np.where(finite, np.abs(exact - wide), 0.0)
    alike = finite | (np.isnan(exact) & np.isnan(wide)) | (exact == wide)
    real = Known(exact, chain.error + away, chain.square + away**2)
    return RULES["arith.truncf"](result, real.opened(chain.open | ~alike))
