"""`torch.ops.tcir.varlen_attention`: attention of packed sequences. In exported graphs it
replaces ``torch.nn.attention.varlen.varlen_attn``."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch.fx.node import map_arg

from tcir.arrays.varlen_attention import VarlenKernel, compile_varlen_attention
from tcir.errors import InputError
from tcir.interp.types import DTYPES
from tcir.kernel import Kernel
from tcir.torch.aten import aten
from tcir.torch.exported import DECOMPOSITIONS
from tcir.torch.launching import KernelLauncher
from tcir.torch.lowering import OWN
from tcir.torch.tensors import target_of

NAME = "attention"
"""Pipeline of the kernels."""
KINDS = {torch.float16: "f16", torch.bfloat16: "bf16"}
MODULE = "torch.nn.attention.varlen"
"""PyTorch's module with ``varlen_attn``, since 2.10."""
UNSUPPORTED = ("seqused_k", "block_table", "alibi_slopes")
"""Operands of PyTorch's ops that the kernel does not have."""


Given: TypeAlias = dict[str, Any]
"""Arguments of a call by name."""


class _Shapes(NamedTuple):
    """Shapes of the tensors and what is computed of them."""

    q: tuple[int, ...]
    k: tuple[int, ...]
    v: tuple[int, ...]
    kind: torch.dtype
    sequences: int
    apart: bool
    scale: float | None
    window: tuple[int | None, int | None]


@torch.library.custom_op("tcir::varlen_attention", mutates_args=(), device_types=("cpu", "cuda"))
def varlen_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seq_q: torch.Tensor,
    cu_seq_k: torch.Tensor | None = None,
    scale: float | None = None,
    window_left: int = -1,
    window_right: int = -1,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Computes the attention of packed sequences, and the log-sum-exp of each row, [H, T], in f32,
    simulated or on a GPU; compiles once for each set of shapes.

    The tensors are those of `tcir.compile_varlen_attention`; windows as in ``varlen_attn``: -1 is
    no limit, (-1, 0) is causal. InputError for shapes or types that the kernel does not support,
    and, on the CPU, for invalid cumulative lengths.
    """
    shapes = _shapes(query, key, value, cu_seq_q, cu_seq_k, scale, window_left, window_right)
    given = [query, key, value, cu_seq_q] + ([cu_seq_k] if shapes.apart else [])
    out, lse = _launcher(shapes, target_of([query]))(
        [x.contiguous() for x in given if x is not None]
    )
    return out, lse


@varlen_attention.register_fake
def _(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: object, **__: object
) -> tuple[torch.Tensor, torch.Tensor]:
    out = query.new_empty((*query.shape[:-1], value.shape[-1]))
    return out, query.new_empty((query.shape[1], query.shape[0]), dtype=torch.float32)


def _shapes(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seq_q: torch.Tensor,
    cu_seq_k: torch.Tensor | None = None,
    scale: float | None = None,
    window_left: int = -1,
    window_right: int = -1,
) -> _Shapes:
    """What the kernel depends on; InputError if the types do not fit."""
    tensors = (query, key, value)
    if query.dtype not in KINDS or {each.dtype for each in tensors} != {query.dtype}:
        got = ", ".join(str(each.dtype)[6:] for each in tensors)
        raise InputError(
            f"tcir.varlen_attention: expected query, key and value of float16, or all of bfloat16, "
            f"the types that the tensor core multiplies, got {got}"
        )
    ends = [each for each in (cu_seq_q, cu_seq_k) if each is not None]
    if any(each.dtype != torch.int32 or each.shape != cu_seq_q.shape for each in ends):
        raise InputError(
            "tcir.varlen_attention: expected cu_seq_q and cu_seq_k of int32, [S + 1] each, got "
            f"{', '.join(f'{list(each.shape)} of {str(each.dtype)[6:]}' for each in ends)}"
        )
    q, k, v = (tuple(each.shape) for each in tensors)
    window = tuple(None if each < 0 else each for each in (window_left, window_right))
    return _Shapes(
        q, k, v, query.dtype, len(cu_seq_q) - 1, cu_seq_k is not None, scale, (window[0], window[1])
    )


@lru_cache(maxsize=64)
def _compiled(shapes: _Shapes, target: str) -> VarlenKernel:
    """The kernel, compiled once for arguments of these shapes and types."""
    q, k, v = (np.zeros(each, DTYPES[KINDS[shapes.kind]]) for each in shapes[:3])
    ends = [np.full(shapes.sequences + 1, len(x), np.int32) for x in (q, k)[: 1 + shapes.apart]]
    for each in ends:
        each[0] = 0
    return compile_varlen_attention(
        q,
        k,
        v,
        *ends,
        scale=shapes.scale,
        window=shapes.window,
        lse=True,
        target=target,
        pipeline=NAME,
    )


@lru_cache(maxsize=64)
def _launcher(shapes: _Shapes, target: str) -> KernelLauncher:
    return KernelLauncher(_compiled(shapes, target))


def _lowered(node: torch.fx.Node, target: str) -> tuple[Kernel, str, str]:
    """Kernel of a call in a graph, its program and the text of its pipeline."""
    args, kwargs = map_arg((node.args, node.kwargs), lambda each: each.meta["val"])
    kernel = _compiled(_shapes(*args, **kwargs), target)
    return kernel, kernel.mlir, NAME


OWN[torch.ops.tcir.varlen_attention.default] = _lowered


def _given(op: torch._ops.OpOverload, args: Sequence[object], named: Given) -> Given:
    """Arguments of a call of PyTorch's op by name, with defaults."""
    schema = op._schema.arguments
    found = {each.name: each.default_value for each in schema}
    return found | dict(zip(found, args)) | named


def _problem(given: Given) -> str:
    """Why a call is not one of ours; "" if it is."""
    if given.get("cum_seq_q", given.get("cu_seq_q")) is None:
        return "expected cumulative lengths, got none; use scaled_dot_product_attention for a batch"
    for name in UNSUPPORTED:
        if given.get(name) is not None:
            return f"expected no {name}: the kernel reads the keys up to the end of each sequence"
    if given.get("dropout_p"):
        return f"expected no dropout, got {given['dropout_p']}; call module.eval()"
    return ""


def _decomposed(op: torch._ops.OpOverload, results: int) -> Callable[..., object]:
    """The decomposition of PyTorch's op into ours, and empty tensors for its other results."""

    def decomposition(*args: object, **named: object) -> object:
        given = _given(op, args, named)
        if _problem(given):
            return NotImplemented
        left, right = given.get("window_size") or (
            given.get("window_size_left"), given.get("window_size_right")
        )  # fmt: skip
        if given["is_causal"]:
            right = 0
        out, lse = torch.ops.tcir.varlen_attention(
            given["query"], given["key"], given["value"],
            *(given.get(f"cum_{n}", given.get(f"cu_{n}")) for n in ("seq_q", "seq_k")),
            given["scale"], -1 if left is None else left, -1 if right is None else right,
        )  # fmt: skip
        nothing = torch.empty((0,), dtype=torch.uint64, device=out.device)
        return out, lse, *(nothing for _ in range(results - 2))

    return decomposition


def _refused(op: torch._ops.OpOverload) -> Callable[[torch.fx.Node, str], tuple[Kernel, str, str]]:
    def refused(node: torch.fx.Node, _: str) -> tuple[Kernel, str, str]:
        raise InputError(_problem(_given(op, node.args, node.kwargs)))

    return refused


def _register(op: torch._ops.OpOverload) -> None:
    DECOMPOSITIONS[op] = _decomposed(op, len(op._schema.returns))
    OWN[op] = _refused(op)


_register(aten._flash_attention_forward.default)
if importlib.util.find_spec(MODULE):
    importlib.import_module(MODULE)
    _register(torch.ops.torch_attn._varlen_attn.default)
