"""Compiles the kernels, runs their PTX on the simulated machine, prints a table.

    python -m peers.run [NAME …] [--source S …] [--keep FOLDER] [--reuse FOLDER] [--resume]
                        [--seeds N] [--minutes N] [--jobs N] [--details] [--write FOLDER]
                        [--record-launches FOLDER]

A compiler or library is taken from this Python or from the one that a variable names
(`peers/sources.py`): it need not be installed with tcir; what is missing is skipped, with the
reason. Exit status 0: every kernel compiled, ran completely, was correct and had no finding of
severity "error" but the ones of `peers/true_findings.py`, as issued and under every seed; 1: some
kernel did not; 2: a source is missing.
"""

from __future__ import annotations

import argparse
import functools
import math
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from peers import (  # noqa: F401  (they register the cases)
    cases_blackwell,
    cases_cute,
    cases_cutlass,
    cases_deep_gemm,
    cases_flash_attn,
    cases_gluon,
    cases_jax,
    cases_quack,
    cases_triton,
    page,
)
from peers import kept as kept_outcomes
from peers.case import CASES
from peers.outcome import Outcome, run_case
from peers.sources import SOURCES, compile_with
from tcir.testing.record import record

ROOT = Path(__file__).resolve().parents[1]
_current = ""
"""The kernel that this process runs."""


def _write(line: str) -> None:
    print(line, flush=True)


def _skipped(names: list[str], folder: Path, reuse: bool) -> dict[str, str]:
    """The sources that are not there, and why."""
    reasons = {}
    for name in names:
        if reuse:
            reason = None if (folder / name).is_dir() else f"nothing of it in {folder}"
        elif SOURCES[name].package:
            reason = SOURCES[name].missing
        else:
            reason = compile_with(name, folder / name)
        if reason:
            _write(f"skipped: {SOURCES[name].title}: {reason}")
            reasons[name] = reason
    return reasons


def _called(name: str, folder: Path, options: argparse.Namespace) -> list[Outcome]:
    """Outcomes of a library's calls, which run in its Python."""
    flags = [f"--{flag}={getattr(options, flag)}" for flag in ("seeds", "jobs", "minutes")]
    flags += ["--resume"] * options.resume
    command = [SOURCES[name].python, "-m", "peers.calls", name, folder.resolve(), *options.names]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    subprocess.run([*command, *flags], check=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": paths})
    there = (folder / "calls.txt").read_text().split()
    chosen = [each for each in there if not options.names or each in options.names]
    found = ((each, kept_outcomes.read(folder / f"{each}.outcome")) for each in chosen)
    return [outcome or page.left_out(each, name) for each, outcome in found]


def _one(place: int, folder: Path, options: argparse.Namespace, deadline: float) -> Outcome:
    case = CASES[place]
    kept = kept_outcomes.load(case, folder, options.seeds) if options.resume else None
    if kept is not None:
        return kept
    if time.monotonic() > deadline:
        return page.left_out(case.name, case.compiler)
    global _current
    _current = f"{case.compiler} {case.name}"
    outcome = run_case(case, folder, options.seeds)
    kept_outcomes.save(case, folder, options.seeds, outcome)
    return outcome


def _run(chosen: list[int], folder: Path, options: argparse.Namespace) -> list[Outcome]:
    """`chosen`: places in CASES. A process inherits those: what builds a launch does not travel."""
    heading = ("source", "kernel", "values", "as issued", "seeds", "warnings", "instr.", "s")
    _write(page.COLUMNS.format(*heading))
    outcomes = []
    deadline = time.monotonic() + 60 * options.minutes
    work = functools.partial(_one, folder=folder, options=options, deadline=deadline)
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for outcome in pool.imap(work, chosen):
            outcomes.append(outcome)
            _write(page.row(outcome))
            if options.details:
                _write(outcome.issued.text)
    return outcomes


def _write_pages(pages: Path, ran: set[str], outcomes: list[Outcome], folder: Path) -> None:
    """Writes each page all of whose sources ran."""
    for file, calls in (("peers.md", False), ("peers-calls.md", True)):
        if {name for name, each in SOURCES.items() if bool(each.package) == calls} <= ran:
            page.write(pages / file, [o for o in outcomes if page.of_calls(o) == calls], folder)
        else:
            _write(f"{pages / file} is left as it is: it is about all kernels")


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="peers.run", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--source", action="append", choices=SOURCES, help="only this source")
    parser.add_argument("--keep", type=Path, help="leave what the compilers wrote here")
    parser.add_argument("--reuse", type=Path, help="take what an earlier --keep left")
    parser.add_argument("--resume", action="store_true", help="and its outcomes, where still valid")
    parser.add_argument("--seeds", type=int, default=5, help="how many seeded orders (default 5)")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="then no other kernel is begun"
    )
    parser.add_argument("--jobs", type=int, default=1, help="kernels at a time (default 1)")
    parser.add_argument(
        "--record-launches",
        type=Path,
        metavar="FOLDER",
        help="write launches there, for `python -m tcir.testing.gpu`",
    )
    parser.add_argument(
        "--write", type=Path, metavar="FOLDER", help="write the tables of its pages"
    )
    parser.add_argument("--details", action="store_true", help="print the reports")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    options = _parse(argv)
    names = options.source or list(SOURCES)
    if options.record_launches:
        record(options.record_launches, lambda: _current)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.reuse or options.keep or Path(scratch)
        skipped = _skipped(names, folder, options.reuse is not None)
        chosen = [
            place
            for place, case in enumerate(CASES)
            if case.compiler in names
            and case.compiler not in skipped
            and (not options.names or case.name in options.names)
        ]
        recorded = _run(chosen, folder, options) if chosen else []
        called = [
            outcome
            for name in names
            if SOURCES[name].package and name not in skipped
            for outcome in _called(name, folder / name, options)
        ]
        if options.write and not options.names:
            _write_pages(options.write, {*names} - {*skipped}, [*recorded, *called], folder)
        for outcomes in (recorded, called):
            if outcomes or skipped:
                _write(page.count_line(outcomes, skipped))
    if skipped:
        return 2
    return 0 if not any(map(page.failure, [*recorded, *called])) else 1


if __name__ == "__main__":
    sys.exit(main())
