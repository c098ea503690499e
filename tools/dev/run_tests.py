"""Runs lit and pytest and adds up their counts; the last line of the output is ``N passed, N
failed``.

``make test``, ``make test-doors``, ``make test-all`` and ``.ci/run`` use it. Skipped tests are
listed with reasons. A run that ended without a result (a crash, no test found) counts as failed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

from tcir.tools.dev import shards
from tcir.tools.dev.shards import shard

SLOW_SECONDS = 3600
"""Time limit of a test with ``--all``, in seconds (otherwise the 300 s of pyproject.toml)."""
_LIT_PASSED = {"PASS", "XFAIL", "FLAKYPASS"}
_LIT_SKIPPED = {"UNSUPPORTED", "EXCLUDED", "SKIPPED"}


@dataclass
class Tally:
    """Counts of tests by outcome, and a (test, reason) pair for each skipped test."""

    passed: int = 0
    failed: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        )

    def last_line(self) -> str:
        """The summary line, in the form that test harnesses read."""
        return f"{self.passed} passed, {self.failed} failed"


def main(words: list[str] | None = None) -> int:
    """Runs the tests below the given folders; returns 0 if none failed and at least one passed."""
    parser = argparse.ArgumentParser(description="Run lit and pytest.")
    parser.add_argument("paths", nargs="*", default=["test"], help="folders or files (test)")
    parser.add_argument("--all", action="store_true", help="slow tests too")
    parser.add_argument("-j", type=int, default=2, dest="jobs", help="tests at a time (2)")
    parser.add_argument(
        "--only-skips", metavar="REGEX", help="a test that is skipped for another reason has failed"
    )
    parser.add_argument(
        "--budget", type=float, metavar="SECONDS", help="what takes longer is slow (test/tiers.py)"
    )
    parser.add_argument(
        "--shard", type=shard, default=(1, 1), metavar="I/N", help="one of N parts of the tests"
    )
    parser.add_argument(
        "--junit",
        type=Path,
        metavar="FILE",
        help="where pytest's report is kept, for test/tiers.py",
    )
    arguments = parser.parse_args(words)
    tally = _run_lit(arguments.paths, arguments.jobs, arguments.shard)
    tally += _run_pytest(arguments)
    if tally.skipped:
        print("\nskipped:")
        for name, reason in tally.skipped:
            print(f"  {name}: {reason}")
    if arguments.only_skips is not None:
        wrong = [r for _, r in tally.skipped if not re.search(arguments.only_skips, r)]
        tally += Tally(failed=len(wrong))
    print(tally.last_line())
    return 0 if tally.failed == 0 and tally.passed > 0 else 1


def _run_lit(paths: list[str], jobs: int, part: tuple[int, int]) -> Tally:
    paths = [
        path
        for path in paths
        if (any(Path(path).rglob("*.mlir")) if Path(path).is_dir() else path.endswith(".mlir"))
    ]
    if not paths:
        return Tally()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "lit.json")
        command = [sys.executable, "-c", "from lit.main import main; main()"]
        command += [f"--run-shard={part[0]}", f"--num-shards={part[1]}"] if part[1] > 1 else []
        # Twice as many as pytest's: while a command is being started, a test only waits.
        command += [f"-j{2 * jobs}"]
        # stderr too: a test's failing output is what one wants to read.
        subprocess.run([*command, "-v", "-o", str(output), *paths], check=False)
        return _read_lit(output)


def _read_lit(output: Path) -> Tally:
    try:
        tests = json.loads(output.read_text())["tests"]
    except (OSError, ValueError, KeyError):
        print("lit ended without a result")
        return Tally(failed=1)
    tally = Tally()
    for test in tests:
        if test["code"] in _LIT_PASSED:
            tally.passed += 1
        elif test["code"] in _LIT_SKIPPED:
            reason = " ".join(test["output"].split()) or test["code"].lower()
            tally.skipped.append((test["name"], reason))
        else:
            tally.failed += 1
    return tally


def _run_pytest(arguments: argparse.Namespace) -> Tally:
    jobs, (number, count) = arguments.jobs, arguments.shard
    with tempfile.TemporaryDirectory() as folder:
        output = arguments.junit or Path(folder, "pytest.xml")
        command = [sys.executable, "-m", "pytest", "-q", "--durations=10", f"--junit-xml={output}"]
        command += ["-n", str(jobs), "--dist", "worksteal"] if jobs > 1 else []
        command += [f"--timeout={SLOW_SECONDS}"] if arguments.all else ["-m", "not slow"]
        command += [f"--budget={arguments.budget}"] if arguments.budget is not None else []
        if count > 1:
            command += ["-p", shards.__name__, f"--shard={number}/{count}"]
        python = [path for path in arguments.paths if Path(path).suffix != ".mlir"]
        if not python:
            return Tally()
        done = subprocess.run([*command, *python], check=False)
        return _read_junit(output, done.returncode)


def _read_junit(output: Path, status: int) -> Tally:
    """Counts of a pytest run; an exit status that the counts do not explain is one more
    failure."""
    tally = Tally()
    if status == 5:  # no test collected below these folders
        return tally
    try:
        cases = list(ElementTree.parse(output).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        print("pytest ended without a result")
        return Tally(failed=1)
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            tally.failed += 1
        elif (skipped := case.find("skipped")) is not None:
            name = f"{case.get('classname')}.{case.get('name')}"
            tally.skipped.append((name, skipped.get("message") or "no reason given"))
        else:
            tally.passed += 1
    if status != 0 and tally.failed == 0:
        print(f"pytest ended with status {status}")
        tally.failed += 1
    return tally


if __name__ == "__main__":
    sys.exit(main())
