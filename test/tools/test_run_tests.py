"""The test runner adds up what lit and pytest say, and fails when either did not end well."""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tcir.tools.dev.run_tests import SLOW_SECONDS, Tally, _read_junit, _read_lit
from tcir.tools.dev.shards import shard

GOOD = "def test_good(): pass\n"
BAD = "def test_bad(): assert False\n"
SKIPPED = "import pytest\n@pytest.mark.skip(reason='not today')\ndef test_skipped(): pass\n"
BROKEN = "import no_such_module\n"
CRASH = "import os\ndef test_crash(): os._exit(1)\n"


def run(folder: Path, *sources: str, words: Sequence[str] = ()) -> tuple[int, list[str]]:
    for number, source in enumerate(sources):
        (folder / f"test_{number}.py").write_text(source)
    command = [sys.executable, "-m", "tcir.tools.dev.run_tests", "-j1", *words, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("sources", "status", "last"),
    [
        ((GOOD, SKIPPED), 0, "1 passed, 0 failed"),
        ((GOOD, BAD), 1, "1 passed, 1 failed"),
        ((CRASH,), 1, "0 passed, 1 failed"),
        ((BROKEN,), 1, "0 passed, 1 failed"),
        ((), 1, "0 passed, 0 failed"),
        ((SKIPPED,), 1, "0 passed, 0 failed"),
    ],
)
def test_pytest(tmp_path: Path, sources: tuple[str, ...], status: int, last: str) -> None:
    code, lines = run(tmp_path, *sources)
    assert lines[-1] == last
    assert code == status
    if SKIPPED in sources:
        assert any(line.endswith("test_skipped: not today") for line in lines)


@pytest.mark.parametrize(
    ("regex", "status", "last"),
    [("today", 0, "1 passed, 0 failed"), ("GPU", 1, "1 passed, 1 failed")],
)
def test_skips_for_other_reasons(tmp_path: Path, regex: str, status: int, last: str) -> None:
    code, lines = run(tmp_path, GOOD, SKIPPED, words=["--only-skips", regex])
    assert (code, lines[-1]) == (status, last)


def test_the_report_is_kept(tmp_path: Path) -> None:
    code, _ = run(tmp_path, GOOD, words=["--junit", str(tmp_path / "new" / "all.xml")])
    assert code == 0 and 'name="test_good"' in (tmp_path / "new" / "all.xml").read_text()


def test_shards_have_each_test_once(tmp_path: Path) -> None:
    many = "import pytest\n@pytest.mark.parametrize('n', range(40))\ndef test_it(n): pass\n"
    counts = []
    for part in ("1/3", "2/3", "3/3"):
        code, lines = run(tmp_path, many, words=["--shard", part])
        assert code == 0
        counts.append(int(lines[-1].split()[0]))
    assert sum(counts) == 40 and min(counts) > 5


@pytest.mark.parametrize("text", ["0/8", "9/8", "8", "1/0", "-1/8"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="1 <= I <= N"):
        shard(text)


@pytest.mark.parametrize(
    ("words", "chosen", "orders"), [([], "5", 2), (["--all"], None, 3), (["--all"], "5", 5)]
)
def test_completion_orders(
    tmp_path: Path,
    words: list[str],
    chosen: str | None,
    orders: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The end-to-end tests get three or `TCIR_ORDERS` of them in `make test-all`, two in
    `make test`."""
    monkeypatch.delenv("TCIR_ORDERS", raising=False)
    if chosen is not None:
        monkeypatch.setenv("TCIR_ORDERS", chosen)
    shared = Path(__file__).parents[1] / "endtoend" / "conftest.py"
    (tmp_path / "conftest.py").write_text(shared.read_text())
    code, lines = run(
        tmp_path, f"def test_orders(orders): assert orders == {orders}\n", words=words
    )
    assert (code, lines[-1]) == (0, "1 passed, 0 failed")


@pytest.mark.parametrize("words", [(), ("--all",)])
def test_time_limit(tmp_path: Path, words: tuple[str, ...]) -> None:
    """`make test-all` does not give up a slow test after the 300 s of the others."""
    limit = SLOW_SECONDS if words else None
    source = "def test(pytestconfig): assert pytestconfig.getoption('timeout') == "
    code, lines = run(tmp_path, f"{source}{limit}\n", words=words)
    assert (code, lines[-1]) == (0, "1 passed, 0 failed")


def test_lit_results(tmp_path: Path) -> None:
    path = tmp_path / "lit.json"
    codes = ["PASS", "XFAIL", "FAIL", "XPASS", "UNRESOLVED", "TIMEOUT", "UNSUPPORTED"]
    tests = [{"code": code, "name": code, "output": "requires ptxas"} for code in codes]
    path.write_text(json.dumps({"tests": tests}))
    assert _read_lit(path) == Tally(2, 4, [("UNSUPPORTED", "requires ptxas")])


def test_no_result_is_a_failure(tmp_path: Path) -> None:
    assert _read_lit(tmp_path / "none").failed == 1
    assert _read_junit(tmp_path / "none", 3).failed == 1
    (tmp_path / "x.xml").write_text("<testsuites><testsuite/></testsuites>")
    assert _read_junit(tmp_path / "x.xml", 2).failed == 1
