"""Each rule about conflicts has a pair of programs that it matters to, and a row on its page."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from corpus.program import PROFILES, Case, cases, outcomes

from tcir.machine.engine import conflict
from tcir.machine.order.fence_hazards import FENCES, TENSOR_FENCES
from tcir.machine.order.hazard import Hazard, HazardRule
from tcir.machine.order.race_hazards import ORDERS, RACES
from tcir.tools.dev.hazard_page import TARGET, document, rules

CASES = {case.name: case for case in cases()}
RULES = rules()


def found(case: Case, profile: str) -> set[tuple[str, str]]:
    report, _ = case.program.run(case.text, None, ordering=profile)
    return set(outcomes(report))


def without(rule: HazardRule, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine walks the tables without this rule."""

    def left(table: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(one for one in table if one is not rule)

    monkeypatch.setattr(conflict, "ORDERS", left(ORDERS))
    monkeypatch.setattr(conflict, "RACES", left(RACES))
    monkeypatch.setattr(conflict, "FENCES", {key: left(table) for key, table in FENCES.items()})
    monkeypatch.setattr(conflict, "TENSOR_FENCES", left(TENSOR_FENCES))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_verdict_on_its_pair_depends_on_it(
    rule: HazardRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = [CASES[rule.wrong], CASES[rule.right]]
    assert rule.wrong.startswith("wrong/") and rule.right.startswith(("right/", "twin/"))
    with_it = [found(case, profile) for case in pair for profile in PROFILES]
    without(rule, monkeypatch)
    assert with_it != [found(case, profile) for case in pair for profile in PROFILES]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_it_states_its_source_and_its_evidence(rule: HazardRule) -> None:
    assert rule.isa[0] in "89" and rule.evidence
    if isinstance(rule, Hazard):
        kinds = {kind for name in (rule.wrong, rule.right) for _, kind in found(CASES[name], "isa")}
        assert kinds & {rule.kind, "race"}


def test_names_are_given_once() -> None:
    assert not [name for name, count in Counter(rule.name for rule in RULES).items() if count > 1]


def test_the_last_hazard_is_any_conflict() -> None:
    """A conflict that no rule before it names is a race."""
    assert [rule.kind for rule in RACES].index("race") == len(RACES) - 1


def test_the_page_is_up_to_date() -> None:
    assert TARGET.read_text(encoding="utf-8") == document()
