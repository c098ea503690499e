"""halo=refresh under every setting of the open questions that it rests on.

A setting under which the kernel is not right has to be reported, never passed over.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

import tcir
from tcir.machine.assumptions import REGISTRY, Assumptions

from .linalg_text import Conv

CASE = Conv(1, 3, 34, 8, 16, 1, 3, (0, 0, 1, 1))
QUESTIONS = ("shift_quarters", "ashift_then_cp", "cp4x256b_rows", "cp4x256b_lane")
W128_QUESTIONS = (
    "im2col_w_halo", "im2col_w_row_end", "im2col_w128_halo", "im2col_w_bytes", "cp_row_phase",
)  # fmt: skip
"""Of slab and halo in one load."""
ORDERS: dict[str, dict[str, Any]] = {
    "ashift": {},
    "shift-one": {"shift": "shift"},
    "shift-all": {"shift": "shift", "shift_quarters": "all"},
    "w128": {"tiling": "packed", "halo_load": "w128"},
    "w128-one-image": {"tiling": "packed", "halo_load": "w128"},
}
CASES = {"w128": replace(CASE, n=2, h=1), "w128-one-image": replace(CASE, h=1)}
"""Order -> convolution, where it is another."""
WRONG = {
    ("ashift", "cp4x256b_rows", "every-32"),
    ("shift-one", "cp4x256b_rows", "every-32"),
    ("shift-all", "cp4x256b_rows", "every-32"),
    ("shift-one", "shift_quarters", "all"),
    ("w128", "cp4x256b_rows", "every-32"),
    ("w128", "im2col_w_row_end", "fill"),
    ("w128", "im2col_w128_halo", "after-each-group"),
    ("w128", "im2col_w_bytes", "main"),
    ("w128", "cp_row_phase", "start"),
}
"""Order, question and answer with which the kernel is wrong; shift-all is checked with its own."""
SETTINGS = [
    (order, entry.name, answer)
    for order in ORDERS
    for entry in REGISTRY
    if entry.name in QUESTIONS + W128_QUESTIONS * (order == "w128")
    for answer in entry.alternatives
    if (order != "shift-all" or entry.name != "shift_quarters") and order != "w128-one-image"
] + [("w128-one-image", "im2col_w_row_end", "fill")]


def assume(patch: pytest.MonkeyPatch, **answers: str) -> None:
    """Makes the answers the machine's defaults."""
    names = [f.name for f in fields(Assumptions)]
    defaults = Assumptions.__init__.__defaults__ or ()
    new = tuple(answers.get(name, old) for name, old in zip(names, defaults, strict=True))
    patch.setattr(Assumptions.__init__, "__defaults__", new)
    assert all(getattr(Assumptions(), name) == answer for name, answer in answers.items())


@pytest.mark.parametrize(
    ("order", "question", "answer"),
    SETTINGS,
)
def test_setting(order: str, question: str, answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"shift_quarters": "all"} if order == "shift-all" else {}
    assume(monkeypatch, **{**own, question: answer})
    kernel = tcir.validate(
        CASES.get(order, CASE).text(), "conv-shift-reuse", halo="refresh", orders=2, **ORDERS[order]
    )
    assert kernel.ok == ((order, question, answer) not in WRONG), str(kernel)


def test_all_quarters_at_once_needs_its_assumption() -> None:
    report = tcir.validate(CASE.text(), "conv-shift-reuse", halo="refresh", **ORDERS["shift-all"])
    assert not report.ok
    wrong = next(line for line in report.passes if line.verdict == "different")
    assert wrong.name == "tile-conv-shift-reuse"
