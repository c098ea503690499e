"""300 modules at random, run from PTX beside numpy; what is refused, is for a reason of a list."""

from __future__ import annotations

import re

import pytest

from .computed import reason_of
from .random_modules import SEEDS, module

REASONS = {
    "NCHW convolutions in a row, or with several tensors behind one": (
        r"expected the result channels last, \(n, p, q, k\), got these as its dimensions"
    ),
}
"""What stands for the refusal in its words."""
QUICK = range(2)


@pytest.mark.parametrize(
    "seed",
    [pytest.param(s, marks=() if s in QUICK else pytest.mark.slow) for s in range(SEEDS)],
)
def test_module(seed: int) -> None:
    found = module(seed).run()
    if found in ("equal", "within bound"):
        return
    assert found.startswith("refused: "), found
    assert re.search(r"<text>:\d+:\d+: ", found), "without a place"
    assert any(re.search(words, found) for words in REASONS.values()), reason_of(found)


def test_the_same_seed_is_the_same_module() -> None:
    first, again = (module(7) for _ in range(2))
    assert first.program.text(*first.results) == again.program.text(*again.results)
    for one, other in zip(first.program.arrays, again.program.arrays, strict=True):
        assert one.tobytes() == other.tobytes()
    texts = {m.program.text(*m.results) for m in map(module, range(40))}
    assert len(texts) == 40
