"""Asynchronous operations in flight, and what a blocked agent waits for."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

from tcir.machine.order.clocks import Access


@dataclass(eq=False)
class Operation:
    """An asynchronous operation in flight: it may complete once everything in ``after`` has.

    What has completed is dropped from the end of ``after``.
    """

    site: object
    run: Callable[[], None]
    after: tuple[Operation, ...] = ()
    access: Access | None = None
    """How a tensor-core operation is recorded, for the order of its pipe; None for the others."""
    done: bool = False

    @property
    def ready(self) -> bool:
        """Whether it may complete now."""
        while self.after:
            if not self.after[-1].done:
                return False
            self.after = self.after[:-1]
        return True


class Waiting:
    """What a blocked agent waits for: it can run again once ``ready()``."""

    def __init__(self, ready: Callable[[], bool], describe: Callable[[], str]) -> None:
        self.ready, self.describe = ready, describe


Blocking = Generator[Waiting | None, None, None]
"""An instruction that may block, used as ``yield from``; None: it gives way and is runnable."""
