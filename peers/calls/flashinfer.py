"""FlashInfer: its Triton kernels."""

from __future__ import annotations

import torch
import torch.nn.functional as fn
from flashinfer.triton.activation import silu_and_mul as silu
from flashinfer.triton.cascade import merge_state as merge
from flashinfer.triton.cascade import merge_states as merge_all
from flashinfer.triton.cascade import variable_length_merge_states as merge_ragged
from flashinfer.triton.norm import rms_norm as rms
from flashinfer.triton.norm import rms_norm_add_residual as add_rms
from flashinfer.triton.sm_constraint_gemm import gemm as product
from flashinfer.triton.sm_constraint_gemm import gemm_persistent as persistent

from peers.calls import F16, Pair, call, small, some


def _merged(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """v [tokens, parts, heads, size], s [tokens, parts, heads]: logarithms of base 2."""
    v, s = v.double(), s.double()
    weight = torch.exp2(s - s.amax(1, keepdim=True))
    total = weight.sum(1)
    return (v * weight[..., None]).sum(1) / total[..., None], total.log2() + s.amax(1)


@call
def merge_state() -> list[Pair]:
    v, s = some(5, 2, 4, 64), some(5, 2, 4)
    parts = v[:, 0].contiguous(), s[:, 0].contiguous(), v[:, 1].contiguous(), s[:, 1].contiguous()
    return list(zip(merge(*parts), _merged(v, s), strict=True))


@call
def merge_states() -> list[Pair]:
    v, s = some(5, 3, 4, 64), some(5, 3, 4)
    return list(zip(merge_all(v, s), _merged(v, s), strict=True))


@call
def variable_length_merge_states() -> list[Pair]:
    v, s = some(6, 4, 64), some(6, 4)
    got = merge_ragged(v, s, torch.tensor([0, 1, 4, 6], dtype=torch.int32))
    parts = [_merged(v[None, a:b], s[None, a:b]) for a, b in ((0, 1), (1, 4), (4, 6))]
    return [(g, torch.cat(w)) for g, w in zip(got, zip(*parts, strict=True), strict=True)]


@call
def silu_and_mul() -> list[Pair]:
    x = some(4, 512, dtype=F16)
    return [(silu(x), fn.silu(x[:, :256].double()) * x[:, 256:].double())]


@call
def rms_norm() -> list[Pair]:
    x, w = some(4, 256, dtype=F16), some(256, dtype=F16)
    out = torch.empty_like(x)
    rms(x, w, out, 1e-5)
    return [(out, fn.rms_norm(x.double(), (256,), w.double(), 1e-5))]


@call
def rms_norm_add_residual() -> list[Pair]:
    x, r, w = some(4, 256), some(4, 256), some(256)
    total = x.double() + r.double()
    add_rms(x, r, w, 1e-5)
    return [(x, fn.rms_norm(total, (256,), w.double(), 1e-5)), (r, total)]


@call
def gemm() -> list[Pair]:
    a, b = small(128, 64, dtype=F16), small(64, 128, dtype=F16)
    return [(product(a, b, out_dtype=F16), a.double() @ b.double())]


@call
def gemm_persistent() -> list[Pair]:
    a, b = small(256, 64, dtype=F16), small(64, 128, dtype=F16)
    return [(persistent(a, b, out_dtype=F16, num_sms=1), a.double() @ b.double())]


@call
def gemm_added() -> list[Pair]:
    a, b, c = small(128, 64, dtype=F16), small(64, 128, dtype=F16), small(128, 128, dtype=F16)
    return [(product(a, b, c.clone(), beta=1.0, out_dtype=F16), a.double() @ b.double() + c)]


@call
def gemm_persistent_added() -> list[Pair]:
    a, b, c = small(256, 64, dtype=F16), small(64, 128, dtype=F16), small(256, 128, dtype=F16)
    got = persistent(a, b, c.clone(), beta=1.0, out_dtype=F16, num_sms=1)
    return [(got, a.double() @ b.double() + c)]
