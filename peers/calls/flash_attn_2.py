"""flash-attn 2: the Triton kernels beside its CUDA extension, which is not needed; those of its
linear layers import `triton.ops`, which Triton 3 has not."""

from __future__ import annotations

import torch
import torch.nn.functional as fn
from flash_attn.ops.triton.cross_entropy import cross_entropy_loss
from flash_attn.ops.triton.layer_norm import layer_norm_fn, rms_norm_fn
from flash_attn.ops.triton.rotary import apply_rotary
from torch import Tensor

from peers.calls import F16, Pair, both_ways, named, some

TARGET = torch.tensor([3, 299, 0, 150])

both_ways(
    "layer_norm",
    lambda x, w, b: layer_norm_fn(x, w, b, eps=1e-5),
    lambda x, w, b: fn.layer_norm(x, (256,), w, b),
    lambda: (some(4, 256), some(256), some(256)),
)
both_ways(
    "layer_norm_residual",
    lambda x, w, b, r: layer_norm_fn(x, w, b, residual=r, eps=1e-5),
    lambda x, w, b, r: fn.layer_norm(x + r, (256,), w, b),
    lambda: (some(4, 256), some(256), some(256), some(4, 256)),
)
both_ways(
    "rms_norm",
    lambda x, w: rms_norm_fn(x, w, None, eps=1e-5),
    lambda x, w: fn.rms_norm(x, (256,), w, 1e-5),
    lambda: (some(4, 256, dtype=F16), some(256, dtype=F16)),
)
both_ways(
    "cross_entropy",
    lambda x: cross_entropy_loss(x, TARGET)[0],
    lambda x: fn.cross_entropy(x, TARGET, reduction="none"),
    lambda: (some(4, 300),),
)
both_ways(
    "cross_entropy_smoothed",
    lambda x: cross_entropy_loss(x, TARGET, label_smoothing=0.1)[0],
    lambda x: fn.cross_entropy(x, TARGET, reduction="none", label_smoothing=0.1),
    lambda: (some(4, 300),),
)


def _turned(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    pairs = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    a, b = pairs
    c, s = cos[:, None], sin[:, None]
    out = a * c - b * s, b * c + a * s
    return torch.stack(out, -1).flatten(-2) if interleaved else torch.cat(out, -1)


for _name, _interleaved in (("rotary", False), ("rotary_interleaved", True)):

    def _rotary(interleaved: bool = _interleaved) -> list[Pair]:
        x, angle = some(2, 8, 4, 64), torch.rand(8, 32)
        want = _turned(x.double(), angle.double().cos(), angle.double().sin(), interleaved)
        return [(apply_rotary(x, angle.cos(), angle.sin(), interleaved=interleaved), want)]

    named(_name, _rotary)
