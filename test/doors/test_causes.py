"""Findings of the doors: one line for a cause, and names of kernels that fit."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

from tcir.doors.causes import causes, shown_name
from tcir.doors.launches import DoorLaunch, Launches
from tcir.machine.findings import Finding
from tcir.run import RunReport

RACE = Finding("error", "race", "line 3: st.shared (k.cu:7)", "line 9: ld.shared (k.cu:8)", "fence")
UNROLLED = replace(RACE, first="line 4: st.shared (k.cu:7)", second="line 12: ld.shared (k.cu:8)")
ELSEWHERE = replace(RACE, second="line 10: ld.shared (k.cu:9)")


def test_instructions_of_the_same_lines_are_one_cause() -> None:
    found = causes([RACE, UNROLLED, ELSEWHERE])
    assert [(cause.first, cause.alike) for cause in found] == [(RACE, 1), (ELSEWHERE, 0)]
    assert str(found[0]) == f"{RACE}; 1 more between these lines"


def test_other_kinds_and_instructions_without_lines_are_others() -> None:
    warning = replace(RACE, severity="warning")
    assert len(causes([RACE, warning, replace(RACE, code="late"), replace(RACE, kind="CTAs")])) == 4
    bare = [replace(RACE, first=f"line {n}: st.shared") for n in (3, 4)]
    assert len(causes(bare)) == 2


def test_as_many_causes_as_asked_for_are_printed() -> None:
    said = io.StringIO()
    launches = Launches(at_most=1, messages=said)
    launch = cast("DoorLaunch", SimpleNamespace(name="k" * 100, cooperative=False, ptx=""))
    findings = [RACE, UNROLLED, ELSEWHERE]
    report = SimpleNamespace(findings=findings, errors=[], incomplete=[])
    assert launches._say_findings(launch, cast("RunReport", report))
    name = f"{'k' * 40}…{'k' * 12}"
    assert said.getvalue().splitlines() == [
        f"tcir: {name}: {RACE}; 1 more between these lines",
        f"tcir: {name}: 1 more causes (--max-findings)",
    ]


def test_errors_are_printed_before_warnings() -> None:
    said = io.StringIO()
    launches = Launches(at_most=2, warnings=True, messages=said)
    launch = cast("DoorLaunch", SimpleNamespace(name="k", cooperative=False, ptx=""))
    late = [replace(ELSEWHERE, severity="warning", code=code) for code in ("late", "later")]
    report = SimpleNamespace(findings=[*late, RACE], errors=[], incomplete=[])
    assert launches._say_findings(launch, cast("RunReport", report))
    assert said.getvalue().splitlines() == [
        f"tcir: k: {RACE}",
        f"tcir: k: warning: {late[0]}",
        "tcir: k: 1 more causes (--max-findings)",
    ]


def test_names_that_fit() -> None:
    assert shown_name("_Z4fillPi") == "_Z4fillPi"
    assert shown_name(f"_ZN6thrust4core11kernel_nameI{'N3cub1' * 20}EEvv") == "kernel_name<…>"
