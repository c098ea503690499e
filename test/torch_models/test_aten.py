"""ATen ops one by one: none is wrong, and each is what docs/reference/aten.md says."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence

import pytest
from tiers import slow_but

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch

import tcir
from tcir.session.apart import compilers
from tcir.tools.dev.aten import coverage, page
from tcir.tools.dev.aten.case import Case
from tcir.tools.dev.aten.measured import LEFT, LOWERED, RED, TYPES, CaseRunner, strided
from tcir.torch import choices, decompositions

QUICK = (
    "sigmoid", "maximum", "where", "sum long", "softmax", "topk", "cumsum", "embedding",
    "index_copy", "cat", "linear", "conv2d",
)  # fmt: skip
ROWS = page.rows()


def _check(names: Sequence[str], types: Sequence[torch.dtype]) -> None:
    found = CaseRunner(compilers()).cells([page.CASES[name] for name in names], types)
    for name, cells in found.items():
        wrong = {key: cell.words for key, cell in cells.items() if cell.state == RED}
        assert not wrong, name
        said = [page.state(text) for text in ROWS[name].strip("| ").split(" | ")[1:4]]
        said = [said[0] if each == "″" else each for each in said]
        for kind in types:
            assert cells[kind, False].state == said[TYPES.index(kind)], (name, cells[kind, False])


def test_some_ops() -> None:
    _check(QUICK, [torch.float16])


@pytest.mark.parametrize("names", slow_but((), page.batches(list(page.CASES))), ids=" ".join)
def test_all_ops(names: list[str]) -> None:
    _check(names, TYPES)


def test_the_page_has_every_op() -> None:
    assert next(iter(ROWS)) == "op" and set(ROWS) - {"op"} == set(page.CASES)
    written, made = (
        re.sub(r"PyTorch \d[^;]*;", "PyTorch;", text)  # measured with another version, perhaps
        for text in (page.TARGET.read_text(encoding="utf-8"), page.document(ROWS))
    )
    assert written == made
    assert not any(f" {RED}: " in row for row in ROWS.values())


def test_every_op_of_torch_mlir_has_a_row_or_a_reason() -> None:
    assert not coverage.missing(page.CASES)
    few = {name: case for name, case in page.CASES.items() if "relu" not in name}
    assert coverage.missing(few) == {"leaky_relu", "prelu", "relu6", "rrelu", "rrelu_with_noise"}


def _cell(case: Case) -> tuple[str, str]:
    cells = CaseRunner(compilers()).cells([case], [torch.float16])
    (found,) = {(each.state, each.words) for each in cells[case.name].values()}
    return found


def test_a_wrong_decomposition_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch-mlir's own maximum, to which NaN is a number that is not larger."""
    monkeypatch.delitem(choices.CHOICES, torch.ops.aten.maximum.default)
    state, words = _cell(page.CASES["maximum"])
    assert state == RED and "NaN and infinities are not where" in words


def test_sums_of_f16_are_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompositions, "NARROW", ())
    state, words = _cell(page.CASES["sum long"])
    assert state == RED and "imported: " in words


def test_what_no_pipeline_takes_has_its_reason() -> None:
    state, words = _cell(page.CASES["masked_select"])
    assert state == LEFT and words


def test_an_index_outside_is_an_error() -> None:
    class Rows(torch.nn.Module):
        def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
            return x.index_select(0, at)

    x = torch.randn(5, 7).half()
    compiled = tcir.torch.compile(Rows().eval(), (x, torch.tensor([0, 4])))
    assert str(compiled.table) == "index_select: layers, 1 launch"
    assert torch.equal(compiled(x, torch.tensor([3, 3])), x[[3, 3]])
    assert [report.verdict for report in compiled.validate()] == ["held"]
    for index in (5, -1):
        with pytest.raises(tcir.Error, match="trap"):
            compiled(x, torch.tensor([0, index]))


def test_arguments_are_strided() -> None:
    x = torch.randn(3, 5)
    other = strided(x)
    assert torch.equal(other, x) and other.stride() == (2, 6) and not other.is_contiguous()
    assert strided(torch.randn(5)).stride() == (2,)


def test_the_states_of_a_row() -> None:
    assert page.state("4.4e-04 / 1.9e-04") == LOWERED and page.state("exact") == LOWERED
    assert page.state("left to PyTorch: got math.atan2 in a body") == LEFT
    assert page.state("red: result 0: wrong") == RED
