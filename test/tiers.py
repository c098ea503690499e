"""Which cases `make test` runs, and which only `make test-all`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def tiers(cases: Iterable[Any], quick: int = 1) -> list[Any]:
    """Parameters, of which all but the first `quick` are slow; a tuple has one for each name."""
    return [
        case if n < quick else slow(*(case if isinstance(case, tuple) else (case,)))
        for n, case in enumerate(cases)
    ]


def slow_but(quick: Collection[Any], cases: Iterable[Any]) -> list[Any]:
    """Parameters of one name each, of which all but those in `quick` are slow."""
    return [case if case in quick else slow(case) for case in cases]


def slow(*values: Any) -> Any:
    """A parameter of `make test-all` alone."""
    return pytest.param(*values, marks=pytest.mark.slow)
