"""SageAttention 1: attention whose scores are products of int8."""

from __future__ import annotations

import torch.nn.functional as fn
from sageattention import sageattn

from peers.calls import BF16, F16, Pair, named, some

for _name, _heads, _size, _causal, _kind in (
    ("attention_64", 2, 64, False, F16),
    ("attention_64_causal", 2, 64, True, F16),
    ("attention_128", 1, 128, False, F16),
    ("attention_groups", 1, 64, False, BF16),
):

    def _attention(
        heads: int = _heads, size: int = _size, causal: bool = _causal, kind: object = _kind
    ) -> list[Pair]:
        q = some(1, 2, 128, size, dtype=kind)
        k, v = some(1, heads, 128, size, dtype=kind), some(1, heads, 128, size, dtype=kind)
        all_heads = [t.double().repeat_interleave(2 // heads, 1) for t in (k, v)]
        want = fn.scaled_dot_product_attention(q.double(), *all_heads, is_causal=causal)
        return [(sageattn(q, k, v, is_causal=causal), want, 5)]

    named(_name, _attention)
