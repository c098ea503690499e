"""vLLM: Triton kernels of its attention and sampler.

Those of `vllm.model_executor` and of its models import the serving engine with all it needs.
"""

from __future__ import annotations

import torch
import torch.nn.functional as fn
from vllm.v1.attention.ops.triton_merge_attn_states import merge_attn_states as merge
from vllm.v1.attention.ops.triton_prefill_attention import context_attention_fwd as prefill
from vllm.v1.worker.gpu.sample.gumbel import apply_temperature as temperatures
from vllm.v1.worker.gpu.sample.min_p import apply_min_p as least

from peers.calls import F16, Pair, call, some


@call
def merge_attn_states() -> list[Pair]:
    outs, logs = some(2, 5, 4, 64), some(2, 4, 5)
    out, log = torch.empty(5, 4, 64), torch.empty(4, 5)
    merge(out, outs[0], logs[0], outs[1], logs[1], log)
    total = torch.logsumexp(logs.double(), 0)
    weights = torch.exp(logs.double() - total).transpose(1, 2)[..., None]
    return [(out, (weights * outs.double()).sum(0)), (log, total)]


@call
def prefill_attention() -> list[Pair]:
    q, k, v = some(40, 4, 64, dtype=F16), some(40, 2, 64, dtype=F16), some(40, 2, 64, dtype=F16)
    out, lengths = torch.empty_like(q), (24, 16)
    prefill(q, k, v, out, torch.tensor([0, 24]), torch.tensor(lengths), 24)
    parts = [
        fn.scaled_dot_product_attention(
            *(x.double().transpose(0, 1)[None] for x in each), is_causal=True, enable_gqa=True
        )[0].transpose(0, 1)
        for each in zip(*(x.split(lengths) for x in (q, k, v)), strict=True)
    ]
    return [(out, torch.cat(parts))]


@call
def apply_temperature() -> list[Pair]:
    x, at, warm = some(3, 500), torch.tensor([1, 0, 1], dtype=torch.int32), torch.tensor([0.5, 2.0])
    want = x.double() / warm.double()[at.long()][:, None]
    temperatures(x, at, warm)
    return [(x, want)]


@call
def apply_min_p() -> list[Pair]:
    x, at, part = some(3, 500), torch.arange(3, dtype=torch.int32), torch.tensor([0.0, 0.1, 0.5])
    bound = x.max(1).values + part.log()
    want = x.double().masked_fill(x < bound[:, None], -torch.inf)
    least(x, at, part)
    return [(x, want)]
