"""FlagGems: its functions have the arguments of PyTorch's."""

from __future__ import annotations

import os
from collections.abc import Callable

os.environ.setdefault("GEMS_VENDOR", "nvidia")  # it would look for nvidia-smi

import flag_gems
import torch
import torch.nn.functional as fn
from flag_gems import fused

from peers.calls import F16, Pair, as_torch, call, small, some


def _op(name: str, theirs: Callable[..., object], *arguments: Callable[[], object]) -> None:
    """A function of `flag_gems.ops`, whose arguments are made for each run."""
    as_torch(name, getattr(flag_gems.ops, name), theirs, lambda: [make() for make in arguments])


def _x() -> torch.Tensor:
    return some(3, 200)


def _half() -> torch.Tensor:
    return some(3, 200, dtype=F16)


def _positive() -> torch.Tensor:
    return torch.rand(3, 200) + 0.1


def _unit() -> torch.Tensor:
    return torch.rand(3, 200) * 0.98 + 0.01


def _wide() -> torch.Tensor:
    x = some(3, 200) * 3
    x[0, 3], x[1, 5], x[2, 7] = torch.inf, -torch.inf, torch.nan
    return x


def _whole() -> torch.Tensor:
    return torch.randint(0, 100, (3, 200), dtype=torch.int32)


def _bit() -> torch.Tensor:
    return torch.randint(0, 2, (3, 200)).bool()


def _is(value: object) -> Callable[[], object]:
    return lambda: value


for _name in (
    *("abs", "absolute", "angle", "arcsinh", "atan", "ceil", "cos", "cosh", "erf", "exp", "exp2"),
    *("expm1", "i0", "neg", "relu", "reciprocal", "round", "sigmoid", "sin", "special_i0e"),
    *("special_i1", "square", "tan", "tanh", "logical_not", "signbit", "trace", "tril", "triu"),
    *("flip", "t_copy", "alias_copy", "count_nonzero"),
):
    _torch = {"special_i0e": torch.special.i0e, "special_i1": torch.special.i1}
    _theirs = _torch.get(_name) or getattr(torch, _name)
    _more = {"flip": [_is([1])], "trace": [], "tril": [_is(2)], "triu": [_is(-3)]}.get(_name, [])
    _op(_name, _theirs, _x, *_more)
for _name in ("log", "log10", "rsqrt", "sqrt"):
    _op(_name, getattr(torch, _name), _positive)
for _name in ("acos", "logit"):
    _op(_name, getattr(torch, _name), _unit)
for _name in ("gelu", "silu", "elu", "celu", "selu", "softplus", "softshrink", "relu6", "glu"):
    _op(_name, getattr(fn, _name), _half if _name in ("gelu", "silu") else _x)
_op("log_sigmoid", fn.logsigmoid, _x)
_op("hardsigmoid", fn.hardsigmoid, _x)
_op("threshold", torch.threshold, _x, _is(0.1), _is(20.0))
_op("prelu", torch.prelu, _x, lambda: some(1))
for _name in ("isnan", "isinf", "isfinite", "isneginf"):
    _op(_name, getattr(torch, _name), _wide)
_op("nan_to_num", lambda x: torch.nan_to_num(x.float()), _wide)  # to the largest float32
for _name in ("add", "sub", "mul", "maximum", "minimum", "fmin", "atan2", "hypot", "copysign"):
    _op(_name, getattr(torch, _name), _x, _x)
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "greater"):
    _op(_name, getattr(torch, _name), _whole, _whole)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _op(f"{_name}_scalar", getattr(torch, _name), _whole, _is(50))
for _name in ("logical_and", "logical_or", "logical_xor"):
    _op(_name, getattr(torch, _name), _bit, _bit)
for _name in ("bitwise_and", "bitwise_or"):
    _op(f"{_name}_tensor", getattr(torch, _name), _whole, _whole)
    _op(f"{_name}_scalar", getattr(torch, _name), _whole, _is(0x55))
_op("bitwise_not", torch.bitwise_not, _whole)
# FlagGems passes `out` to a kernel that has no such parameter: they do not start.
_op("bitwise_left_shift", torch.bitwise_left_shift, _whole, lambda: _whole() % 8)
_op("bitwise_right_shift", torch.bitwise_right_shift, _whole, lambda: _whole() % 8)
_op("logaddexp", torch.logaddexp, _x, _x)
_op("true_divide", torch.true_divide, _x, _positive)
_op("floor_divide", torch.floor_divide, _whole, lambda: _whole() + 1)
_op("remainder", torch.remainder, _whole, lambda: _whole() + 1)
_op("pow_tensor_tensor", torch.pow, _positive, _x)
_op("pow_tensor_scalar", torch.pow, _positive, _is(1.5))
_op("pow_scalar", torch.pow, _is(1.5), _x)
_op("clamp", torch.clamp, _x, _is(-0.5), _is(0.5))
_op("clamp_tensor", torch.clamp, _x, lambda: -_unit(), _unit)
_op("clamp_min", torch.clamp_min, _x, _is(0.0))
_op("lerp_tensor", torch.lerp, _x, _x, _x)
_op("lerp_scalar", torch.lerp, _x, _x, _is(0.25))
_op("addcmul", torch.addcmul, _x, _x, _x)
_op("addcdiv", torch.addcdiv, _x, _x, _positive)
_op("where_self", torch.where, _bit, _x, _x)
_op("masked_fill", torch.masked_fill, _x, _bit, _is(-1.0))
_op("masked_select", torch.masked_select, _x, _bit)
_op("isclose", torch.isclose, _x, _x)
_op("polar", torch.polar, _positive, _x)

for _name in ("sum", "mean", "prod", "amax", "max", "min", "any", "all", "argmax", "argmin", "std"):
    _op(_name, getattr(torch, _name), _bit if _name in ("any", "all") else _x)
_op("sum_dim", torch.sum, _x, _is([1]))
_op("mean_dim", torch.mean, _x, _is([0]))
_op("prod_dim", torch.prod, _unit, _is(1))
_op("max_dim", torch.max, _x, _is(1))
_op("min_dim", torch.min, _x, _is(1))
_op("any_dim", torch.any, _bit, _is(1))
_op("all_dim", torch.all, _bit, _is(1))
_op("aminmax", torch.aminmax, _x)
_op("var_mean", torch.var_mean, _x, _is([1]))
_op("vector_norm", torch.linalg.vector_norm, _x)
_op("softmax", torch.softmax, _x, _is(-1))
_op("log_softmax", torch.log_softmax, _half, _is(-1))
_op("cumsum", torch.cumsum, _x, _is(1))
_op("cummax", torch.cummax, _x, _is(1))
_op("cummin", torch.cummin, _x, _is(1))
_op("topk", torch.topk, _x, _is(5))
_op("sort", torch.sort, _x)
_op("quantile", torch.quantile, _x, _is(0.5))
_op("nonzero", torch.nonzero, _bit)

_op("mm", torch.mm, lambda: small(64, 96, dtype=F16), lambda: small(96, 64, dtype=F16))
_op("bmm", torch.bmm, lambda: small(2, 32, 64, dtype=F16), lambda: small(2, 64, 32, dtype=F16))
_op("addmm", torch.addmm, lambda: small(32, 48), lambda: small(32, 64), lambda: small(64, 48))
_op(
    "baddbmm",
    torch.baddbmm,
    lambda: small(2, 32, 32),
    lambda: small(2, 32, 64),
    lambda: small(2, 64, 32),
)
_op("mv", torch.mv, lambda: small(40, 96), lambda: small(96))
_op("addmv", torch.addmv, lambda: small(40), lambda: small(40, 96), lambda: small(96))
_op("dot", torch.dot, lambda: small(500), lambda: small(500))
_op("vdot", torch.vdot, lambda: small(500), lambda: small(500))
_op("addr", torch.addr, lambda: small(24, 40), lambda: small(24), lambda: small(40))
_op("kron", torch.kron, lambda: small(3, 4), lambda: small(5, 6))

_op("cat", torch.cat, lambda: [_x(), _x()], _is(0))
_op("stack", torch.stack, lambda: [_x(), _x()], _is(0))
_op("hstack", torch.hstack, lambda: [_x(), _x()])
_op("vstack", torch.vstack, lambda: [_x(), _x()])
_op("gather", torch.gather, _x, _is(1), lambda: torch.randint(0, 200, (3, 50)))
_op(
    "scatter",
    torch.scatter,
    _x,
    _is(1),
    lambda: torch.randperm(200)[None, :50],
    lambda: some(1, 50),
)
_op("index_select", torch.index_select, _x, _is(1), lambda: torch.tensor([3, 5, 7]))
_op("index_add", torch.index_add, _x, _is(0), lambda: torch.tensor([2, 0]), lambda: some(2, 200))
_op("select_scatter", torch.select_scatter, _x, lambda: some(200), _is(0), _is(1))
_op("slice_scatter", torch.slice_scatter, _x, lambda: some(2, 200), _is(0), _is(1), _is(3))
_op("repeat", torch.Tensor.repeat, _x, _is([2, 1]))
_op("tile", torch.tile, _x, _is([2, 1]))
_op("roll", torch.roll, _x, _is([7]), _is([1]))
_op("diag", torch.diag, lambda: some(30))
_op("diag_embed", torch.diag_embed, lambda: some(3, 10))
_op("repeat_interleave_self_int", torch.repeat_interleave, _x, _is(3), _is(0))
_op("embedding", torch.embedding, lambda: some(10, 64), lambda: torch.tensor([[1, 3], [9, 0]]))
_op("constant_pad_nd", torch.constant_pad_nd, lambda: some(3, 20), _is([2, 3]), _is(1.5))
_op("reflection_pad1d", lambda x, p: fn.pad(x, p, "reflect"), lambda: some(2, 3, 20), _is([2, 3]))
_op(
    "reflection_pad2d",
    lambda x, p: fn.pad(x, p, "reflect"),
    lambda: some(2, 3, 9, 9),
    _is([1, 2, 2, 1]),
)
_op(
    "replication_pad1d", lambda x, p: fn.pad(x, p, "replicate"), lambda: some(2, 3, 20), _is([2, 3])
)
_op("pixel_unshuffle", torch.pixel_unshuffle, lambda: some(1, 2, 8, 8), _is(2))

_op("conv1d", fn.conv1d, lambda: small(1, 16, 20), lambda: small(16, 16, 3))
_op("conv2d", fn.conv2d, lambda: small(1, 16, 6, 6), lambda: small(16, 16, 3, 3))
_op("avg_pool2d", fn.avg_pool2d, lambda: some(1, 3, 12, 12), _is([2, 2]))
_op("upsample_nearest1d", lambda x, n: fn.interpolate(x, n), lambda: some(1, 3, 10), _is([25]))
_op(
    "upsample_nearest2d", lambda x, n: fn.interpolate(x, n), lambda: some(1, 3, 5, 5), _is([12, 11])
)
_op("mse_loss", fn.mse_loss, _x, _x)
_op("soft_margin_loss", fn.soft_margin_loss, _x, lambda: small(3, 200).sign())
_op("margin_ranking_loss", fn.margin_ranking_loss, _x, _x, lambda: small(3, 200).sign())

_op("arange", lambda n: torch.arange(n), _is(300))
_op("linspace", lambda a, b, n: torch.linspace(a, b, n), _is(0.0), _is(1.0), _is(300))
_op("logspace", lambda a, b, n: torch.logspace(a, b, n), _is(0.0), _is(2.0), _is(100))
_op("eye", lambda n: torch.eye(n), _is(20))
_op("full", lambda n, v: torch.full(n, v), _is([3, 100]), _is(2.5))
_op("full_like", torch.full_like, _x, _is(2.5))
_op("ones_like", torch.ones_like, _x)
_op("one_hot", fn.one_hot, lambda: torch.tensor([3, 0, 7]), _is(8))


@call
def unique_consecutive() -> list[Pair]:
    x = torch.randint(0, 3, (100,))
    got, *_ = flag_gems.ops.unique_consecutive(x)
    return [(got, torch.unique_consecutive(x))]


@call
def layer_norm() -> list[Pair]:
    x, w, b = some(4, 300), some(300), some(300)
    y, mean, rstd = flag_gems.ops.layer_norm(x, [300], w, b, 1e-5)
    x8 = x.double()
    want = fn.layer_norm(x8, [300], w.double(), b.double())
    return [
        (y, want),
        (mean.flatten(), x8.mean(1)),
        (rstd.flatten(), (x8.var(1, correction=0) + 1e-5).rsqrt()),
    ]


@call
def group_norm() -> list[Pair]:
    x, w, b = some(2, 6, 40), some(6), some(6)
    y, *_ = flag_gems.ops.group_norm(x, w, b, 2, 6, 40, 3, 1e-5)
    return [(y, fn.group_norm(x.double(), 3, w.double(), b.double()))]


@call
def rms_norm() -> list[Pair]:
    x, w = some(4, 256, dtype=F16), some(256, dtype=F16)
    want = fn.rms_norm(x.double(), [256], w.double(), 1e-5)
    return [(flag_gems.ops.rms_norm(x, [256], w, 1e-5), want)]


@call
def batch_norm() -> list[Pair]:
    x, w, b = some(8, 4, 10), some(4), some(4)
    y, *_ = flag_gems.ops.batch_norm(x, w, b, torch.zeros(4), torch.ones(4), True, 0.1, 1e-5)
    x8 = x.double()
    return [(y, fn.batch_norm(x8, None, None, w.double(), b.double(), True))]


@call
def softmax_backward() -> list[Pair]:
    y, g = some(4, 200).softmax(-1), some(4, 200)
    y8, g8 = y.double(), g.double()
    want = y8 * (g8 - (y8 * g8).sum(-1, keepdim=True))
    return [(flag_gems.ops.softmax_backward(g, y, -1, torch.float32), want)]


@call
def attention() -> list[Pair]:
    q, k, v = (some(1, 2, 64, 64, dtype=F16) for _ in range(3))
    got = flag_gems.ops.scaled_dot_product_attention(q, k, v, is_causal=True)
    want = fn.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True)
    return [(got, want)]


@call
def fused_add_rms_norm() -> list[Pair]:
    x, r, w = some(4, 256), some(4, 256), some(256)
    total = x.double() + r.double()
    got, residual = fused.fused_add_rms_norm(x.clone(), r.clone(), [256], w, 1e-5)
    return [(got, fn.rms_norm(total, [256], w.double(), 1e-5)), (residual, total)]


@call
def skip_layer_norm() -> list[Pair]:
    x, r, w, b = some(4, 256), some(4, 256), some(256), some(256)
    want = fn.layer_norm(x.double() + r.double(), [256], w.double(), b.double())
    return [(fused.skip_layer_norm(x, r, [256], w, b, 1e-5), want)]


@call
def silu_and_mul() -> list[Pair]:
    a, b = some(4, 200), some(4, 200)
    return [(fused.silu_and_mul(a, b), fn.silu(a.double()) * b.double())]


@call
def gelu_and_mul() -> list[Pair]:
    a, b = some(4, 200), some(4, 200)
    return [(fused.gelu_and_mul(a, b), fn.gelu(a.double()) * b.double())]


@call
def instance_norm() -> list[Pair]:
    x = some(2, 3, 50)
    return [(fused.instance_norm(x), fn.instance_norm(x.double()))]


@call
def cross_entropy_loss() -> list[Pair]:
    x, target = some(8, 300), torch.randint(0, 300, (8,))
    return [(fused.cross_entropy_loss(x, target), fn.cross_entropy(x.double(), target))]


@call
def outer() -> list[Pair]:
    a, b = some(100), some(60)
    return [(fused.outer(a, b), torch.outer(a.double(), b.double()))]


@call
def bincount() -> list[Pair]:
    x = torch.randint(0, 30, (500,))
    return [(fused.bincount(x), torch.bincount(x))]
