"""Delta debugging (Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def ddmin(items: Sequence[Item], fails: Callable[[list[Item]], bool]) -> list[Item]:
    """Returns a subsequence of `items` that fails, and from which no single item can be removed.

    fails: whether a subsequence fails; `items` itself must fail

    The search tries to remove all items, then halves, then smaller pieces. It begins with the last
    piece, because later parts of a program use earlier parts.
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
