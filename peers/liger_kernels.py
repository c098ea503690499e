"""Liger-Kernel: `python liger_kernels.py OUT` writes OUT/NAME.ptx and OUT/NAME.json.

The Triton kernels of the package liger-kernel as its host code launches them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton_recording
from liger_kernel.ops import (
    cross_entropy,
    dyt,
    fused_add_rms_norm,
    geglu,
    group_norm,
    kl_div,
    layer_norm,
    relu_squared,
    rms_norm,
    rope,
    softmax,
    swiglu,
    tvd,
)

KERNELS: dict[str, Callable[[], Any]] = {}
F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32


def kernel(function: Callable[[], Any]) -> Callable[[], Any]:
    KERNELS[function.__name__] = function
    return function


def some(*shape: int, dtype: Any = F32) -> torch.Tensor:
    return torch.randn(*shape).to(dtype)


@kernel
def rms_norm_llama() -> Any:
    x, w = some(4, 500, dtype=BF16), some(500, dtype=BF16)
    return rms_norm.rms_norm_forward(x, w, 1e-6, 0.0, "llama", True)


@kernel
def rms_norm_gemma() -> Any:
    x, w = some(3, 256, dtype=F16), some(256, dtype=F16)
    return rms_norm.rms_norm_forward(x, w, 1e-6, 1.0, "gemma", True)


@kernel
def add_rms_norm() -> Any:
    x, r, w = some(4, 512), some(4, 512), some(512)
    return fused_add_rms_norm.fused_add_rms_norm_forward(x, r, w, 1e-6, 0.0, "llama")


@kernel
def layer_norm_forward() -> Any:
    x, w, b = some(4, 300), some(300), some(300)
    return layer_norm.layer_norm_forward(x, w, b, 1e-5)


@kernel
def group_norm_forward() -> Any:
    x, w, b = some(2, 6, 100), some(6), some(6)
    return group_norm.group_norm_forward(x, 6, 3, w, b, 1e-5)


@kernel
def softmax_forward() -> Any:
    return softmax._softmax_forward(some(4, 500))


@kernel
def swiglu_forward() -> Any:
    return swiglu.swiglu_forward(some(4, 256, dtype=BF16), some(4, 256, dtype=BF16))


@kernel
def swiglu_backward() -> Any:
    return swiglu.swiglu_backward(some(3, 200), some(3, 200), some(3, 200))


@kernel
def geglu_forward() -> Any:
    return geglu.geglu_forward(some(4, 256, dtype=F16), some(4, 256, dtype=F16))


@kernel
def cross_entropy_forward() -> Any:
    """The gradient takes the place of the logits."""
    x, target = some(4, 1000).requires_grad_(), torch.tensor([3, 999, -100, 500])
    return cross_entropy.cross_entropy_forward(
        x.detach().requires_grad_(), target, None, -100, 0.0, 0.0, "mean", None, False
    )


def _rope(heads: int, key_heads: int) -> Any:
    angle = torch.arange(8)[:, None] * 10000 ** (-torch.arange(32) / 32)
    angle = torch.cat([angle, angle], dim=1)[None].float()
    q, k = some(1, heads, 8, 64), some(1, key_heads, 8, 64)
    return rope.rope_forward(q, k, angle.cos(), angle.sin())


@kernel
def rope_forward() -> Any:
    return _rope(4, 2)


@kernel
def rope_equal_heads() -> Any:
    return _rope(4, 4)


@kernel
def relu_squared_forward() -> Any:
    return relu_squared.relu_squared_forward(some(4, 300))


@kernel
def dyt_forward() -> Any:
    return dyt.liger_dyt_fwd(some(4, 256), torch.tensor([0.5]), some(256), some(256))


@kernel
def kl_div_forward() -> Any:
    x, y = some(4, 500).log_softmax(-1), some(4, 500).softmax(-1)
    return kl_div.kldiv_forward_triton(x, y, False, "none", 1e-10)


@kernel
def tv_distance() -> Any:
    p, q = some(4, 500).softmax(-1), some(4, 500).softmax(-1)
    return tvd.tv_distance_forward_triton(p, q, None, "none", -100, False)


if __name__ == "__main__":
    triton_recording.record(KERNELS, Path(sys.argv[1]), sys.argv[2:])
