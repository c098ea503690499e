"""flash-linear-attention: Gluon and Triton kernels; attention against the package's own
recurrences in PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as fn
from fla.modules.causal_conv1d.backends import gluon as conv
from fla.modules.fused_cross_entropy import gluon as entropy
from fla.modules.norm import l2norm, layernorm
from fla.ops.common.chunk_h import chunk_fwd_h
from fla.ops.common.chunk_o import chunk_fwd_o
from fla.ops.common.chunk_scaled_dot_kkt import chunk_scaled_dot_kkt_fwd
from fla.ops.delta_rule import chunk_delta_rule, fused_recurrent_delta_rule
from fla.ops.delta_rule.naive import delta_rule_recurrence
from fla.ops.gated_delta_rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule
from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule
from fla.ops.gla import chunk_gla, fused_recurrent_gla
from fla.ops.gla.naive import naive_recurrent_gla
from fla.ops.hgrn import fused_recurrent_hgrn
from fla.ops.hgrn.naive import naive_recurrent_hgrn
from fla.ops.linear_attn import chunk_linear_attn, fused_recurrent_linear_attn
from fla.ops.linear_attn.naive import naive_recurrent_linear_attn
from fla.ops.retention import chunk_retention
from fla.ops.retention.naive import naive_retention
from fla.ops.simple_gla import chunk_simple_gla, fused_recurrent_simple_gla
from fla.ops.simple_gla.naive import naive_recurrent_simple_gla
from fla.ops.utils.cumsum import chunk_local_cumsum
from fla.ops.utils.sinkhorn import gluon as sinkhorn
from fla.ops.utils.solve_tril import solve_tril
from torch import Tensor

from peers.calls import BF16, F16, F64, Pair, call, named, small, some

TARGET = torch.tensor([3, 999, -100, 500])


def _conv(x: Tensor, w: Tensor) -> Tensor:
    """x [batch, time, channels], w [channels, width]: causal, one filter a channel."""
    x8, w8, width = x.double().mT, w.double()[:, None], w.shape[1]
    return fn.conv1d(fn.pad(x8, (width - 1, 0)), w8, groups=w.shape[0]).mT


@call
def gluon_conv1d() -> list[Pair]:
    x, w, b = some(2, 70, 64, dtype=BF16), some(64, 4, dtype=BF16), some(64, dtype=BF16)
    got = conv.causal_conv1d_fwd_gluon(x, w, b, activation="silu")
    return [(got[0] if isinstance(got, tuple) else got, fn.silu(_conv(x, w) + b.double()))]


@call
def gluon_conv1d_residual() -> list[Pair]:
    x, w, r = small(1, 64, 32), small(32, 3), small(1, 64, 32)
    got = conv.causal_conv1d_fwd_gluon(x, w, None, r)
    return [(got[0] if isinstance(got, tuple) else got, _conv(x, w) + r.double())]


@call
def gluon_cross_entropy() -> list[Pair]:
    x = some(4, 1000)
    loss, *_ = entropy.cross_entropy_fwd_gluon(x, TARGET)
    return [(loss, fn.cross_entropy(x.double(), TARGET, reduction="none"))]


@call
def gluon_cross_entropy_softcap() -> list[Pair]:
    """Two launches, the second of which adds partial results."""
    x, target = some(5, 5000, dtype=BF16), torch.tensor([3, 4999, -100, 2500, 0])
    loss, *_ = entropy.cross_entropy_fwd_gluon(x, target, logit_softcapping=30.0)
    capped = 30 * torch.tanh(x.double() / 30)
    return [(loss, fn.cross_entropy(capped, target, reduction="none"))]


@call
def gluon_cross_entropy_backward() -> list[Pair]:
    x, steps = some(4, 1000), some(4)
    x8 = x.double().requires_grad_()
    fn.cross_entropy(x8, TARGET, label_smoothing=0.1, reduction="none").backward(steps.double())
    got = entropy.cross_entropy_bwd_gluon(x, TARGET, x.logsumexp(-1), steps, label_smoothing=0.1)
    return [(got[0] if isinstance(got, tuple) else got, x8.grad)]


def _sinkhorn(x: Tensor, steps: int) -> Tensor:
    p = x.exp()
    for _ in range(steps):
        p = p / p.sum(1, keepdim=True)
        p = p / p.sum(2, keepdim=True)
    return p


@call
def gluon_sinkhorn() -> list[Pair]:
    x = some(6, 4, 4)
    return [(sinkhorn.sinkhorn_fwd_gluon(x, 5)[0], _sinkhorn(x.double(), 5))]


@call
def gluon_sinkhorn_backward() -> list[Pair]:
    x, steps = some(4, 8, 8), some(4, 8, 8)
    x8 = x.double().requires_grad_()
    _sinkhorn(x8, 3).backward(steps.double())
    return [(sinkhorn.sinkhorn_bwd_gluon(x, steps, 3), x8.grad)]


def _states(k: Tensor, v: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
    """k, v [time, 64], decay [time]: base-2 logarithms, sums within a chunk."""
    state, states = torch.zeros(64, 64, dtype=F64), []
    for at in range(0, len(k), 64):
        states.append(state)
        g = decay[at : at + 64].double()
        keys = k[at : at + 64].double() * torch.exp2(g[-1] - g)[:, None]
        state = torch.exp2(g[-1]) * state + keys.T @ v[at : at + 64].double()
    return torch.stack(states), state


@call
def chunk_h() -> list[Pair]:
    """States of linear attention, one per chunk."""
    k, v = small(1, 192, 1, 64, dtype=BF16), small(1, 192, 1, 64, dtype=BF16)
    h, last = chunk_fwd_h(k, v, output_final_state=True)
    states, end = _states(k[0, :, 0], v[0, :, 0], torch.zeros(192))
    return [(h.reshape(3, 64, 64), states.to(BF16)), (last[0, 0], end)]


@call
def chunk_h_gated() -> list[Pair]:
    gate = -torch.rand(1, 128, 2).cumsum(1) / 16
    k, v = small(1, 128, 2, 64, dtype=BF16), small(1, 128, 2, 64, dtype=BF16)
    h, _ = chunk_fwd_h(k, v, gate)
    want = [_states(k[0, :, n], v[0, :, n], gate[0, :, n])[0] for n in range(2)]
    return [(h[0], torch.stack(want, 1))]


@call
def chunk_o() -> list[Pair]:
    q, k, v = (small(1, 128, 1, 64, dtype=BF16) for _ in range(3))
    h = small(1, 2, 1, 64, 64, dtype=BF16)
    a, b, c = (x.double().reshape(2, 64, 64) for x in (q, k, v))
    want = a @ h.double().reshape(2, 64, 64) + (a @ b.mT).tril() @ c
    return [(chunk_fwd_o(q, k, v, h, scale=1.0).reshape(2, 64, 64), want.to(BF16))]


@call
def chunk_kkt() -> list[Pair]:
    k, beta = small(1, 128, 1, 64, dtype=BF16), small(1, 128, 1)
    k8 = k.double().reshape(2, 64, 64)
    want = beta.double().reshape(2, 64, 1) * (k8 @ k8.mT).tril(-1)
    return [(chunk_scaled_dot_kkt_fwd(k, None, beta).reshape(2, 64, 64), want)]


for _size, _scale in ((64, 16), (16, 8)):

    def _inverse(size: int = _size, scale: int = _scale) -> list[Pair]:
        """(I + A)^-1 of strictly lower triangular blocks."""
        blocks = (small(2, size, size) / scale).tril(-1)
        got = solve_tril(blocks.reshape(1, 2 * size, 1, size).contiguous())
        want = torch.linalg.inv(torch.eye(size, dtype=F64) + blocks.double())
        return [(got.reshape(2, size, size), want, 50)]

    named(f"inverse_{_size}", _inverse)


@call
def cumsum() -> list[Pair]:
    x = small(1, 128, 2)
    want = x.double().reshape(2, 64, 2).cumsum(1)
    return [(chunk_local_cumsum(x, 64).reshape(2, 64, 2), want)]


@call
def cumsum_vector() -> list[Pair]:
    """From the end of each chunk; the last one has 36 rows."""
    x = small(1, 100, 1, 64)
    parts = [part.flip(0).cumsum(0).flip(0) for part in x.double()[0, :, 0].split(64)]
    return [(chunk_local_cumsum(x, 64, reverse=True)[0, :, 0], torch.cat(parts))]


@call
def l2norm_forward() -> list[Pair]:
    x = some(8, 64, dtype=BF16)
    got = l2norm.l2norm_fwd(x, eps=1e-6)
    x8 = x.double()
    return [(got[0], x8 * (x8.square().sum(-1, keepdim=True) + 1e-6).rsqrt())]


@call
def layer_norm_forward() -> list[Pair]:
    x, w, b = some(8, 128, dtype=F16), some(128), some(128)
    got = layernorm.layer_norm_fwd(x, w, b, 1e-5)
    return [(got[0], fn.layer_norm(x.double(), (128,), w.double(), b.double()))]


def _unit(x: Tensor) -> Tensor:
    return fn.normalize(x.float(), dim=-1).to(x.dtype)


def _attention(
    name: str,
    ours: Callable[..., object],
    theirs: Callable[..., object],
    *gates: Callable[[], Tensor],
    theirs_order: tuple[int, ...] = (),
) -> None:
    """64 steps of two heads of 32; unit keys. gates: further operands of `ours`; `theirs` has them
    in the order `theirs_order`."""

    def compute() -> list[Pair]:
        q, k, v = some(1, 64, 2, 32), _unit(some(1, 64, 2, 32)), some(1, 64, 2, 32)
        more = [gate() for gate in gates]
        want = theirs(q, k, v, *(more[n] for n in theirs_order or range(len(more))))
        got = ours(q, k, v, *more)
        first = [x[0] if isinstance(x, tuple) else x for x in (got, want)]
        return [(*first, 100)]  # products in tf32, sums of 64 steps

    named(name, compute)


def _beta() -> Tensor:
    return torch.rand(1, 64, 2)


def _decay() -> Tensor:
    return -torch.rand(1, 64, 2) / 4


def _decays() -> Tensor:
    return -torch.rand(1, 64, 2, 32) / 4


def _heads_first(rule: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., Tensor]:
    return lambda q, k, v, b: rule(*(x.transpose(1, 2) for x in (q, k, v, b)))[0].transpose(1, 2)


_attention(
    "chunk_linear", lambda *a: chunk_linear_attn(*a, normalize=False), naive_recurrent_linear_attn
)
_attention(
    "recurrent_linear",
    lambda *a: fused_recurrent_linear_attn(*a, normalize=False),
    naive_recurrent_linear_attn,
)
_attention(
    "chunk_retention",
    chunk_retention,
    lambda *a: naive_retention(*(x.transpose(1, 2) for x in a)).transpose(1, 2),
)
_attention("chunk_simple_gla", chunk_simple_gla, naive_recurrent_simple_gla, _decay)
_attention("recurrent_simple_gla", fused_recurrent_simple_gla, naive_recurrent_simple_gla, _decay)
_attention("chunk_gla", chunk_gla, naive_recurrent_gla, _decays)
_attention("recurrent_gla", fused_recurrent_gla, naive_recurrent_gla, _decays)
_attention(
    "chunk_delta_rule",
    lambda *a: chunk_delta_rule(*(x.half() for x in a)),
    _heads_first(delta_rule_recurrence),
    _beta,
)
_attention(
    "recurrent_delta_rule", fused_recurrent_delta_rule, _heads_first(delta_rule_recurrence), _beta
)
_attention(
    "chunk_gated_delta_rule",
    lambda *a: chunk_gated_delta_rule(*(x.half() for x in a)),
    naive_recurrent_gated_delta_rule,
    _decay,
    _beta,
    theirs_order=(1, 0),
)
_attention(
    "recurrent_gated_delta_rule",
    lambda q, k, v, g, beta: fused_recurrent_gated_delta_rule(q, k, v, g, beta=beta),
    naive_recurrent_gated_delta_rule,
    _decay,
    _beta,
    theirs_order=(1, 0),
)


@call
def recurrent_hgrn() -> list[Pair]:
    x, g = some(1, 50, 64), -torch.rand(1, 50, 64)
    want = naive_recurrent_hgrn(x, g)
    got = fused_recurrent_hgrn(x, g)
    return [(got[0], want[0])]
