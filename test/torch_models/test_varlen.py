"""Attention of packed sequences beside PyTorch's SDPA of each sequence in f64: the op, and
``varlen_attn`` and ``_flash_attention_forward`` in exported modules."""

from __future__ import annotations

import importlib.util
from itertools import pairwise
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)
if importlib.util.find_spec("torch.nn.attention.varlen") is None:
    pytest.skip("this torch has no varlen_attn", allow_module_level=True)

import torch
from tiers import slow
from torch import nn
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention

import tcir
import tcir.torch

ROWS, KEYS = (40, 0, 1, 59), (60, 10, 1, 49)


def ends(lengths: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)


def drawn(kind: torch.dtype = torch.float16, heads: int = 4, groups: int = 2) -> list[torch.Tensor]:
    torch.manual_seed(0)
    sizes = (sum(ROWS), heads), (sum(KEYS), groups), (sum(KEYS), groups)
    return [torch.randn((*each, 32)).to(kind) for each in sizes]


def expected(
    tensors: list[torch.Tensor], rows: torch.Tensor, keys: torch.Tensor, window: tuple[int, int]
) -> torch.Tensor:
    """The result in f64; the last row of a sequence has the number of its last key."""
    heads, parts = tensors[0].shape[1], []
    for (row, row_end), (key, key_end) in zip(pairwise(rows.tolist()), pairwise(keys.tolist())):
        q, k, v = (
            each[at].double().repeat_interleave(heads // each.shape[1], 1).transpose(0, 1)
            for each, at in zip(tensors, (slice(row, row_end), *[slice(key, key_end)] * 2))
        )
        m, n = q.shape[1], k.shape[1]
        distance = torch.arange(n) - torch.arange(m)[:, None] - (n - m)
        left, right = window
        kept = (distance >= -left) | (left < 0)
        kept = kept & ((distance <= right) | (right < 0))
        made = scaled_dot_product_attention(q, k, v, attn_mask=kept).transpose(0, 1)
        parts.append(torch.nan_to_num(made))  # rows without keys
    return torch.cat(parts)


def off(got: torch.Tensor, right: torch.Tensor) -> float:
    assert got.shape == right.shape
    return float((got.double() - right).abs().max())


@pytest.mark.parametrize("kind", [torch.float16, slow(torch.bfloat16)], ids=str)
@pytest.mark.parametrize("window", [(-1, -1), slow((-1, 0)), slow((20, 0))], ids=str)
def test_op(window: tuple[int, int], kind: torch.dtype) -> None:
    q, k, v = drawn(kind)
    rows, keys = ends(ROWS), ends(KEYS)
    got, lse = torch.ops.tcir.varlen_attention(q, k, v, rows, keys, None, *window)
    assert got.dtype == kind and lse.shape == (4, sum(ROWS))
    assert off(got, expected([q, k, v], rows, keys, window)) < (2e-2 if kind.itemsize == 2 else 0)
    if window == (-1, -1):
        scores = q[:40].double()[:, 0] @ k[:60].double()[:, 0].T / 32**0.5
        assert off(lse[0, :40], scores.logsumexp(1)) < 1e-4


class Attended(nn.Module):
    """Projections around packed attention of as many keys as rows."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options
        self.inner = nn.Linear(64, 192, dtype=torch.float16)

    def forward(self, x: torch.Tensor, cu_seq: torch.Tensor, *more: torch.Tensor) -> torch.Tensor:
        q, k, v = self.inner(x).view(len(x), 3, 2, 32).unbind(1)
        given = dict(zip(("seqused_k",), more))
        result = varlen_attn(q, k, v, cu_seq, cu_seq, 59, 59, **given, **self.options)
        return result.reshape(len(x), 64)


class Flash(nn.Module):
    """ATen's op, with its mask as a flag."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: torch.Tensor,
                keys: torch.Tensor) -> Any:  # fmt: skip
        out = torch.ops.aten._flash_attention_forward(
            q, k, v, rows, keys, 59, 60, 0.0, True, False, scale=0.25
        )
        return out[0], out[1]


def test_varlen_attn_is_one_launch() -> None:
    torch.manual_seed(1)
    module, x, cu_seq = (
        Attended(window_size=(-1, 0)).eval(),
        torch.randn(100, 64).half(),
        ends(ROWS),
    )
    compiled = tcir.torch.compile(module, (x, cu_seq), target="sm_90a")
    assert "varlen_attention: attention, 1 launch" in str(compiled.table)
    with torch.no_grad():
        tensors = list(module.inner(x).view(100, 3, 2, 32).unbind(1))
    for lengths in (ROWS, (1, 99, 0, 0)):
        right = expected(tensors, ends(lengths), ends(lengths), (-1, 0))
        assert off(compiled(x, ends(lengths)).view(100, 2, 32), right) < 5e-3
    with pytest.raises(tcir.InputError, match="cu_seq_q: expected ends of tokens from 0 to 100"):
        compiled(x, torch.tensor([0, 50, 40, 100, 100], dtype=torch.int32))


def test_flash_attention_forward() -> None:
    q, k, v = drawn(heads=2)
    compiled = tcir.torch.compile(
        Flash().eval(), (q, k, v, ends(ROWS), ends(KEYS)), target="sm_90a"
    )
    got, _ = compiled(q, k, v, ends(ROWS), ends(KEYS))
    right = expected([q * 0.25 * 32**0.5, k, v], ends(ROWS), ends(KEYS), (-1, 0))
    assert off(got, right) < 5e-3


def test_what_stays_with_pytorch() -> None:
    x, used = torch.zeros(100, 64).half(), torch.tensor([3, 0, 1, 4], dtype=torch.int32)
    compiled = tcir.torch.compile(Attended().eval(), (x, ends(ROWS), used), target="sm_90a")
    assert "_varlen_attn: left to PyTorch: expected no seqused_k" in str(compiled.table)


def test_wrong_types_are_named() -> None:
    q, k, v = drawn()
    with pytest.raises(tcir.InputError, match="expected cu_seq_q and cu_seq_k of int32"):
        torch.ops.tcir.varlen_attention(q, k, v, ends(ROWS).long(), ends(KEYS))
    with pytest.raises(tcir.InputError, match="all of bfloat16"):
        torch.ops.tcir.varlen_attention(q.float(), k, v, ends(ROWS), ends(KEYS))
