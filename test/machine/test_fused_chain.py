"""Consecutive mma on one accumulator, against exact integer arithmetic, one dot product at a
time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.machine.numerics.fused import DEFAULT
from tcir.machine.numerics.fused_chain import add_in_steps
from tcir.machine.numerics.types import MmaTypes

from .test_numerics import fused, term

CTAS, M, N, STEPS, COLUMN = 2, 5, 3, 3, 7
LANES = 3 + 5 * np.arange(M)
WORDS = {"f16": np.uint16, "bf16": np.uint16, "e4m3": np.uint8, "e5m2": np.uint8}


def _codes(draw: Any, name: str, special: bool, *shape: int) -> Any:
    """Codes of any numbers; unless `special`, without the largest exponents."""
    bits = 8 * np.dtype(WORDS[name]).itemsize
    codes = draw.integers(0, 1 << bits, shape)
    if not special:
        codes &= ~(1 << bits - 2)
    return codes.astype(WORDS[name])


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("one_b", [True, False])
@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize("depth", [6, 16])
@pytest.mark.parametrize("name", WORDS)
def test_each_step_is_a_sum_of_its_own(
    name: str, depth: int, adds: bool, one_b: bool, special: bool
) -> None:
    draw = np.random.default_rng(depth + adds)
    a = _codes(draw, name, special, CTAS, M, STEPS * depth)
    b = _codes(draw, name, special, 1 if one_b else CTAS, N, STEPS * depth)
    words = draw.standard_normal((CTAS, 32, 16)).astype(np.float32).view(np.uint32)
    expected = words.copy()
    for c, m, n in np.ndindex(CTAS, M, N):
        place = c, LANES[m], COLUMN + n
        d = term(int(words[place]), "f32") if adds else None
        rows = a[c, m].tolist(), b[0 if one_b else c, n].tolist()
        for k in range(0, STEPS * depth, depth):
            own = ([term(code, name) for code in row[k : k + depth]] for row in rows)
            expected[place] = fused(*own, d, "f32", DEFAULT.window)
            d = term(int(expected[place]), "f32")
    types = MmaTypes(name, name)
    steps = (x.reshape(*x.shape[:2], STEPS, depth) for x in (a, b))
    assert add_in_steps(*steps, words, LANES, COLUMN, types, DEFAULT, adds)
    np.testing.assert_array_equal(words, expected)


def test_a_negated_operand() -> None:
    draw = np.random.default_rng(0)
    a, b = (_codes(draw, "f16", False, CTAS, n, 2, 16) for n in (M, N))
    found = []
    for codes, types in (
        (a ^ np.uint16(1 << 15), MmaTypes("f16", "f16")),
        (a, MmaTypes("f16", "f16", negate_a=True)),
    ):
        found.append(np.zeros((CTAS, 32, 16), np.uint32))
        assert add_in_steps(codes, b, found[-1], LANES, COLUMN, types, DEFAULT, False)
    np.testing.assert_array_equal(*found)
    assert found[0].any()


@pytest.mark.parametrize("name", ["tf32", "e2m3"])
def test_formats_that_do_not_fill_their_words(name: str) -> None:
    word = np.uint32 if name == "tf32" else np.uint8
    a, b, d = (
        np.zeros((1, M, 1, 8), word),
        np.zeros((1, N, 1, 8), word),
        np.ones((1, 32, 16), np.uint32),
    )
    assert not add_in_steps(a, b, d, LANES, COLUMN, MmaTypes(name, name), DEFAULT, True)
    assert (d == 1).all()
