"""`attention`: scaled dot-product attention with gradients, for training."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from tcir.arrays.attention import compile_attention
from tcir.arrays.attention_backward import compile_attention_backward
from tcir.errors import InputError
from tcir.interp.types import DTYPES
from tcir.torch.launching import KernelLauncher
from tcir.torch.tensors import target_of
from tcir.torch.varlen import KINDS


class _Operands(NamedTuple):
    """Shapes of the tensors, and what kernels depend on besides them."""

    q: tuple[int, ...]
    k: tuple[int, ...]
    v: tuple[int, ...]
    kind: torch.dtype
    is_causal: bool
    scale: float | None


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> torch.Tensor:
    """Computes ``scaled_dot_product_attention`` by kernels, on the simulated machine or on a GPU,
    and its gradients in a backward pass; compiles once for each set of shapes.

    query:     [B, H, M, D] of float16 or bfloat16; key, value: [B, G, N, D] and [B, G, N, E] of the
               same type. H is a multiple of G: query heads share keys and values as with
               ``enable_gqa``. D and E are multiples of 16, up to 128
    is_causal: query i attends to keys 0 to i; M and N must be equal
    scale:     1 / sqrt(D) by default

    Gradients have the same bits in every run. Raises InputError for other shapes or types.
    """
    out, _ = torch.ops.tcir.attention(query, key, value, is_causal, scale)
    found: torch.Tensor = out
    return found


@torch.library.custom_op("tcir::attention", mutates_args=(), device_types=("cpu", "cuda"))
def _forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    is_causal: bool = False,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    shapes = _shapes(query, key, value, is_causal, scale)
    run = _launchers(shapes, target_of([query]))[0]
    out, lse = run([each.contiguous() for each in (query, key, value)])
    return out, lse


@_forward.register_fake
def _(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: object, **__: object
) -> tuple[torch.Tensor, torch.Tensor]:
    out = query.new_empty((*query.shape[:-1], value.shape[-1]))
    return out, query.new_empty(query.shape[:-1], dtype=torch.float32)


@torch.library.custom_op("tcir::attention_backward", mutates_args=(), device_types=("cpu", "cuda"))
def _backward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    dout: torch.Tensor,
    lse: torch.Tensor,
    is_causal: bool = False,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    shapes = _shapes(query, key, value, is_causal, scale)
    run = _launchers(shapes, target_of([query]))[1]
    dq, dk, dv = run([each.contiguous() for each in (query, key, value, out, dout, lse)])
    return dq, dk, dv


@_backward.register_fake
def _(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: object, **__: object
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    dq, dk, dv = (each.new_empty(each.shape) for each in (query, key, value))
    return dq, dk, dv


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    *tensors, ctx.is_causal, ctx.scale = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.mark_non_differentiable(output[1])


def _gradients(ctx: Any, dout: torch.Tensor, _: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    query, key, value, out, lse = ctx.saved_tensors
    given = (query, key, value, out, dout, lse, ctx.is_causal, ctx.scale)
    return (*torch.ops.tcir.attention_backward(*given), None, None)


_forward.register_autograd(_gradients, setup_context=_keep)


def _shapes(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    is_causal: bool,
    scale: float | None,
) -> _Operands:
    """What the kernels depend on; InputError for types and masks that they do not have."""
    kinds = {each.dtype for each in (query, key, value)}
    if query.dtype not in KINDS or len(kinds) > 1:
        got = ", ".join(str(each.dtype)[6:] for each in (query, key, value))
        raise InputError(
            "tcir.torch.attention: expected query, key and value of float16, or all of bfloat16, "
            f"the types that the tensor core multiplies, got {got}"
        )
    if is_causal and query.shape[2] != key.shape[2]:
        raise InputError(
            "tcir.torch.attention: expected as many rows as keys with is_causal, got "
            f"{query.shape[2]} and {key.shape[2]}; use scaled_dot_product_attention"
        )
    q, k, v = (tuple(each.shape) for each in (query, key, value))
    return _Operands(q, k, v, query.dtype, is_causal, scale)


@lru_cache(maxsize=64)
def _launchers(shapes: _Operands, target: str) -> tuple[KernelLauncher, KernelLauncher]:
    """The forward and the backward pass, compiled once for arguments of these shapes."""
    kind = DTYPES[KINDS[shapes.kind]]
    q, k, v = (np.zeros(each, kind) for each in shapes[:3])
    out, lse = np.zeros((*q.shape[:3], v.shape[3]), kind), np.zeros(q.shape[:3], np.float32)
    causal, scale = shapes.is_causal, shapes.scale
    return (
        KernelLauncher(
            compile_attention(q, k, v, causal=causal, scale=scale, lse=True, target=target)
        ),
        KernelLauncher(
            compile_attention_backward(
                q, k, v, out, out, lse, causal=causal, scale=scale, target=target
            )
        ),
    )
