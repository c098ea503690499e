"""Asynchronous operations in flight, and the rounds of a CTA's named barriers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Operation:
    """An asynchronous operation in flight: it may complete once everything in ``after`` has."""

    site: Any
    run: Callable[[], None]
    after: tuple[Operation, ...] = ()
    access: Any = None
    """Of a tensor-core operation: how it is recorded, for the order of its pipe. None of others."""
    done: bool = False

    @property
    def ready(self) -> bool:
        """Whether it may complete now."""
        return all(o.done for o in self.after)


@dataclass(eq=False)
class Round:
    """One use of a named barrier (bar.sync): who has arrived so far, and what they observed."""

    threads: int | None
    """How many are expected; None: all that still run."""
    arrived: int = 0
    done: bool = False
    clock: dict[Any, int] = field(default_factory=dict)
