"""Places of extremes through the PyTorch door: its choice among equals and NaN, in one launch."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from tiers import slow_but
from torch import nn
from torch.utils._pytree import tree_leaves

import tcir.torch
from tcir.passes.module.rewrites import long_pairs, long_rows
from tcir.torch import extremes
from tcir.torch.launching import KernelLauncher

KINDS = [torch.float16, torch.bfloat16, torch.float32, torch.int32]
CALLS: dict[str, Callable[[torch.Tensor], object]] = {
    "argmax": lambda x: x.argmax(-1),
    "argmin": lambda x: x.argmin(-1),
    "argmax of columns": lambda x: x.argmax(0, keepdim=True),
    "argmin of all": lambda x: x.argmin(),
    "max": lambda x: x.max(-1),
    "min of columns": lambda x: x.min(0, keepdim=True),
}


class Call(nn.Module):
    """One of `CALLS` as a module."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, x: torch.Tensor) -> object:
        """Calls it."""
        return CALLS[self.name](x)


def rows(kind: torch.dtype, columns: int = 264) -> torch.Tensor:
    """Few values, so that the extremes are there more than once; with floats also two NaN, a NaN at
    first, one kind of infinity, zeros of both signs."""
    torch.manual_seed(0)
    x = torch.randint(-9, 9, (11, columns)).to(kind)
    if kind.is_floating_point:
        x[1, columns // 3] = x[1, -1] = x[2, 0] = torch.nan
        x[3], x[4], x[5] = -torch.inf, torch.inf, 0.0
        x[5, ::3] = -0.0
        x[6, 7:] = torch.nan
    return x


def wrong(name: str, x: torch.Tensor) -> tuple[int, int]:
    """Number of elements that differ from PyTorch's, and launches."""
    ours = tcir.torch.compile(Call(name).eval(), (x,), target="sm_90a")
    launches = sum(len(each.launches.launches) for each in ours.kernels)
    return different(ours(x), CALLS[name](x)), launches


def different(ours: Any, theirs: Any) -> int:
    """Number of elements that differ; NaN is equal to NaN."""
    count = 0
    for got, want in zip(tree_leaves(ours), tree_leaves(theirs), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        count += int(((got != want) & ~((got != got) & (want != want))).sum())
    return count


@pytest.mark.parametrize("kind", slow_but([torch.float16], KINDS), ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_pytorchs_place(name: str, kind: torch.dtype) -> None:
    count, launches = wrong(name, rows(kind))
    assert count == 0
    assert launches <= (1 if name.startswith("arg") else 2)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 600 elements have parts."""
    monkeypatch.setattr(long_rows, "LONG", 100)
    monkeypatch.setattr(long_rows, "GROUPS", 24)


@cache
def program(name: str, kind: torch.dtype, rows: int) -> str:
    """A call on rows of 600 elements, in linalg."""
    x = torch.zeros(rows, 600, dtype=kind)
    (part,) = tcir.torch.compile(Call(name).eval(), (x,), target="sm_90a").table
    return part.mlir


def in_parts(name: str, kind: torch.dtype) -> int:
    """Number of elements that differ from PyTorch's, if two launches reduce parts of the rows."""
    x = rows(kind, 600)[:7]
    kernel = tcir.compile(program(name, kind, 7), "layers", target="sm_90a", cache=False)
    assert len(kernel.launches.launches) == 2
    wanted = CALLS[name](x)
    found = KernelLauncher(kernel)((x,))
    return different(
        [each.view(like.shape) for each, like in zip(found, tree_leaves(wanted))], wanted
    )


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("kind", slow_but([torch.float16], KINDS), ids=str)
@pytest.mark.parametrize("name", ["argmax", "argmin", "argmin of all", "max"])
def test_parts_of_rows(name: str, kind: torch.dtype) -> None:
    """Equals and NaN in several parts; values and places of a part are one launch."""
    assert in_parts(name, kind) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("parts")
def test_parts_at_every_level() -> None:
    report = tcir.validate(program("max", torch.float16, 2), "layers", target="sm_90a")
    assert report.ok, str(report)


BREAKS: dict[str, tuple[str, Any]] = {
    "places in the part": ("loop_index", lambda right, loop: right(1)),
    "places of all parts": (
        "_holds",
        lambda right, nan, number, extreme: right(nan, number, number),
    ),
    "NaN that is no extreme": ("_holds", lambda right, nan, *given: right(False, *given)),
}
"""A function of the rewrite, and what is wrong of its result."""


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("broken", BREAKS)
def test_broken_parts_are_seen(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, wrong = BREAKS[broken]
    monkeypatch.setattr(long_pairs, name, partial(wrong, getattr(long_pairs, name)))
    assert in_parts("max", torch.float16)


@pytest.mark.slow
def test_long_rows_are_read_in_parts_or_rounds() -> None:
    assert wrong("argmax", rows(torch.float16, 20000)[:3]) == (0, 2)
    assert wrong("argmax", rows(torch.float32, 16411)[1:3]) == (0, 1)


def test_a_row_is_loaded_16_bytes_at_once() -> None:
    x = rows(torch.float16)
    (kernel,) = tcir.torch.compile(Call("argmax").eval(), (x,), target="sm_90a").kernels
    assert "ld.global.v4.b32" in kernel.ptx and "ld.global.b16" not in kernel.ptx


def test_mistakes_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of equals instead of the first, and a NaN that is none."""
    right = extremes._first
    x = rows(torch.float16)
    monkeypatch.setattr(
        extremes, "_first", lambda x, e, dim: x.shape[dim] - 1 - right(x.flip(dim), e, dim)
    )
    assert wrong("argmax", x)[0] > 3
    monkeypatch.setattr(
        extremes, "_first", lambda x, e, dim: right(torch.where(x != x, 0, x), e, dim)
    )
    assert wrong("argmax", x)[0] == 3
