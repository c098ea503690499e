"""Combinations of what kernels are chosen by: every pair of values, and random ones.

TCIR_SEED=N takes the hundred random cases of another run: seeds from 100 N on.
"""

from __future__ import annotations

import os
import re
from itertools import combinations, product
from random import Random

import pytest

from .axes import AXES, Chosen, Pair, drawn, pairs

COVERING, EXCLUDED = pairs()
SEED = 100 * int(os.environ.get("TCIR_SEED", 0))


def check(case: Chosen, seed: int) -> None:
    """Equal to numpy and after every pass, or rejected for the reason that `legal` has."""
    found = case.run(seed, every_pass=True)
    if case.refusal:
        assert re.search(case.refusal, found), f"expected {case.refusal!r}, got {found}"
    else:
        assert found in ("equal", "within bound"), found


@pytest.mark.parametrize(("seed", "case"), list(enumerate(COVERING)), ids=str)
def test_every_pair(seed: int, case: Chosen) -> None:
    check(case, seed)


def test_the_cases_have_every_pair() -> None:
    """But those of which each case is rejected."""
    covered = {pair for case in COVERING for pair in case.pairs}
    for one, other in combinations(AXES, 2):
        for value, partner in product(AXES[one], AXES[other]):
            pair = (one, value), (other, partner)
            assert (pair in covered) != (pair in EXCLUDED), pair


@pytest.mark.parametrize("pair", EXCLUDED, ids=str)
def test_what_no_kernel_combines(pair: Pair) -> None:
    """With the defaults of the other axes."""
    case = Chosen(**{name: values[0] for name, values in AXES.items()} | dict(pair))
    assert case.refusal
    check(case, 0)


@pytest.mark.parametrize("seed", range(SEED, SEED + 100))
def test_random_cases(seed: int) -> None:
    check(drawn(Random(seed)), seed)
