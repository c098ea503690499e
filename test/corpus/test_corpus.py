"""Wrong programs are reported, right ones are clean and give right values, in every order.

The programs are files of PTX and CUDA C++ (`program.py` explains their first comment). `gaps.txt`
names those on which the machine is wrong today: they have to fail until somebody closes the gap and
its line.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from tiers import KEPT, slow_but

from tcir.codegen.tools import find_tool
from tcir.errors import MissingDependencyError

from .program import PROFILES, Case, cases, gaps, order_name, verdict

CASES = cases()
GAPS = gaps()
HERE = "test/corpus/test_corpus.py"
COMPILED = [
    case
    for case in CASES
    if case.program.path.suffix == ".ptx" or f"{HERE}::test_verdict[{case.name}]" in KEPT
]
"""Cases whose PTX is there, or is made for `make test` anyway: nvcc takes a second for each."""
QUICK = (None, 2)
"""As issued, and at any time."""
LATER = (0, 1, 3, 4, 5, 6)


def check(case: Case, orders: Sequence[int | None], profile: str = "silicon") -> None:
    """Fails unless the machine is right in each order, but for exactly those of the case's gap."""
    prefix = "" if profile == "silicon" else f"{profile}:"
    problems = {prefix + order_name(order): verdict(case, order, profile) for order in orders}
    failing = {order for order, problem in problems.items() if problem}
    gap = GAPS.get(case.name)
    known = {order for order in problems if gap and gap.covers(order)}
    for order in sorted(failing - known):
        pytest.fail(f"order {order}: {problems[order]}")
    assert failing == known, f"gaps.txt: {case.name} is right now in {sorted(known - failing)}"
    if gap and known:
        pytest.xfail(gap.why)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_verdict(case: Case) -> None:
    check(case, QUICK)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_verdict_in_more_orders(case: Case) -> None:
    check(case, LATER)


@pytest.mark.parametrize("step", [4, 1])
@pytest.mark.parametrize("profile", PROFILES[1:])
def test_verdict_by_the_documents(profile: str, step: int, subtests: pytest.Subtests) -> None:
    """Of every case, in `make test` of every fourth that no compiler has to make."""
    some = [case for case in CASES if step == 1 or case.program.path.suffix == ".ptx"]
    for case in some[::step]:
        with subtests.test(case.name):
            check(case, [None], profile)


@pytest.mark.parametrize("case", slow_but(COMPILED, CASES), ids=lambda case: case.name)
def test_it_assembles(case: Case, tmp_path: Path) -> None:
    try:
        ptxas = find_tool("ptxas")
    except MissingDependencyError as error:
        pytest.skip(str(error))
    source = tmp_path / "kernel.ptx"
    source.write_text(case.text)
    target = "sm_90a" if ".target sm_90a" in case.text else "sm_100a"
    command = [str(ptxas), f"-arch={target}", str(source), "-o", str(tmp_path / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_corpus_is_large_and_even() -> None:
    count = Counter(case.kind for case in CASES)
    assert count["wrong"] >= 80 and count["right"] >= 120
    wrong = Counter(case.program.fields["class"] for case in CASES if case.kind == "wrong")
    assert min(wrong.values()) >= 3 and max(wrong.values()) <= count["wrong"] / 4, wrong


def test_the_edge_makes_a_twin_another_program() -> None:
    for case in CASES:
        if case.kind == "wrong":
            assert case.program.twin != case.program.text, case.name


def test_outcomes_are_spelled_right() -> None:
    for case in CASES:
        for profile in ("silicon", "isa"):
            expected = case.program.outcome(profile)
            assert (expected.severity == "clean") == (not expected.kinds), case.name
            assert case.kind == "right" or expected.kinds, case.name


def test_gaps_name_cases() -> None:
    assert set(GAPS) <= {case.name for case in CASES}
