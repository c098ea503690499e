"""The validation of the time model: what is fit fits, what is missed is explained."""

from __future__ import annotations

import pytest

from tcir.time import Constants
from tcir.time.rows import HELD_THOR, ROWS, Row
from tcir.time.validate import (
    PredictedTime,
    Summary,
    groups,
    inversions,
    rank_correlation,
    validate,
)


@pytest.fixture(scope="module")
def outcomes() -> list[PredictedTime]:
    return validate()


def test_every_miss_is_explained(outcomes: list[PredictedTime]) -> None:
    assert not [o.row.name for o in outcomes if o.missed and not o.row.why]


def test_rows_that_fixed_constants(outcomes: list[PredictedTime]) -> None:
    fit = [o for o in outcomes if o.row.fit]
    assert Summary.of(fit).median < 0.02
    assert Summary.of([o for o in fit if o.row.group.startswith("mma")]).maximum < 0.12


def test_what_is_held_out_is_as_the_page_says(outcomes: list[PredictedTime]) -> None:
    held = [o for o in outcomes if not o.row.fit]
    small = Summary.of([o for o in held if not o.whole_kernel])
    whole = Summary.of([o for o in held if o.whole_kernel])
    assert (small.rows, whole.rows) == (23, 20)
    assert small.median < 0.15 and small.maximum < 0.36
    assert whole.median < 0.40 and whole.maximum < 0.64


def test_orderings_of_the_ladders(outcomes: list[PredictedTime]) -> None:
    ladders = {g: m for g, m in groups(outcomes).items() if g.startswith("ladder")}
    assert len(ladders) == 3
    wrong = {pair for members in ladders.values() for pair in inversions(members)}
    assert not wrong
    for members in ladders.values():
        assert rank_correlation(*zip(*((o.row.measured, o.predicted) for o in members))) > 0.95


def test_a_chip_with_its_own_round_trip_is_predicted_from_one_row() -> None:
    """The k sweep of the Thor, with the latency of its single mma."""
    results = validate(Constants("sm_100a", {"mma-latency": "th"}), HELD_THOR)
    sweep = groups(results)["TH: k mma, then one wait"]
    assert Summary.of(sweep).median < 0.03 and Summary.of(sweep).maximum < 0.08


def test_constants_do_not_depend_on_whole_kernels() -> None:
    """No source of a constant is one of the ladders or end points."""
    from tcir.time import CONSTANTS

    sources = [f.source for c in CONSTANTS.values() for t in c.figures.values() for f in t.values()]
    for name in ("gau-nernst", "cuBLAS bf16", "CuTe DSL", "Mosaic"):
        assert not [s for s in sources if name in s]
    assert not [r for r in ROWS if r.fit and r.group.startswith(("ladder", "end points"))]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 40]),
        ([1, 2, 3, 4], [40, 30, 20, 10]),
        ([1, 2, 2, 4, 7], [3, 1, 5, 5, 9]),
    ],
)
def test_rank_correlation_is_spearmans(left: list[float], right: list[float]) -> None:
    from scipy.stats import spearmanr  # a second of imports, which every run would pay

    assert rank_correlation(left, right) == pytest.approx(spearmanr(left, right).statistic)


def test_inversions_do_not_count_ties() -> None:
    rows = [
        PredictedTime(Row("g", name, want, "", lambda c: 0.0), predicted)
        for name, want, predicted in (("a", 1, 5), ("b", 2, 5), ("c", 3, 4))
    ]
    assert inversions(rows) == [("a", "c"), ("b", "c")]
