"""Delta debugging (Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def ddmin(items: Sequence[Item], fails: Callable[[list[Item]], bool]) -> list[Item]:
    """A part of `items`, in their order, that fails, and of which no single item can be left out.

    fails: whether a part does; all of them do. Halves are left out first, then smaller pieces, the
    last ones first: in programs what comes later uses what comes before.
    """
    kept, size = list(items), len(items)
    while size:
        before = len(kept)
        for end in range(len(kept), 0, -size):
            rest = kept[: max(end - size, 0)] + kept[end:]
            if fails(rest):
                kept = rest
        if size > 1 or len(kept) == before:
            size //= 2
    return kept
