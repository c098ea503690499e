"""SGLang: Triton kernels of `sglang.kernels.ops`."""

from __future__ import annotations

import torch
import torch.nn.functional as fn
from sglang.kernels.ops.activation.minimax_m3_swiglu import swiglu_oai_split as swiglu
from sglang.kernels.ops.activation.softcap import softcap_to_float32_logits as capped
from sglang.kernels.ops.attention.linear.fused_gdn_gating import fused_gdn_gating as gating
from sglang.kernels.ops.attention.merge_state import merge_state_triton
from sglang.kernels.ops.attention.position import compute_position_triton
from sglang.kernels.ops.layernorm.minimax_m3_rmsnorm import gemma_fused_add_rmsnorm as add_gemma
from sglang.kernels.ops.layernorm.minimax_m3_rmsnorm import gemma_rmsnorm as gemma
from sglang.kernels.ops.layernorm.rmsnorm_fp32 import rmsnorm_fp32 as rms_in_f32
from sglang.kernels.ops.quantization.bf16x3_split import split_fp32_to_bf16x3 as in_three
from sglang.kernels.ops.sampling.renorm_triton import top_k_renorm_probs_triton
from sglang.kernels.ops.speculative.row_argmax import row_argmax as largest

from peers.calls import BF16, F16, Pair, call, some


@call
def merge_state() -> list[Pair]:
    outs, logs = some(2, 5, 4, 64), some(2, 5, 4)
    got, log = merge_state_triton(outs[0], logs[0], outs[1], logs[1])
    total = torch.logsumexp(logs.double(), 0)
    weights = torch.exp(logs.double() - total)[..., None]
    return [(got, (weights * outs.double()).sum(0)), (log, total)]


@call
def rmsnorm_fp32() -> list[Pair]:
    x, w = some(4, 300, dtype=BF16), some(300)
    return [(rms_in_f32(x, w, 1e-5), fn.rms_norm(x.double(), (300,), w.double(), 1e-5), 1000)]


@call
def gemma_rmsnorm() -> list[Pair]:
    x, w = some(4, 256, dtype=F16), some(256, dtype=F16)
    return [(gemma(x, w, 1e-5), fn.rms_norm(x.double(), (256,), 1 + w.double(), 1e-5))]


@call
def gemma_fused_add_rmsnorm() -> list[Pair]:
    x, r, w = some(4, 256), some(4, 256), some(256)
    got, total = add_gemma(x, r, w, 1e-5)
    want = x.double() + r.double()
    return [(got, fn.rms_norm(want, (256,), 1 + w.double(), 1e-5)), (total, want)]


@call
def softcap() -> list[Pair]:
    x = 20 * some(3, 500, dtype=BF16)
    got = torch.empty(3, 500)
    capped(x, 30.0, got)
    return [(got, 30 * torch.tanh(x.double() / 30))]


@call
def swiglu_oai() -> list[Pair]:
    x = some(4, 400)
    gate, up = x.double().chunk(2, -1)
    want = gate * torch.sigmoid(1.702 * gate) * (up + 1)
    return [(swiglu(x, 1.702, 1.0, None), want)]


@call
def compute_position() -> list[Pair]:
    before, lengths = torch.tensor([3, 0, 7]), torch.tensor([4, 5, 2])
    at, start = compute_position_triton(before, lengths, 11)
    want = torch.cat([torch.arange(b, b + n) for b, n in zip(before, lengths, strict=True)])
    return [(at, want), (start, torch.tensor([0, 4, 9]))]


@call
def fused_gdn_gating() -> list[Pair]:
    log, a, b, bias = some(8), some(5, 8, dtype=F16), some(5, 8, dtype=F16), some(8)
    got, beta = gating(log, a, b, bias)
    want = -log.double().exp() * fn.softplus(a.double() + bias.double())
    return [(got[0], want), (beta[0], torch.sigmoid(b.double()), 50)]  # which it rounds to f16


@call
def top_k_renorm_probs() -> list[Pair]:
    x = torch.softmax(some(3, 500), -1)
    kept = x.double() * (x >= x.topk(20).values[:, -1:])
    return [(top_k_renorm_probs_triton(x, 20), kept / kept.sum(-1, keepdim=True))]


@call
def row_argmax() -> list[Pair]:
    x = some(3, 5000)
    return [(largest(x), x.argmax(-1))]


@call
def split_fp32_to_bf16x3() -> list[Pair]:
    x = some(4, 300)
    high = x.to(BF16)
    middle = (x - high.float()).to(BF16)
    low = (x - high.float() - middle.float()).to(BF16)
    return [(in_three(x), torch.cat([high, middle, low]).double())]
