"""What the machine says about one kernel: its values, its verdict as issued and under seeds."""

from __future__ import annotations

import collections
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from peers.case import Case, Launch
from tcir.run import LaunchError, PtxSyntaxError, RunReport, run_ptx

#: The rules of order that `run_ptx` knows, the default first.
PROFILES = ("silicon", "isa")


@dataclass
class Run:
    """One execution. values: "exact", "within N", or what differs; verdict: "ok" or why not.

    kinds: findings by severity and code. text: the machine's report, empty if nothing ran.
    """

    values: str
    verdict: str
    why: str = ""
    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    instructions: int = 0
    text: str = ""

    def __post_init__(self) -> None:
        self.kinds = collections.Counter(self.kinds)

    @property
    def good(self) -> bool:
        return self.verdict == "ok" and self.values.startswith(("exact", "within"))


@dataclass
class Outcome:
    """All executions of a kernel, or of a call of a library: as issued, under seeds, and as issued
    under other profiles.

    kernels: of a call: the kernels that it launched
    """

    name: str
    source: str
    issued: Run
    seeds: dict[int, Run] = field(default_factory=dict)
    profiles: dict[str, Run] = field(default_factory=dict)
    seconds: float = 0.0
    kernels: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return self.issued.good and all(run.good for run in self.seeds.values())

    @property
    def seeded(self) -> str:
        """In words: the seeds under which something else was seen."""
        bad = [
            f"{seed}: {run.verdict if run.verdict != 'ok' else run.values}"
            for seed, run in self.seeds.items()
            if not run.good
        ]
        return "; ".join(bad) or ("ok" if self.seeds else "–")


def values(launch: Launch) -> str:
    """How the outputs compare with what was expected."""
    worst = 0.0
    for got, want, tolerance in launch.want:
        a, b = np.asarray(got, np.float64), np.asarray(want, np.float64)
        difference = np.abs(a - b)
        difference[(a == b) | np.isnan(a) & np.isnan(b)] = 0
        if not (difference <= tolerance).all():
            bad = int((~(difference <= tolerance)).sum())
            at = np.unravel_index(int(np.argmax(~(difference <= tolerance))), a.shape)
            where = tuple(int(n) for n in at)
            return f"{bad} of {a.size} differ, first {where}: {a[at]} for {b[at]}"
        worst = max(worst, float(difference.max(initial=0)))
    return "exact" if worst == 0 else f"within {worst:.2g}"


def verdict(report: RunReport) -> tuple[str, str]:
    """In a word, and the first reason."""
    if report.incomplete:
        names = collections.Counter(f"{i.instruction} ({i.why})" for i in report.incomplete)
        return "incomplete", "; ".join(names)
    if report.errors:
        return f"error: {report.errors[0].code}", str(report.errors[0])
    errors = [f for f in report.findings if f.severity == "error"]
    if errors:
        codes = ", ".join(sorted({f.code for f in errors}))
        return f"error: {codes}", f"{errors[0].first} / {errors[0].second}"
    return "ok", ""


def run_once(case: Case, folder: Path, seed: int | None = None, profile: str = PROFILES[0]) -> Run:
    path = folder / case.compiler / f"{case.name}.json"
    if not path.exists():
        return Run("–", "not compiled", "see log.txt")
    meta: dict[str, Any] = json.loads(path.read_text())
    if "error" in meta:
        return Run("–", "not compiled", meta["error"])
    launch = case.build(meta)
    smem = meta.get("dynamic_smem", 0) if launch.dynamic_smem is None else launch.dynamic_smem
    try:
        report = run_ptx(
            path.with_suffix(".ptx").read_text(),
            entry=meta.get("entry"),
            grid=launch.grid,
            block=launch.block or tuple(meta["block"]),
            cluster=launch.cluster,
            dynamic_smem=smem,
            args=launch.args,
            order_seed=seed,
            ordering=profile,
        )
    except (LaunchError, PtxSyntaxError) as error:
        return Run("–", "rejected", str(error))
    word, why = verdict(report)
    seen = "–" if report.incomplete or report.errors else values(launch)
    kinds = collections.Counter(f"{f.severity} {f.code}" for f in report.findings)
    return Run(seen, word, why or seen, kinds, report.instructions, str(report))


def run_case(case: Case, folder: Path, seeds: int = 0) -> Outcome:
    """As issued, under seeds 1 … `seeds`, and as issued under each profile but the default."""
    started = time.perf_counter()
    outcome = Outcome(case.name, case.compiler, run_once(case, folder))
    if outcome.issued.text:
        outcome.seeds = {n: run_once(case, folder, n) for n in range(1, seeds + 1)}
        outcome.profiles = {p: run_once(case, folder, None, p) for p in PROFILES[1:]}
    outcome.seconds = time.perf_counter() - started
    return outcome
