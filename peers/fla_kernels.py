"""Flash-linear-attention: `python fla_kernels.py OUT` writes OUT/NAME.ptx and OUT/NAME.json.

Gluon and Triton kernels of the package fla-core as its host code launches them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton_recording
from fla.modules.causal_conv1d.backends import gluon as conv
from fla.modules.fused_cross_entropy import gluon as entropy
from fla.modules.norm import l2norm, layernorm
from fla.ops.common.chunk_h import chunk_fwd_h
from fla.ops.common.chunk_o import chunk_fwd_o
from fla.ops.common.chunk_scaled_dot_kkt import chunk_scaled_dot_kkt_fwd
from fla.ops.utils.cumsum import chunk_local_cumsum
from fla.ops.utils.sinkhorn import gluon as sinkhorn
from fla.ops.utils.solve_tril import solve_tril

KERNELS: dict[str, Callable[[], Any]] = {}
F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32


def kernel(function: Callable[[], Any]) -> Callable[[], Any]:
    KERNELS[function.__name__] = function
    return function


def some(*shape: int, dtype: Any = F32) -> torch.Tensor:
    return torch.randn(*shape).to(dtype)


def small(*shape: int, dtype: Any = BF16) -> torch.Tensor:
    """Integers: sums of products are exact."""
    return torch.randint(-2, 3, shape).to(dtype)


@kernel
def gluon_conv1d() -> Any:
    x, w, b = some(2, 70, 64, dtype=BF16), some(64, 4, dtype=BF16), some(64, dtype=BF16)
    return conv.causal_conv1d_fwd_gluon(x, w, b, activation="silu")


@kernel
def gluon_conv1d_residual() -> Any:
    x, w, r = small(1, 64, 32, dtype=F32), small(32, 3, dtype=F32), small(1, 64, 32, dtype=F32)
    return conv.causal_conv1d_fwd_gluon(x, w, None, r)


@kernel
def gluon_conv1d_dw() -> Any:
    """The second launch of the backward pass: sums over chunks."""
    x, w, dy = small(2, 128, 32), small(32, 4), small(2, 128, 32)
    return conv.causal_conv1d_bwd_gluon(x, dy, None, w, small(32))


@kernel
def gluon_cross_entropy() -> Any:
    return entropy.cross_entropy_fwd_gluon(some(4, 1000), torch.tensor([3, 999, -100, 500]))


@kernel
def gluon_cross_entropy_softcap() -> Any:
    """Two launches; this is the reduction of the partial results."""
    logits, target = some(5, 5000, dtype=BF16), torch.tensor([3, 4999, -100, 2500, 0])
    return entropy.cross_entropy_fwd_gluon(logits, target, logit_softcapping=30.0)


@kernel
def gluon_cross_entropy_backward() -> Any:
    logits, target = some(4, 1000), torch.tensor([3, 999, -100, 500])
    lse = logits.logsumexp(-1)
    return entropy.cross_entropy_bwd_gluon(logits, target, lse, some(4), label_smoothing=0.1)


@kernel
def gluon_sinkhorn() -> Any:
    return sinkhorn.sinkhorn_fwd_gluon(some(6, 4, 4), 5)


@kernel
def gluon_sinkhorn_backward() -> Any:
    return sinkhorn.sinkhorn_bwd_gluon(some(4, 8, 8), some(4, 8, 8), 3)


@kernel
def chunk_h() -> Any:
    """States of linear attention, one per chunk."""
    return chunk_fwd_h(small(1, 192, 1, 64), small(1, 192, 1, 64), output_final_state=True)


@kernel
def chunk_h_gated() -> Any:
    gate = -torch.rand(1, 128, 2).cumsum(1) / 16
    return chunk_fwd_h(small(1, 128, 2, 64), small(1, 128, 2, 64), gate)


@kernel
def chunk_o() -> Any:
    q, k, v, h = (
        small(1, 128, 1, 64),
        small(1, 128, 1, 64),
        small(1, 128, 1, 64),
        small(1, 2, 1, 64, 64),
    )
    return chunk_fwd_o(q, k, v, h, scale=1.0)


@kernel
def chunk_kkt() -> Any:
    return chunk_scaled_dot_kkt_fwd(small(1, 128, 1, 64), None, small(1, 128, 1, dtype=F32))


@kernel
def inverse_64() -> Any:
    """(I + A)^-1 of strictly lower triangular blocks."""
    a = (small(1, 64, 1, 64, dtype=F32) / 16).tril(-1)
    a[0, :, 0] = a[0, :, 0].tril(-1)
    return solve_tril(a)


@kernel
def inverse_16() -> Any:
    a = small(1, 32, 1, 16, dtype=F32) / 8
    return solve_tril(a)


@kernel
def cumsum() -> Any:
    return chunk_local_cumsum(small(1, 128, 2, dtype=F32), 64)


@kernel
def cumsum_vector() -> Any:
    return chunk_local_cumsum(small(1, 100, 1, 64, dtype=F32), 64, reverse=True)


@kernel
def l2norm_forward() -> Any:
    return l2norm.l2norm_fwd(some(8, 64, dtype=BF16), eps=1e-6)


@kernel
def layer_norm_forward() -> Any:
    return layernorm.layer_norm_fwd(some(8, 128, dtype=F16), some(128), some(128), 1e-5)


if __name__ == "__main__":
    triton_recording.record(KERNELS, Path(sys.argv[1]), sys.argv[2:])
