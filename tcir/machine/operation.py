"""Asynchronous operations in flight, and the named barriers of a CTA."""

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
    tag: Any = None
    """Kind and target of a tensor-core operation, for the order of its pipe."""
    done: bool = False

    @property
    def ready(self) -> bool:
        """Whether it may complete now."""
        return all(o.done for o in self.after)


@dataclass(eq=False)
class NamedBarrier:
    """One of the 16 barriers of bar.sync: who has arrived, and what they observed."""

    arrived: int = 0
    generation: int = 0
    clock: dict[Any, int] = field(default_factory=dict)
    released: dict[Any, int] = field(default_factory=dict)
