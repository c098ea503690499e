"""300 modules at random, run from PTX beside numpy; and what is refused, by reason."""

from __future__ import annotations

import re

import pytest

from .random_modules import SEEDS, beyond, module

REASONS = (
    # a convolution and a product in one function
    r"expected a function of one tc\.(conv2d|matmul) and func\.return, got tc\.",
    # two types; i32
    r"expected both inputs to be of one type out of f16, bf16, f32, f8E4M3FN, f8E5M2, i8, or both",
    # no scales
    r"expected exactly one contraction of block-scaled operands",
)


@pytest.mark.parametrize(
    "seed",
    range(SEEDS),
)
def test_module(seed: int) -> None:
    found = module(seed).run()
    assert found in ("equal", "within bound"), found


@pytest.mark.parametrize("seed", range(24))
def test_refused_or_right(seed: int) -> None:
    """At its line, for a reason that is known."""
    found = beyond(seed).run()
    if found not in ("equal", "within bound"):
        assert re.match(r"refused: <text>:\d+:\d+: ", found), found
        assert any(re.search(words, found) for words in REASONS), found


def test_the_same_seed_is_the_same_module() -> None:
    first, again = (module(7) for _ in range(2))
    assert first.program.text(*first.results) == again.program.text(*again.results)
    for one, other in zip(first.program.arrays, again.program.arrays, strict=True):
        assert one.tobytes() == other.tobytes()
    texts = {m.program.text(*m.results) for m in map(module, range(40))}
    assert len(texts) == 40
