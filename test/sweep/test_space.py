"""Combinations of options, from their text."""

from __future__ import annotations

import pytest

from tcir.errors import InputError
from tcir.sweep.schedules import schedules
from tcir.sweep.space import Combination, combinations


def test_every_combination_once_and_in_order() -> None:
    found = combinations("gemm{store=tma}", "n-tile=64,128 stages=2..4")
    assert [str(each) for each in found] == [
        f"gemm{{store=tma n-tile={n} stages={stages}}}" for n in (64, 128) for stages in (2, 3, 4)
    ]


def test_a_range_has_its_ends_and_a_step() -> None:
    found = combinations("gemm", "n_tile=16..100:32,256")
    assert [dict(each.options)["n-tile"] for each in found] == ["16", "48", "80", "256"]


def test_a_pipeline_by_its_other_name_is_the_same_combination() -> None:
    assert Combination.parse("matmul{stages=3}") == Combination.parse("gemm{stages=3}")


@pytest.mark.parametrize(
    ("pipeline", "over", "words"),
    [
        ("gemm", "", "expected NAME=VALUE,VALUE"),
        ("gemm", "stages", "got 'stages'"),
        ("gemm", "stages=2,,3", "expected a value between commas, got stages=2,,3"),
        ("gemm", "stages=6..2", "expected FIRST..LAST:STEP with FIRST at most LAST"),
        ("gemm", "stages=2..6:0", "STEP at least 1, got stages=2..6:0"),
        ("gemm", "stages=2 stages=3", "expected stages once, got it twice"),
        ("gemm", "stages=2,2", "expected each value once, got stages=2 twice"),
        ("gemm{stages=2}", "stages=2..3", "got it also in --pipeline=gemm{stages=2}"),
        ("gemm", "n-tlie=64", "did you mean 'n-tile'"),
        ("gemm", "n-tile=wide", "expected int, got 'wide'"),
        ("gem", "n-tile=64", "unknown pipeline 'gem'"),
        ("gemm", "stages=0..999999999999", "expected at most 100000 values"),
        ("gemm", "n-tile=1..1000 stages=1..101", "at most 100000 combinations, got 101000"),
    ],
)
def test_what_is_no_sweep_is_refused_by_name(pipeline: str, over: str, words: str) -> None:
    with pytest.raises(InputError) as told:
        combinations(pipeline, over)
    assert words in str(told.value)


def test_schedules_to_compare_exist() -> None:
    assert len({str(each) for each in schedules()}) > 20
