"""What docs/reference/prove.md says of kernels and faults is what both judges say."""

from __future__ import annotations

import importlib.util

import pytest

from tcir.prover.prove import prove, prove_launches

from .kernels import SUBJECTS, checked
from .mutants import MUTANTS, Mutant
from .page import TARGET, render

ORDERS = 5
needs_prover = pytest.mark.skipif(
    importlib.util.find_spec("sentryward") is None,
    reason="needs the package sentryward (extra prove)",
)
every_kernel = pytest.mark.parametrize("number", range(len(SUBJECTS)), ids=list(SUBJECTS))
every_fault = pytest.mark.parametrize(
    "number", range(len(MUTANTS)), ids=[str(each) for each in MUTANTS]
)


def edited(mutant: Mutant) -> str:
    return checked(mutant.subject).edit(mutant.pattern, mutant.replacement, mutant.index)


@every_kernel
def test_the_machine_holds_the_kernels(number: int) -> None:
    check = checked(list(SUBJECTS)[number])
    caught = check.run(check.kernel.ptx, orders=1)
    assert not caught, caught.text


@every_fault
def test_the_machine_on_the_faults(number: int) -> None:
    mutant = MUTANTS[number]
    caught = checked(mutant.subject).run(edited(mutant), ORDERS)
    assert caught.by == mutant.machine, caught.text


@needs_prover
@every_kernel
def test_the_prover_on_the_kernels(number: int) -> None:
    name = list(SUBJECTS)[number]
    *helpers, last = prove(checked(name).kernel, memory_mib=5000).launches
    assert all(each.verdict == "proved" for each in helpers), helpers
    assert last.verdict == SUBJECTS[name].verdict, str(last)


@needs_prover
@every_fault
def test_the_prover_on_the_faults(number: int) -> None:
    mutant = MUTANTS[number]
    kernel = checked(mutant.subject).kernel
    last = kernel.launches.launches[-1:]
    (proof,) = prove_launches(edited(mutant), last, kernel.report, memory_mib=5000).launches
    assert proof.result == mutant.prover, str(proof)
    assert (proof.result == "race_free") == (proof.why == "")


def test_the_page_is_current() -> None:
    assert TARGET.read_text(encoding="utf-8") == render(), "run python -m prover.page in test/"


def test_every_disagreement_is_explained() -> None:
    for mutant in MUTANTS:
        clean = mutant.machine == "" or mutant.machine.startswith("warning")
        agree = clean == (mutant.prover == "race_free") and mutant.prover != "unsupported"
        assert bool(mutant.because) or (agree and mutant.machine), str(mutant)
    for name, each in SUBJECTS.items():
        assert bool(each.because) == (each.verdict != "proved"), name
