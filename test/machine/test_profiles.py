"""The two profiles of ordering: what only the documents forbid is a warning, or an error."""

from __future__ import annotations

import re

import pytest

from tcir.errors import LaunchError
from tcir.machine import Assumptions, Finding, Machine
from tcir.run_options import RunOptions

from . import test_mistakes, test_pairs
from .agent_programs import Run
from .test_hazards import CASES, OMISSIONS, Case, Missing

RELIED_ON = [missing for missing in OMISSIONS if missing.severity == "warning"]
"""Edges that shipping kernels do without."""
PROVEN = ("issue-order", "late-proxy-fence")
PAIRS = {name: test_pairs for name, (_, code) in test_pairs.PAIRS.items() if code in PROVEN} | {
    name: test_mistakes
    for name, (_, codes) in test_mistakes.PAIRS.items()
    if codes == {"descriptor-constant"}
}


def check(by_silicon: list[Finding], by_documents: list[Finding]) -> None:
    """The same program under both profiles."""
    assert {f.severity for f in by_silicon} == {"warning"}, by_silicon
    for finding in by_silicon:
        assert finding.unpromised is not None
        words = r": .+ is not promised by PTX ISA [\d.]+; ships in \w"
        assert re.search(words, finding.missing), finding
    assert {f.severity for f in by_documents} == {"error"}, by_documents


@pytest.mark.parametrize("missing", RELIED_ON, ids=str)
def test_an_edge_that_shipping_kernels_omit(missing: Missing) -> None:
    found = {}
    for ordering in ("silicon", "isa"):
        run = Run(ordering=ordering)
        found[ordering] = run.agents(*missing.case(run, (missing.edge,))).findings
    check(found["silicon"], found["isa"])
    if missing.code != "issue-order":  # by the documents alone nothing orders the two: a race
        assert {f.code for f in found["silicon"]} == {f.code for f in found["isa"]}


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_that_shipping_kernels_prove(name: str) -> None:
    relying = [PAIRS[name].run(name, False, None, ordering=o) for o in ("silicon", "isa")]
    check(*(bench.machine.findings for bench in relying))
    assert not PAIRS[name].run(name, True, None, ordering="isa").codes


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_with_all_edges_the_documents_are_content(case: Case, seed: int | None) -> None:
    run = Run(seed, ordering="isa")
    assert run.agents(*case(run, ())).findings == []


@pytest.mark.parametrize("name", test_pairs.PAIRS)
def test_with_its_edge_a_pair_is_clean_by_the_documents(name: str) -> None:
    assert not test_pairs.run(name, True, 2, ordering="isa").codes


def test_by_the_documents_only_the_listed_pairs_are_in_order() -> None:
    chosen = Assumptions(alloc_place="any")
    options = RunOptions(ordering="isa", assumptions=chosen)
    machine = Machine(grid=(1, 1, 1), block=(32, 1, 1), options=options)
    assert machine.assumptions == Assumptions(alloc_place="any", pipe_order="listed")
    assert Machine(grid=(1, 1, 1), block=(32, 1, 1)).assumptions.pipe_order == "issue"


def test_the_profile_is_checked() -> None:
    with pytest.raises(LaunchError, match="ordering: expected 'silicon' or 'isa', got 'ptx'"):
        RunOptions(ordering="ptx")
    with pytest.raises(LaunchError, match=r"assumptions: expected tcir\.machine\.Assumptions, got"):
        RunOptions(assumptions={"pipe_order": "listed"})  # type: ignore[arg-type]


def test_assumptions_from_texts() -> None:
    parsed = Assumptions.parse(["pipe_order=listed", "alloc_place=any"])
    assert parsed.changes() == {"pipe_order": "listed", "alloc_place": "any"}
    for text, words in {
        "pipe_order": "expected NAME=ANSWER, got 'pipe_order'",
        "pipe_ordre=listed": "no assumption is called 'pipe_ordre'; did you mean 'pipe_order'",
        "pipe_order=fast": "pipe_order: expected 'issue' or 'listed', got 'fast'",
    }.items():
        with pytest.raises(LaunchError, match=words):
            Assumptions.parse([text])
