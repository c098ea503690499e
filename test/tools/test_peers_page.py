"""docs/reference/peers.md and peers-calls.md below their marks: what `python -m peers.run --write`
writes."""

from __future__ import annotations

import collections
import re
from pathlib import Path

import pytest

from peers import page, run
from peers.case import CASES
from peers.outcome import Outcome, Run
from peers.sources import SOURCES
from peers.true_findings import TRUE_FINDINGS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "peers.md"
PROSE, MARK, WRITTEN = PAGE.read_text(encoding="utf-8").partition(page.MARK)
CALLS = PAGE.with_name("peers-calls.md").read_text(encoding="utf-8").partition(page.MARK)[2]
RECORDED = {name: each for name, each in SOURCES.items() if not each.package}
LIBRARIES = {name: each for name, each in SOURCES.items() if each.package}


def outcome(source: str, name: str, verdict: str = "ok", values: str = "exact") -> Outcome:
    kinds = collections.Counter(
        {verdict.replace("error: ", "error "): 2} if "error" in verdict else {}
    )
    ran = Run(values, verdict, "because", kinds, 10, "report")
    seeds = dict.fromkeys(range(1, 6), ran)
    return Outcome(name, source, ran, seeds, {"isa": ran})


def rows(text: str) -> list[list[str]]:
    """Of the tables in a text, without their heads."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    rules = [n for n, line in enumerate(lines) if set("".join(line)) <= set("- |")]
    return [line for n, line in enumerate(lines) if n not in rules and n + 1 not in rules]


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^### (.*)\n", text, flags=re.M)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))


def test_the_page_is_about_the_cases_there_are() -> None:
    assert MARK
    written = sections(WRITTEN)
    kernels = {
        title: [row[0] for row in rows(text)]
        for title, text in written.items()
        if title in {s.title for s in SOURCES.values()}
    }
    want = {s.title: [c.name for c in CASES if c.compiler == n] for n, s in RECORDED.items()}
    assert kernels == want


def test_the_tables_say_what_the_last_line_counts() -> None:
    """Kernels, right values, no error as issued, nor under any seed: a row for each source."""
    table = [[int(n) for n in row[2:]] for row in rows(sections(WRITTEN)[""])]
    *sources, libraries = table
    others = [row for row, s in zip(sources, RECORDED.values(), strict=True) if not s.ours]
    ours = [row for row, s in zip(sources, RECORDED.values(), strict=True) if s.ours]
    assert [sum(column) for column in zip(*others, strict=True)] == libraries
    total = [sum(column) for column in zip(*ours, strict=True)]
    last = [int(n) for n in re.findall(r"\d+", WRITTEN.rstrip().splitlines()[-1])]
    assert last[:5] == [libraries[0], len(others), libraries[3], total[0], total[3]]
    assert libraries[3] >= 60 and len(others) >= 5, "what the page is to show"


def test_the_tables_of_calls_say_what_the_last_line_counts() -> None:
    *sources, libraries = [[int(n) for n in row[2:]] for row in rows(sections(CALLS)[""])]
    assert [sum(column) for column in zip(*sources, strict=True)] == libraries
    listed = [row for each in LIBRARIES.values() for row in rows(sections(CALLS)[each.title])]
    calls = [row for row in listed if page.NOT_RUN not in row]
    last = [int(n) for n in re.findall(r"\d+", CALLS.rstrip().splitlines()[-1])]
    assert last[:4] == [libraries[0], len(LIBRARIES), len(calls), libraries[3]]
    assert libraries[3] >= 300, "what the page is to show"


def test_a_kernel_counts_once_and_only_if_all_its_calls_are_right() -> None:
    def called(name: str, kernels: list[str], values: str = "exact") -> Outcome:
        found = outcome("liger", name, values=values)
        found.kernels = kernels
        return found

    right = called("softmax", ["a 1", "b 2"])
    wrong = called("dyt", ["b 2", "c 3"], "1 of 2 differ")
    assert page.counts([right, wrong]) == (3, 1, 1, 1)
    assert page.counts([right, right]) == (2, 2, 2, 2)
    assert page.count_line([right, wrong]).startswith("3 kernels of 1 libraries in 2 calls, 1 of")


def test_a_call_that_its_library_ends_is_listed_apart_and_is_no_failure() -> None:
    ended = Outcome("jsd", "liger", Run("–", "not started", "ValueError: no"))
    assert page.library(ended) and not page.failure(ended)
    assert "### Not started" in page.generated([ended], PAGE.parent)
    refused = Outcome("jsd", "liger", Run("–", "refused", "expected …"))
    assert page.failure(refused)
    assert "failing: 1, refused: 1, not started: 0" in page.count_line([refused])


def test_a_true_finding_is_listed_and_does_not_count() -> None:
    (source, name), ((code, *_), why) = next(iter(TRUE_FINDINGS.items()))
    found = outcome(source, name, f"error: {code}")
    assert page.expected(found) == why
    assert not found.good
    assert "0 of them right" in page.count_line([found])
    assert "true findings: 1, failing: 0" in page.count_line([found])
    text = page.generated([found], PAGE.parent)
    assert "### True findings" in text and why in text and "### Failing" not in text


@pytest.mark.parametrize(
    ("verdict", "values"),
    [("error: deadlock", "–"), ("error: race", "3 of 4 differ"), ("ok", "3 differ")],
)
def test_another_error_or_a_wrong_value_of_such_a_kernel_fails(verdict: str, values: str) -> None:
    wrong = outcome("jax", "ragged_dot_f16_pair", verdict, values)
    assert not page.expected(wrong)
    assert "failing: 1" in page.count_line([wrong])
    assert "### Failing" in page.generated([wrong], PAGE.parent)


def test_a_true_finding_that_is_no_longer_found_counts() -> None:
    fixed = outcome(*next(iter(TRUE_FINDINGS)))
    assert fixed.good
    assert not page.expected(fixed)


def test_a_kernel_that_was_not_run_is_listed_and_counts_nowhere() -> None:
    left = page.left_out(CASES[0].name, CASES[0].compiler)
    text = page.generated([left, outcome("jax", "matmul_f16")], PAGE.parent)
    assert "| not run |" in text and "### Failing" not in text
    assert text.rstrip().endswith("failing: 0; not run: 1.")
    assert page.count_line([left]).startswith("0 kernels of 0 libraries")


def test_what_is_missing_is_skipped_with_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the page stays: it is about all sources."""
    written = tmp_path / "peers.md"
    written.write_text(PROSE + MARK)
    arguments = ["--source", "jax", "--reuse", str(tmp_path / "none"), "--write", str(tmp_path)]
    assert run.main(arguments) == 2
    said = capsys.readouterr().out
    assert "skipped: JAX Mosaic GPU: nothing of it in" in said
    assert said.splitlines()[-1].endswith("sources skipped: 1")
    assert written.read_text() == PROSE + MARK


def test_every_source_names_what_installs_it() -> None:
    assert all("pip install" in source.install for source in SOURCES.values())
    recorded = {each for each in TRUE_FINDINGS if each[0] in RECORDED}
    assert recorded <= {(c.compiler, c.name) for c in CASES}
