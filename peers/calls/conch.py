"""Conch's Triton kernels."""

from __future__ import annotations

import torch
import torch.nn.functional as fn
from conch.ops.activation.gelu_tanh_and_mul import gelu_tanh_and_mul as gelu
from conch.ops.activation.silu_and_mul import silu_and_mul as silu
from conch.ops.embedding.rotary_embedding import rotary_embedding as rotary
from conch.ops.normalization.gemma_rms_norm import gemma_rms_norm as gemma
from conch.ops.normalization.rms_norm import rms_norm as rms
from conch.ops.quantization.fp8 import scaled_fp8_quant
from conch.ops.quantization.gemm import scaled_gemm
from conch.ops.quantization.int8 import scaled_int8_quant
from conch.ops.vision.nms import nms as suppress
from conch.ops.vllm.copy_blocks import copy_blocks as copy
from conch.ops.vllm.reshape_and_cache import reshape_and_cache as cache

from peers.calls import F16, F32, Pair, call, named, small, some

E4M3 = torch.float8_e4m3fn


def _rms(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return fn.rms_norm(x.double(), x.shape[-1:], w.double(), 1e-6)


for _kind in (F16, F32):

    def _norm(kind: torch.dtype = _kind) -> list[Pair]:
        x, w = some(4, 256, dtype=kind), some(256, dtype=kind)
        want = _rms(x, w)
        got = rms(x, w, 1e-6)
        return [(got[0] if isinstance(got, tuple) else got, want)]

    named(f"rms_norm_{str(_kind)[6:]}", _norm)


@call
def gemma_rms_norm() -> list[Pair]:
    x, w = some(4, 256), some(256)
    want = _rms(x, 1 + w)
    return [(gemma(x, w, 1e-6), want)]


@call
def silu_and_mul() -> list[Pair]:
    x = some(4, 256, dtype=F16)
    return [(silu(x), fn.silu(x[:, :128].double()) * x[:, 128:].double())]


@call
def gelu_tanh_and_mul() -> list[Pair]:
    x = some(4, 256)
    want = fn.gelu(x[:, :128].double(), approximate="tanh") * x[:, 128:].double()
    return [(gelu(x), want)]


@call
def rotary_embedding() -> list[Pair]:
    at, angle = torch.randint(0, 16, (5,)), torch.rand(16, 32)
    q, k, table = some(5, 4 * 64), some(5, 2 * 64), torch.cat([angle.cos(), angle.sin()], 1)

    def turned(x: torch.Tensor) -> torch.Tensor:
        cos, sin = table[at].double().chunk(2, 1)
        a, b = x.double().reshape(5, -1, 64).chunk(2, 2)
        parts = (a * cos[:, None] - b * sin[:, None], b * cos[:, None] + a * sin[:, None])
        return torch.cat(parts, 2).reshape(x.shape)

    want = turned(q), turned(k)
    got = rotary(at, q, k, 64, table)
    return list(zip(got, want, strict=True))


@call
def fp8_quant() -> list[Pair]:
    x, scale = some(4, 256), torch.tensor([0.25])
    got, _ = scaled_fp8_quant(x, scale)
    return [(got, (x / scale).to(E4M3))]


@call
def int8_quant() -> list[Pair]:
    x, scale = some(4, 256), torch.tensor([0.125])
    got, _ = scaled_int8_quant(x, scale)
    return [(got.double(), (x / scale).clamp(-128, 127).trunc())]  # which its comment calls rounded


for _name, _columns in (("int8_gemm", 128), ("int8_gemm_ragged", 48)):

    def _gemm(columns: int = _columns) -> list[Pair]:
        a = torch.randint(-9, 9, (32, 128), dtype=torch.int8)
        b = torch.randint(-9, 9, (128, columns), dtype=torch.int8)
        s, t = torch.rand(32, 1), torch.rand(columns, 1)
        want = (a.double() @ b.double()) * s.double() * t.double().T
        return [(scaled_gemm(a, b, s, t, F16), want)]

    named(_name, _gemm)


@call
def nms() -> list[Pair]:
    corner = torch.rand(40, 2)
    boxes, scores = torch.cat([corner, corner + 0.1 + torch.rand(40, 2) * 0.4], 1), torch.rand(40)
    kept: list[int] = []
    for n in scores.argsort(descending=True).tolist():
        x = boxes[n].double()
        for other in map(int, kept):
            y = boxes[other].double()
            sides = (torch.minimum(x[2:], y[2:]) - torch.maximum(x[:2], y[:2])).clamp(min=0)
            area = sides.prod()
            if area / ((x[2:] - x[:2]).prod() + (y[2:] - y[:2]).prod() - area) > 0.4:
                break
        else:
            kept.append(n)
    return [(suppress(boxes, scores, 0.4), torch.tensor(kept))]


@call
def reshape_and_cache() -> list[Pair]:
    k, v = some(6, 2, 64, dtype=F16), some(6, 2, 64, dtype=F16)
    keys, values = (torch.zeros(4, 8, 2, 64, dtype=F16) for _ in range(2))
    slots = torch.tensor([3, 30, 8, 17, 0, 9])
    cache(k, v, keys, values, slots)
    want = [torch.zeros(32, 2, 64).index_copy(0, slots, x.float()) for x in (k, v)]
    return [(got.reshape(32, 2, 64), w) for got, w in zip((keys, values), want, strict=True)]


@call
def copy_blocks() -> list[Pair]:
    keys, values = ([small(6, 1024, dtype=F16) for _ in range(2)] for _ in range(2))
    want = [x.clone() for x in (*keys, *values)]
    for x in want:
        x[4], x[5] = x[1], x[0]
    copy(keys, values, torch.tensor([[1, 4], [0, 5]]))
    return list(zip((*keys, *values), want, strict=True))
