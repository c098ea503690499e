"""Linear layers of permuted rows, against f64: no launch copies rows into another order."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from itertools import pairwise

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch import nn

import tcir.torch
from tcir.torch import rows


class Attention(nn.Module):
    """A layer of ViT without its MLP: batches first outside, rows first inside."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(64), nn.MultiheadAttention(64, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        return x + self.attention(y, y, y, need_weights=False)[0]


class Permuted(nn.Module):
    """A linear layer of what `moved` makes of its input."""

    def __init__(self, moved: Callable[[torch.Tensor], torch.Tensor], width: int) -> None:
        super().__init__()
        self.moved, self.linear = moved, nn.Linear(width, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.moved(x))


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], bool]] = {
    "attention": (Attention, (2, 40, 64), True),
    "rows and batches": (lambda: Permuted(lambda x: x.transpose(0, 1), 32), (3, 5, 32), True),
    "three dimensions": (
        lambda: Permuted(lambda x: x.permute(2, 0, 1, 3), 32), (3, 5, 2, 32), True,
    ),
    "heads of rows": (
        lambda: Permuted(lambda x: x.permute(2, 0, 1, 3).reshape(15, 32), 32), (3, 2, 5, 16), True,
    ),
    "rows and elements": (lambda: Permuted(lambda x: x.transpose(1, 2), 16), (3, 16, 8), False),
    "heads before rows": (
        lambda: Permuted(lambda x: x.transpose(1, 2).reshape(15, 32), 32), (3, 2, 5, 16), False,
    ),
}  # fmt: skip


def error_of(name: str) -> tuple[tcir.torch.Compiled, float, float]:
    """The compiled module, its error against f64 and eager PyTorch's."""
    torch.manual_seed(0)
    make, shape, _ = CASES[name]
    model, x = make().half().eval().requires_grad_(False), torch.randn(shape).half()
    ours = tcir.torch.compile(model, (x,), target="sm_90a")
    mine, own = ours(x).double(), model(x).double()
    exact = model.double()(x.double())
    assert mine.shape == exact.shape
    return ours, *(float((each - exact).norm() / exact.norm()) for each in (mine, own))


@pytest.mark.parametrize("name", CASES)
def test_permuted_rows(name: str) -> None:
    ours, error, own = error_of(name)
    moved = any(pair == ("linear", "permute") for part in ours.table for pair in pairwise(part.ops))
    assert moved == CASES[name][2], str(ours.table)
    assert error <= 1.5 * own + 1e-4, (error, own)


def test_attention_of_transposed_rows_is_four_launches() -> None:
    ours, _, _ = error_of("attention")
    (kernel,) = ours.kernels
    assert len(kernel.launches.launches) == 4, str(kernel.launch_table)


def test_rows_that_stay_permuted_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = rows._call

    def wrong(like: torch.fx.Node, target: object, *args: object, **options: object) -> object:
        if target is torch.ops.aten.permute.default and args[0].target is aten_linear:  # type: ignore[attr-defined]
            target, args = torch.ops.aten.reshape.default, (args[0], list(like.meta["val"].shape))
        return right(like, target, *args, **options)  # type: ignore[arg-type]

    aten_linear = torch.ops.aten.linear.default
    monkeypatch.setattr(rows, "_call", wrong)
    _, error, own = error_of("rows and batches")
    assert error > 10 * own
