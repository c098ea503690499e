"""The planner against a definition of its own: what is in use together shares no byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcir.errors import InputError
from tcir.passes.module.plan_workspaces import Lifetime, plan
from tcir.program.workspaces import ALIGNMENT, Workspaces, aligned

LAUNCHES = 12
LIVES = st.tuples(st.integers(0, LAUNCHES - 1), st.integers(0, LAUNCHES - 1)).map(
    lambda pair: (min(pair), max(pair))
)
TENSORS = st.lists(st.tuples(st.integers(0, 3000), LIVES), min_size=1, max_size=15)


def used(lives: list[Lifetime]) -> list[tuple[str, list[int]]]:
    """Launches that use each workspace at both ends of its life."""
    return [
        (f"f_{place}", [n for n, life in enumerate(lives) if place in life])
        for place in range(LAUNCHES)
    ]


@given(TENSORS)
def test_no_byte_is_two_tensors(tensors: list[tuple[int, Lifetime]]) -> None:
    """Executed: each launch stamps what it writes, and finds the stamps of what it reads."""
    sizes, lives = [size for size, _ in tensors], [life for _, life in tensors]
    planned = Workspaces(tuple(sizes), tuple(plan(sizes, lives)))
    planned.check(used(lives), 0)
    memory = np.zeros(planned.arena, np.int64)
    for place in range(LAUNCHES):
        spans = [slice(o, o + size) for o, size in zip(planned.offsets, sizes)]
        for number, (begin, _) in enumerate(lives):
            if begin == place:
                memory[spans[number]] = number + 1
        for number, (begin, end) in enumerate(lives):
            if begin <= place <= end:
                assert (memory[spans[number]] == number + 1).all()
    most = max(
        sum(size for size, (begin, end) in tensors if begin <= place <= end)
        for place in range(LAUNCHES)
    )
    assert most <= planned.arena <= sum(map(aligned, sizes))


@given(TENSORS, st.data())
def test_two_tensors_in_a_byte_are_refused(
    tensors: list[tuple[int, Lifetime]], data: st.DataObject
) -> None:
    """Any two in use together, one of them moved into the other."""
    sizes, lives = [size + 1 for size, _ in tensors], [life for _, life in tensors]
    pairs = [
        (one, other)
        for one, (a, b) in enumerate(lives)
        for other, (c, d) in enumerate(lives)
        if one != other and a <= d and c <= b
    ]
    if not pairs:
        return
    one, other = data.draw(st.sampled_from(pairs))
    offsets = plan(sizes, lives)
    offsets[one] = offsets[other]
    with pytest.raises(InputError, match=r"tc\.workspace_offsets.*run plan-workspaces again"):
        Workspaces(tuple(sizes), tuple(offsets)).check(used(lives), 0)


@pytest.mark.parametrize(
    ("offsets", "got"),
    [((0,), r"got 1: \[0\]"), ((0, 128), "got 128"), ((0, -ALIGNMENT), f"got -{ALIGNMENT}")],
)
def test_places_that_no_workspace_has(offsets: tuple[int, ...], got: str) -> None:
    with pytest.raises(InputError, match=got):
        Workspaces((100, 100), offsets)


def test_the_last_reader_may_not_write_there() -> None:
    """In place: a launch reads one and writes the other."""
    shared = Workspaces((512, 512), (0, 256))
    with pytest.raises(InputError, match="@g: workspace 3, which it writes, must not share memory"):
        shared.check([("f", [0, 2]), ("g", [2, 3]), ("h", [3, 1])], 2)
    shared.check([("f", [0, 2]), ("g", [2, 1]), ("h", [0, 3]), ("i", [3, 4])], 2)
