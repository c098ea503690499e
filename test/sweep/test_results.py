"""The file of results: whole lines, resumed, never another's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcir.errors import InputError
from tcir.sweep.results import results_in
from tcir.sweep.work import SweepRow

from .programs import jobs

ROW = SweepRow("gemm{stages=2}", microseconds=1.5, bound="l2", registers=32)
FIRST, SECOND, THIRD = jobs(3)


def test_rows_come_back(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with results_in(path) as results:
        results.keep(FIRST, ROW)
        results.keep(SECOND, SweepRow("b", "not legal", "expected less"))
    with results_in(path) as results:
        assert results.find(FIRST) == ROW
        assert results.find(SECOND) == SweepRow("b", "not legal", "expected less")
        assert results.find(THIRD) is None


def test_what_failed_is_done_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with results_in(path) as results:
        results.keep(FIRST, SweepRow("a", "failed", "a worker died"))
        assert results.find(FIRST) is None
        results.keep(FIRST, ROW)
    with results_in(path) as results:
        assert results.find(FIRST) == ROW


def test_the_rest_of_a_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with results_in(path) as results:
        results.keep(FIRST, ROW)
        results.keep(SECOND, ROW)
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    with results_in(path) as results:
        assert results.find(FIRST) == ROW
        assert results.find(SECOND) is None
        results.keep(SECOND, ROW)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("text", ["hello\n", '{"schema": "other/1"}\n', "[]\n", "\xff\n"])
def test_another_file_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text, encoding="latin-1")
    refused = pytest.raises(InputError, match=r"notes.txt:1: expected a line of tcir.sweep/1")
    with refused, results_in(path):
        pass
    assert path.read_text(encoding="latin-1") == text


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    refused = pytest.raises(InputError, match="another tc-bench is writing")
    with results_in(path), refused, results_in(path):
        pass


@pytest.mark.parametrize("place", ["/dev/null", "nowhere/rows.jsonl"])
def test_a_place_for_no_file_is_refused(place: str) -> None:
    with pytest.raises(InputError, match="cannot write"), results_in(place):
        pass
