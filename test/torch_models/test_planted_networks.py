"""Bugs planted in two-layer networks: validation says so, or the reason why not is known."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

from tiers import slow

from .planted_networks import BUGS, EDITS, PTX, Bug, judged

QUICK = (
    "a head is dropped", "sums rounded to bf16", "gelu by tanh", "the maximum is not subtracted",
)  # fmt: skip
"""Bugs of BERT that the quick tests plant, too."""


def cases(bugs: tuple[Bug, ...]) -> list[Any]:
    return [each if each.name in QUICK and each.after != PTX else slow(each) for each in bugs]


@pytest.mark.parametrize(
    "bug", cases(BUGS) + cases(EDITS), ids=lambda bug: f"{bug.network}, {bug.after}, {bug.name}"
)
def test_a_bug_is_said(bug: Bug) -> None:
    line = judged(bug)
    assert line.verdict == ("within bound" if bug.why else "different"), line.compared
    assert "no worst-case bound" in line.compared or "NaN" in line.compared, line.compared
    assert bug.why or not line.findings
