"""A matrix for each group of rows, beside products of the groups in f64: the op, PyTorch's and
transformers' in exported modules, and the counts that determine the groups."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence

import numpy as np
import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from tiers import slow
from torch import nn

import tcir
import tcir.torch
from tcir.torch.scatters import SCATTERS

SIZES = (40, 0, 1, 130)
ROWS = sum(SIZES) + 5
"""Five rows belong to no group."""


def drawn(kind: torch.dtype, transposed: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    x, shape = torch.randn(ROWS, 48).to(kind), (len(SIZES), 48, 72)
    if not transposed:
        return x, torch.randn(shape).to(kind)
    return x, torch.randn(len(SIZES), 72, 48).to(kind).mT


def expected(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    parts = torch.split(x.double(), (*SIZES, ROWS - sum(SIZES)))
    products = [rows @ matrix for rows, matrix in zip(parts, weight.double(), strict=False)]
    return torch.cat([*products, torch.zeros(len(parts[-1]), weight.shape[2]).double()])


def near(got: torch.Tensor, right: torch.Tensor) -> bool:
    bound = torch.finfo(got.dtype).eps * right.abs().max()
    return got.shape == right.shape and bool((got.double() - right).abs().max() <= bound)


@pytest.mark.parametrize("transposed", [False, slow(True)])
@pytest.mark.parametrize("kind", [torch.float16, slow(torch.bfloat16)], ids=str)
def test_op(kind: torch.dtype, transposed: bool) -> None:
    x, weight = drawn(kind, transposed)
    got = torch.ops.tcir.grouped_mm(x, weight, torch.tensor(SIZES, dtype=torch.int32))
    within = sum(SIZES)
    assert got.shape == (ROWS, 72) and got.dtype == kind
    assert near(got[:within], expected(x, weight)[:within])


@pytest.mark.parametrize("transposed", [False, True])
def test_weights_are_not_copied(transposed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's matrices are the caller's memory, and the kernel reads them in that order."""
    module = importlib.import_module("tcir.torch.grouped_mm")
    taken: list[torch.Tensor] = []
    orders: list[str] = []

    def launcher(shapes: object, target: str) -> Callable[..., tuple[torch.Tensor]]:
        program = module._program(shapes)
        orders.extend(order for order in ("kn", "nk") if f'b_layout = "{order}"' in program)

        def launch(given: Sequence[torch.Tensor]) -> tuple[torch.Tensor]:
            taken.extend(given)
            return (torch.zeros(ROWS, 72, dtype=torch.float16),)

        return launch

    monkeypatch.setattr(module, "_launcher", launcher)
    x, weight = drawn(torch.float16, transposed)
    torch.ops.tcir.grouped_mm(x, weight, torch.tensor(SIZES, dtype=torch.int32))
    assert taken[1].data_ptr() == weight.data_ptr()
    assert taken[1].shape[1:] == ((72, 48) if transposed else (48, 72))
    assert orders == ["nk" if transposed else "kn"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x, w, n: (x[:, :20], w[:, :20], n), "K and N that are multiples of 8"),
        (lambda x, w, n: (x.float(), w.float(), n), "types that the tensor core multiplies"),
        (lambda x, w, n: (x, w, n.long()), "expected sizes of int32"),
        (lambda x, w, n: (x, w, n[:3]), r"\[4\], one for each matrix, got \[3\]"),
        (lambda x, w, n: (x[None], w, n), r"expected x of \[S, K\]"),
    ],
)
def test_refused(change: Callable[..., tuple[torch.Tensor, ...]], words: str) -> None:
    given = change(*drawn(torch.float16), torch.tensor(SIZES, dtype=torch.int32))
    with pytest.raises(tcir.InputError, match=words):
        torch.ops.tcir.grouped_mm(*given)


class Experts(nn.Module):
    """A product of each row by its expert's matrix, for rows that are sorted by expert."""

    def __init__(self, product: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.product = product

    def forward(
        self, x: torch.Tensor, weight: torch.Tensor, experts: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        counts = torch.histc(experts.float(), bins=len(weight), min=0, max=len(weight) - 1)
        ends = torch.cumsum(counts, 0, dtype=torch.int32)
        return torch.relu(self.product(x, weight, ends)), counts


def of_transformers(x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """The op that transformers calls where PyTorch's does not trace."""
    made: torch.Tensor = torch.ops.transformers.grouped_mm_fallback(x, weight, ends)
    return made


def of_pytorch(x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    return torch._grouped_mm(x, weight, offs=ends)


@pytest.mark.parametrize("product", [of_pytorch, slow(of_transformers)])
def test_in_a_module(product: Callable[..., torch.Tensor]) -> None:
    if product is of_transformers:
        pytest.importorskip("transformers.integrations.moe", reason="transformers is installed")
    x, weight = drawn(torch.bfloat16, transposed=True)
    numbers = torch.arange(len(SIZES)).repeat_interleave(torch.tensor(SIZES))
    experts = torch.cat([numbers, torch.full((ROWS - len(numbers),), 7)])
    model = tcir.torch.compile(Experts(product).eval(), (x, weight, experts), verbose=False)
    assert all(part.kernel is not None for part in model.table)
    assert "where, relu: layers, 1 launch" in str(model.table), "zeros for rows of no group"
    got, counts = model(x, weight, experts)
    assert counts.tolist() == list(SIZES)
    assert near(got, expected(x, weight).relu())


@pytest.mark.parametrize(("bins", "ends"), [(4, (0, 3)), (7, (-1, 2)), (100, (0, 1))])
@pytest.mark.parametrize("kind", [torch.float32, torch.int64], ids=str)
def test_counts(kind: torch.dtype, bins: int, ends: tuple[int, int]) -> None:
    torch.manual_seed(0)
    x = (torch.randn(300) * 2).to(kind)
    x[:2] = torch.tensor(ends)
    low, high = ends
    found = SCATTERS[torch.ops.aten.histc.default](x, bins, low, high)
    right = np.histogram(x.numpy(), bins, (low, high))[0]
    assert isinstance(found, torch.Tensor) and found.tolist() == right.tolist()
