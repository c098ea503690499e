"""The rule of ``tc.attention``: in float64, and rounded once, as contractions are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.interp.tensor.arith import convert
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, dtype_of


def by_heads(array: Array, layout: str) -> Array:
    """From `layout` to [b, h, m, d], with the heads before the rows, and back."""
    return array if layout[1] == "h" else array.swapaxes(1, 2)


def allowed(rows: int, keys: int, offset: int | None) -> Array:
    """Mask [rows, keys] of the keys that each row has."""
    if offset is None:
        return np.ones((rows, keys), bool)
    return np.arange(keys)[None, :] <= np.arange(rows)[:, None] + offset


def attended(q: Array, k: Array, v: Array, scale: float, keys: Array) -> tuple[Array, Array]:
    """Results and logarithms of the sums of exponentials, in float64.

    q, k, v: float64, [..., m, d], [..., n, d] and [..., n, e]
    keys:    mask [m, n] of the keys that each row has
    """
    with np.errstate(all="ignore"):
        scores = np.where(keys, q @ k.swapaxes(-1, -2) * scale, -np.inf)
        most = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
        powers = np.exp(scores - np.where(most == -np.inf, 0, most))
        total = powers.sum(axis=-1, keepdims=True)
        weights = np.where(total == 0, 0, powers / np.where(total == 0, 1, total))
        lse = np.where(total == 0, -np.inf, np.log(total) + most)
        return weights @ v + 0.0, lse[..., 0]  # sums begin with +0


@evaluate(tc.AttentionOp)
def attention(_: Interpreter, op: tc.AttentionOp, q: Array, k: Array, v: Array) -> Sequence[Array]:
    of = op.extents()
    q = by_heads(q, string(op, "q_layout")).astype(np.float64)
    k, v = (by_heads(each, string(op, "kv_layout")).astype(np.float64) for each in (k, v))
    k, v = (np.repeat(each, of["h"] // of["g"], axis=1) for each in (k, v))
    out, lse = attended(q, k, v, op.factor, allowed(of["m"], of["n"], op.causal))
    found = zip((by_heads(out, string(op, "out_layout")), lse), op.operation.results, strict=True)
    return [
        convert(np.ascontiguousarray(each, np.float32), dtype_of(result.type))
        for each, result in found
    ]
