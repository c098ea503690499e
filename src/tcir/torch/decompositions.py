"""Decompositions of ops for which torch-mlir's lowering is less exact than eager PyTorch; they are
applied before torch-mlir's importer.

Eager PyTorch sums f16 and bf16 in f32 and rounds the result once (its `acc_type` on the CPU and
CUDA). torch-mlir lowers most reductions in the type of the tensor, one element after the other.
Therefore each op of `REDUCTIONS` is computed in f32 and rounded at the end, and so are elementwise
ops that torch-mlir expands into several ops.
"""

from __future__ import annotations

import math

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map

from tcir.torch.aten import Decomposition, Decompositions, aten, dims_of, wide
from tcir.torch.choices import CHOICES
from tcir.torch.convolutions import CONVOLUTIONS
from tcir.torch.extremes import EXTREMES
from tcir.torch.fake_quantize import FAKE_QUANTIZE
from tcir.torch.functions import FUNCTIONS
from tcir.torch.losses import LOSSES
from tcir.torch.places import PLACES
from tcir.torch.pools import POOLS
from tcir.torch.powers import POWERS
from tcir.torch.products import PRODUCTS
from tcir.torch.recurrent import RECURRENT
from tcir.torch.remainders import REMAINDERS
from tcir.torch.scaled import SCALED
from tcir.torch.scans import SCANS
from tcir.torch.scatters import SCATTERS
from tcir.torch.sums import GROUPS, SUMS

NARROW = (torch.float16, torch.bfloat16)
"""Element types whose sums eager PyTorch accumulates in f32."""
REDUCTIONS = (
    # sums and means
    "sum", "mean", "prod", "cumsum", "cumprod", "logcumsumexp", "trace",
    # norms and moments
    "norm", "linalg_vector_norm", "linalg_matrix_norm", "var", "std", "var_mean",
    "cosine_similarity", "pairwise_distance", "cdist",
    # pools
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
    "adaptive_avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d",
    # normalisation
    "rms_norm", "layer_norm", "native_layer_norm", "group_norm", "native_group_norm",
    "softmax", "_softmax", "log_softmax", "_log_softmax",
    # losses
    "mse_loss", "l1_loss", "nll_loss", "nll_loss_forward",
    "nll_loss2d_forward", "cross_entropy_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "kl_div",
)  # fmt: skip
"""ATen ops, all overloads, that sum or multiply along a dimension."""
ELEMENTWISE = (
    "sigmoid", "silu", "mish", "softplus", "log_sigmoid", "log_sigmoid_forward", "elu",
    "selu", "celu", "glu", "tanhshrink", "logit", "sinc", "addcmul", "addcdiv", "lerp",
    "xlogy",
)  # fmt: skip
"""ATen ops that torch-mlir expands into several ops, each of which would round its result."""


def either(first: Decomposition, second: Decomposition) -> Decomposition:
    """Returns a decomposition that tries `first`, and tries `second` if `first` returns
    NotImplemented.
    """

    def decomposition(*args: object, **kwargs: object) -> object:
        result = first(*args, **kwargs)
        return second(*args, **kwargs) if result is NotImplemented else result

    return decomposition


def _is_narrow(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in NARROW


def _widened(op: torch._ops.OpOverload) -> Decomposition:
    """Decomposition that applies `op` to f32 copies of its f16 and bf16 tensors and rounds the
    results to the types that `op` returns without it."""

    def decomposition(*args: object, **kwargs: object) -> object:
        narrow = [
            each for each in torch.utils._pytree.tree_leaves((args, kwargs)) if _is_narrow(each)
        ]
        if not narrow:
            return NotImplemented
        asked = [each for each in (*args, *kwargs.values()) if isinstance(each, torch.dtype)]
        dtype = (*asked, narrow[0].dtype)[0]
        given = tree_map(_in_f32, (args, kwargs))
        return tree_map(lambda each: _cast(each, dtype), op(*given[0], **given[1]))

    return decomposition


def _in_f32(value: object) -> object:
    if isinstance(value, torch.dtype) and value in NARROW:
        return torch.float32
    if isinstance(value, torch.Tensor) and value.dtype in NARROW:
        return value.to(torch.float32)
    return value


def _cast(value: object, dtype: torch.dtype) -> object:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.to(dtype)
    return value


def _reciprocal(x: torch.Tensor) -> torch.Tensor:
    """1 / x, which for 0 is infinite as in PyTorch; torch-mlir's version asserts that no element
    is 0.

    Batch norms contain it where PyTorch (2.13) decomposes them into sqrt and reciprocal.
    """
    return aten.div.Tensor(torch.ones((), dtype=x.dtype), x)


def _batch_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    var: torch.Tensor,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normalises by running statistics: by a factor and a summand of each channel, where
    torch-mlir's version has four numbers and a root."""
    shape = [1, x.shape[1], *[1] * (x.dim() - 2)]
    factor = torch.rsqrt(wide(var) + eps)
    if weight is not None:
        factor = factor * wide(weight)
    summand = -wide(mean) * factor
    if bias is not None:
        summand = summand + wide(bias)
    result = wide(x) * factor.view(shape) + summand.view(shape)
    return result.to(x.dtype), x.new_zeros(0), x.new_zeros(0)


def _instance_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor | None,
    var: torch.Tensor | None,
    use_input_stats: bool,
    momentum: float,
    *rest: float,
) -> torch.Tensor:
    """Normalises by the statistics of each image and channel, or by running statistics.
    torch-mlir's version aborts."""
    shape = [1, x.shape[1], *[1] * (x.dim() - 2)]
    a = wide(x)
    if use_input_stats:
        dims = list(range(2, x.dim()))
        mean, var = a.mean(dims, keepdim=True), a.var(dims, correction=0, keepdim=True)
    else:
        assert mean is not None and var is not None
        mean, var = mean.view(shape), var.view(shape)
    result = (a - mean) * torch.rsqrt(var + rest[0])  # eps; then cudnn_enabled
    if weight is not None:
        result = result * weight.view(shape)
    if bias is not None:
        result = result + bias.view(shape)
    return result.to(x.dtype)


def _logsumexp(x: torch.Tensor, dim: list[int], keepdim: bool = False) -> torch.Tensor:
    """log(sum(exp(x))), computed after subtracting the maximum where it is finite; torch-mlir
    does not lower the op to linalg."""
    a = wide(x)
    top = a.amax(dim, keepdim=True)
    top = torch.where(top.abs() == torch.inf, torch.zeros_like(top), top)
    result = (a - top).exp().sum(dim, keepdim=True).log() + top
    return (result if keepdim else result.squeeze(dim)).to(x.dtype)


def _gelu(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    """GELU as eager PyTorch computes it. torch-mlir's version by tanh has an error of 2^-16 of the
    largest result; its version by erf divides by the root of 2, which takes longer than erf."""
    a = wide(x)
    if approximate == "tanh":
        function = torch.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a * a * a))
    else:
        function = torch.erf(math.sqrt(0.5) * a)
    return (0.5 * a * (1 + function)).to(x.dtype)


def _abs(x: torch.Tensor) -> object:
    """Absolute value. Integers use a select, since kernels have no instruction for it."""
    return NotImplemented if x.is_floating_point() else torch.where(x < 0, -x, x)


def _empty_like(x: torch.Tensor, *, dtype: torch.dtype | None = None, **_: object) -> torch.Tensor:
    """Zeros: an unwritten element may have any value, and no kernel reads it."""
    return torch.zeros(x.shape, dtype=dtype or x.dtype)


def _view(x: torch.Tensor, size: list[int]) -> object:
    """A view, taken of a contiguous copy if a decomposition gave the tensor strides that
    PyTorch's kernel would not, and that permit no such view."""
    try:
        with _disable_current_modes():  # it would be traced, too
            torch.empty_strided(x.shape, x.stride(), device="meta").view(size)
    except (RuntimeError, ValueError):
        return aten.view.default(x.contiguous(), size)
    return NotImplemented


def _nansum(
    x: torch.Tensor,
    dim: list[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """The sum of the elements that are not NaN; torch-mlir does not lower the op to linalg."""
    numbers = torch.where(x != x, torch.zeros((), dtype=x.dtype, device=x.device), x)
    return numbers.sum(dim, keepdim, dtype=dtype)


def _std_mean(
    x: torch.Tensor,
    dim: list[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Standard deviation and mean; torch-mlir does not lower the op to linalg."""
    dims = dims_of(x, dim)
    return x.std(dims, correction=correction, keepdim=keepdim), x.mean(dims, keepdim)


def _norm(
    x: torch.Tensor,
    ord: float | None = None,
    dim: list[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> object:
    """The 2-norm for the default order (None); torch-mlir does not lower the op to linalg."""
    if ord is not None:
        return NotImplemented
    return aten.linalg_vector_norm.default(x, 2, dim, keepdim, dtype=dtype)


def _xor(x: torch.Tensor, other: int) -> torch.Tensor:
    return x ^ torch.full((), other, dtype=x.dtype, device=x.device)


OF_FROZEN: Decompositions = {aten._native_batch_norm_legit_no_training.default: _batch_norm}
"""Decompositions that pay if what is made of weights alone is computed once."""


def decompositions() -> Decompositions:
    """Decompositions of this file, by overload; ops that this PyTorch does not have are left
    out."""
    table: Decompositions = {
        aten.reciprocal.default: _reciprocal,
        aten.instance_norm.default: _instance_norm,
        aten.logsumexp.default: _logsumexp,
        aten.view.default: _view,
        aten.linalg_norm.default: _norm,
        aten.bitwise_xor.Scalar: _xor,
        aten.abs.default: _abs,
        aten.empty_like.default: _empty_like,
    }
    for name in (*REDUCTIONS, *ELEMENTWISE):
        packet = getattr(aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            if not overload.endswith("out"):
                op = getattr(packet, overload)
                table[op] = _widened(op)
    table[aten.gelu.default] = _gelu
    table[aten.nansum.default] = _nansum
    table[aten.std_mean.correction] = _std_mean
    for op, other in SUMS.items():
        table[op] = either(table[op], other)
    for op, other in {**LOSSES, **POOLS, **GROUPS}.items():
        table[op] = either(other, table.get(op, other))
    for each in (
        CHOICES, PLACES, SCATTERS, CONVOLUTIONS, FUNCTIONS, POWERS, REMAINDERS, SCANS, RECURRENT,
        SCALED, PRODUCTS, FAKE_QUANTIZE, EXTREMES,
    ):  # fmt: skip
        table |= each
    return table
