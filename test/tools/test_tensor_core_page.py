"""docs/reference/tensor-core-ops.md is what the generator writes, and no form loses what it has."""

from __future__ import annotations

import pytest

from tcir.interp.tile import execute
from tcir.passes.nvvm.converter import RULES as LOWERINGS
from tcir.tools.dev import tensor_core_page as page
from tcir.tools.dev.tensor_core_forms import FORMS, Form

COMPLETE = 157
"""Forms with every cell; a new one raises it."""
ROWS = [page.row(form) for form in FORMS]


def test_page_is_fresh() -> None:
    assert page.document() == page.TARGET.read_text(encoding="utf-8"), "run `make docs`"


def test_no_form_regresses() -> None:
    assert sum(not row.missing for row in ROWS) >= COMPLETE


@pytest.mark.parametrize("row", ROWS, ids=[row.form.ptx for row in ROWS])
def test_a_form_has_everything_or_the_reason(row: page.FormRow) -> None:
    assert bool(row.form.op) != bool(row.form.why)
    assert not row.missing or not row.form.op
    assert row.ptx or "not an instruction of sm_100a" in row.form.why


def test_forms_are_listed_once() -> None:
    assert len({form.ptx for form in FORMS}) == len(FORMS)


@pytest.mark.parametrize(("table", "cell"), [(execute, "tile"), (LOWERINGS, "lowering")])
def test_a_lost_rule_is_seen(monkeypatch: pytest.MonkeyPatch, table: object, cell: str) -> None:
    form = next(form for form in FORMS if form.op == "tc.mma_sparse")
    rules = getattr(table, "_rules", table)
    monkeypatch.delitem(rules, "tc.mma_sparse")
    assert page.row(form).missing == (cell,)


def test_an_instruction_without_a_rule_is_seen() -> None:
    assert (
        page.row(Form("9.7.16.8", "tcgen05.ld.sync.aligned.8x32b.x4.b32 {%r0}, [%r1];")).ptx == ""
    )
