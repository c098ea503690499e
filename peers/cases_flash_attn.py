"""Values and numpy oracles of FlashAttention-4; the launches are recorded ones."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from peers.case import Launch, case, rng
from peers.flash_attn_kernels import FORWARD
from peers.recorded import Recorded

DTYPES: dict[str, Any] = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def attention(q: Any, k: Any, v: Any, causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """[batch, rows, heads, size] -> output of that shape and log-sum-exp [batch, heads, rows]."""
    q, k, v = (t.astype("f8") for t in (q, k, v))
    shared = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, shared, axis=2), np.repeat(v, shared, axis=2)
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    if causal:  # the last query sees all keys
        rows, columns = scores.shape[2:]
        seen = np.arange(columns)[None] <= np.arange(rows)[:, None] + columns - rows
        scores = np.where(seen, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    return np.einsum("bhqk,bkhd->bqhd", weights / total, v), (np.log(total) + top)[..., 0]


def forward(meta: dict[str, Any]) -> Launch:
    """P is rounded to the type of V before the second product: half a unit in its last place."""
    batch, queries, keys, heads, key_heads, size, name, options = meta["forward"]
    dtype = DTYPES[name]
    r, run = rng(), Recorded(meta)
    shapes = [(batch, queries, heads, size), *[(batch, keys, key_heads, size)] * 2]
    q, k, v = (run.fill(n, r.standard_normal(s).astype(dtype)) for n, s in enumerate(shapes))
    out, lse = attention(q, k, v, options.get("is_causal", False))
    tolerance = 2e-2 if name == "bfloat16" else 4e-3
    return run.launch(
        (run.array(3, dtype, out.shape), out, tolerance),
        (run.array(4, "f4", lse.shape), lse, 1e-3),
    )


for _name in FORWARD:
    case("flash_attn", _name)(forward)
