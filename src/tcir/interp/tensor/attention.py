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
    """With the heads before the rows: [b, h, m, d]."""
    return array if layout[1] == "h" else array.swapaxes(1, 2)


def allowed(rows: int, keys: int, offset: int | None) -> Array:
    """Mask [rows, keys] of the keys that each row has."""
    if offset is None:
        return np.ones((rows, keys), bool)
    return np.arange(keys)[None, :] <= np.arange(rows)[:, None] + offset


@evaluate(tc.AttentionOp)
def attention(_: Interpreter, op: tc.AttentionOp, q: Array, k: Array, v: Array) -> Sequence[Array]:
    of = op.extents()
    q = by_heads(q, string(op, "q_layout")).astype(np.float64)
    k, v = (by_heads(each, string(op, "kv_layout")).astype(np.float64) for each in (k, v))
    k, v = (np.repeat(each, of["h"] // of["g"], axis=1) for each in (k, v))
    keys = allowed(of["m"], of["n"], op.causal)
    with np.errstate(all="ignore"):
        scores = np.where(keys, q @ k.swapaxes(-1, -2) * op.factor, -np.inf)
        most = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
        powers = np.exp(scores - np.where(most == -np.inf, 0, most))
        total = powers.sum(axis=-1, keepdims=True)
        weights = np.where(total == 0, 0, powers / np.where(total == 0, 1, total))
        out = weights @ v
        lse = np.where(total == 0, -np.inf, np.log(total) + most)[..., 0]
    if string(op, "out_layout")[1] == "m":
        out = out.swapaxes(1, 2)
    kinds = [dtype_of(result.type) for result in op.operation.results]
    found = zip((out, lse), kinds, strict=True)
    return [convert(np.ascontiguousarray(each, np.float32), kind) for each, kind in found]
