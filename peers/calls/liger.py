"""Liger-Kernel: results and gradients of its autograd functions."""

from __future__ import annotations

import torch
import torch.nn.functional as fn
from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
from liger_kernel.ops.dyt import LigerDyTFunction
from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction
from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction
from liger_kernel.ops.geglu import LigerGELUMulFunction
from liger_kernel.ops.group_norm import LigerGroupNormFunction
from liger_kernel.ops.jsd import LigerJSDFunction
from liger_kernel.ops.kl_div import LigerKLDivLossFunction
from liger_kernel.ops.layer_norm import LigerLayerNormFunction
from liger_kernel.ops.modulated_rms_norm import LigerModulatedRMSNormFunction
from liger_kernel.ops.poly_norm import LigerPolyNormFunction
from liger_kernel.ops.relu_squared import LigerReLUSquaredFunction
from liger_kernel.ops.rms_norm import LigerRMSNormFunction
from liger_kernel.ops.rope import LigerRopeFunction
from liger_kernel.ops.softmax import LigerSoftmaxFunction
from liger_kernel.ops.sparsemax import LigerSparsemaxFunction
from liger_kernel.ops.swiglu import LigerSiLUMulFunction
from liger_kernel.ops.tvd import LigerTVDLossFunction
from torch import Tensor

from peers.calls import BF16, F16, F32, both_ways, some

TARGET = torch.tensor([3, 299, -100, 150])


def _rms(x: Tensor, offset: float, w: Tensor) -> Tensor:
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * (offset + w)


for _name, _offset, _casting, _kind in (
    *(("llama", 0.0, "llama", BF16), ("gemma", 1.0, "gemma", F16), ("plain", 0.0, "none", F32)),
):
    both_ways(
        f"rms_norm_{_name}",
        lambda x, w, o=_offset, c=_casting: LigerRMSNormFunction.apply(x, w, 1e-6, o, c, False),
        lambda x, w, o=_offset: _rms(x, o, w),
        lambda k=_kind: (some(4, 256, dtype=k), some(256, dtype=k)),
    )
both_ways(
    "fused_add_rms_norm",
    lambda x, r, w: sum(LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6, 0.0, "llama", False)),
    lambda x, r, w: _rms(x + r, 0, w) + x + r,
    lambda: (some(4, 256), some(4, 256), some(256)),
)
both_ways(
    "modulated_rms_norm",
    lambda x, w, s, b: LigerModulatedRMSNormFunction.apply(x, w, s, b, 1e-6, 0.0, "llama", False),
    lambda x, w, s, b: _rms(x, 0, w) * (1 + s) + b,
    lambda: (some(4, 256), some(256), some(4, 256), some(4, 256)),
)
both_ways(
    "layer_norm",
    lambda x, w, b: LigerLayerNormFunction.apply(x, w, b, 1e-5),
    lambda x, w, b: fn.layer_norm(x, (300,), w, b, 1e-5),
    lambda: (some(4, 300), some(300), some(300)),
)
both_ways(
    "group_norm",
    lambda x, w, b: LigerGroupNormFunction.apply(x, w, b, 6, 3, 1e-5),
    lambda x, w, b: fn.group_norm(x, 3, w, b, 1e-5),
    lambda: (some(2, 6, 100), some(6), some(6)),
)
both_ways(
    "poly_norm",
    lambda x, w, b: LigerPolyNormFunction.apply(x, w, b, 1e-6, False),
    lambda x, w, b: sum(_rms(x ** (3 - n), 0, w[n]) for n in range(3)) + b,
    lambda: (some(4, 256), some(3), some(1).reshape(())),
)
both_ways(
    "swiglu",
    LigerSiLUMulFunction.apply,
    lambda a, b: fn.silu(a) * b,
    lambda: (some(4, 256, dtype=BF16), some(4, 256, dtype=BF16)),
)
both_ways(
    "geglu",
    LigerGELUMulFunction.apply,
    lambda a, b: fn.gelu(a, approximate="tanh") * b,
    lambda: (some(4, 256, dtype=F16), some(4, 256, dtype=F16)),
)
both_ways(
    "relu_squared",
    LigerReLUSquaredFunction.apply,
    lambda x: fn.relu(x).square(),
    lambda: (some(4, 300),),
)
both_ways(
    "dyt",
    LigerDyTFunction.apply,
    lambda x, a, g, b: g * torch.tanh(a * x) + b,
    lambda: (some(4, 256), some(1), some(256), some(256)),
)
both_ways("softmax", LigerSoftmaxFunction.apply, lambda x: x.softmax(-1), lambda: (some(4, 500),))


def _sparsemax(x: Tensor) -> Tensor:
    ordered = x.sort(-1, descending=True).values
    sums = ordered.cumsum(-1) - 1
    ranks = torch.arange(1, x.shape[-1] + 1)
    size = (ordered * ranks > sums).sum(-1, keepdim=True)
    return fn.relu(x - sums.gather(-1, size - 1) / size)


both_ways(
    "sparsemax",
    lambda x: LigerSparsemaxFunction.apply(x, -1),
    _sparsemax,
    lambda: (some(4, 200),),
)
both_ways(
    "cross_entropy",
    lambda x: LigerCrossEntropyFunction.apply(x, TARGET, None)[0],
    lambda x: fn.cross_entropy(x, TARGET),
    lambda: (some(4, 300),),
)
both_ways(
    "cross_entropy_smoothed",
    lambda x: LigerCrossEntropyFunction.apply(x, TARGET, None, -100, 0.0, 0.1, "sum")[0],
    lambda x: fn.cross_entropy(x, TARGET, label_smoothing=0.1, reduction="sum"),
    lambda: (some(4, 300),),
)
both_ways(
    "cross_entropy_softcap",
    lambda x: LigerCrossEntropyFunction.apply(x, TARGET, None, -100, 0.0, 0.0, "mean", 5.0)[0],
    lambda x: fn.cross_entropy(5 * torch.tanh(x / 5), TARGET),
    lambda: (some(4, 300),),
)
both_ways(
    "fused_linear_cross_entropy",
    lambda x, w: LigerFusedLinearCrossEntropyFunction.apply(x, w, TARGET)[0],
    lambda x, w: fn.cross_entropy(x @ w.T, TARGET),
    lambda: (some(4, 64), some(300, 64)),
)
both_ways(
    "kl_div",
    lambda x, y: LigerKLDivLossFunction.apply(x, y.detach(), "batchmean"),
    lambda x, y: fn.kl_div(x, y.detach(), reduction="batchmean"),
    lambda: (some(4, 200).log_softmax(-1), some(4, 200).softmax(-1)),
)


def _jsd(x: Tensor, y: Tensor) -> Tensor:
    middle = ((x.exp() + y.detach().exp()) / 2).log()
    parts = (fn.kl_div(middle, z, reduction="batchmean", log_target=True) for z in (x, y.detach()))
    return sum(parts) / 2


both_ways(
    "jsd",
    lambda x, y: LigerJSDFunction.apply(x, y.detach(), None, 0.5, -100, "triton"),
    _jsd,
    lambda: (some(4, 200).log_softmax(-1), some(4, 200).log_softmax(-1)),
)
both_ways(
    "tv_distance",
    lambda p, q: LigerTVDLossFunction.apply(p, q.detach()),
    lambda p, q: (p - q.detach()).abs().sum() / 2 / p.shape[0],
    lambda: (some(4, 200).softmax(-1), some(4, 200).softmax(-1)),
)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return x * cos[:, None] + torch.cat((-x[..., half:], x[..., :half]), -1) * sin[:, None]


def _angles() -> tuple[Tensor, Tensor]:
    angle = torch.rand(1, 8, 32).repeat(1, 1, 2)
    return angle.cos(), angle.sin()


for _name, _heads in (("rope", 2), ("rope_equal_heads", 4)):
    both_ways(
        _name,
        lambda q, k, c, s: torch.cat(LigerRopeFunction.apply(q, k, c.detach(), s.detach()), 1),
        lambda q, k, c, s: torch.cat([_turned(x, c.detach(), s.detach()) for x in (q, k)], 1),
        lambda h=_heads: (some(1, 4, 8, 64), some(1, h, 8, 64), *_angles()),
    )
