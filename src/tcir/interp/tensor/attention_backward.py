"""The rule of ``tc.attention_backward``, which is computed in float64 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.interp.bands import allowed
from tcir.interp.tensor.arith import convert
from tcir.interp.tensor.attention import by_heads
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, dtype_of


def heads_of(
    op: tc.AttentionBackwardOp, q: Array, k: Array, v: Array, dout: Array
) -> tuple[Array, Array, Array, Array]:
    """Returns q, k, v and dout as [..., h, m, d] in float64; the keys and values of a group are
    repeated for each of its query heads.
    """
    of, queries, keys = op.extents(), string(op, "q_layout"), string(op, "kv_layout")
    q, dout = (by_heads(each, queries).astype(np.float64) for each in (q, dout))
    k, v = (
        np.repeat(by_heads(each, keys).astype(np.float64), of["h"] // of["g"], axis=1)
        for each in (k, v)
    )
    return q, k, v, dout


@evaluate(tc.AttentionBackwardOp)
def attention_backward(
    _: Interpreter,
    op: tc.AttentionBackwardOp,
    q: Array,
    k: Array,
    v: Array,
    dout: Array,
    lse: Array,
    delta: Array,
) -> Sequence[Array]:
    of, queries, keys = op.extents(), string(op, "q_layout"), string(op, "kv_layout")
    q, k, v, dout = heads_of(op, q, k, v, dout)
    lse, delta = (each.astype(np.float64)[..., None] for each in (lse, delta))
    with np.errstate(all="ignore"):
        kept = allowed(of["m"], of["n"], of["n"], op.band) & (lse != -np.inf)
        scores = q @ k.swapaxes(-1, -2) * op.factor
        p = np.where(kept, np.exp(np.where(kept, scores - lse, 0)), 0)
        ds = np.where(kept, p * (dout @ v.swapaxes(-1, -2) - delta), 0) * op.factor
        if op.of_queries:
            found = [by_heads(ds @ k, queries)]
        else:
            whole = (of["b"], of["g"], of["h"] // of["g"], of["n"])
            parts = (ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ dout)
            sums = (each.reshape(*whole, each.shape[-1]).sum(axis=2) for each in parts)
            found = [by_heads(each, keys) for each in sums]
    return [
        convert(np.ascontiguousarray(each + 0.0, np.float32), dtype_of(result.type))
        for each, result in zip(found, op.gradients, strict=True)
    ]
