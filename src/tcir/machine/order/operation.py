"""Asynchronous operations in flight, and the conditions that blocked agents wait for."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import NamedTuple

from tcir.machine.order.clocks import Access
from tcir.machine.order.mbarrier import Mbarrier


@dataclass(eq=False)
class AsyncOperation:
    """An asynchronous operation in flight. It may complete once all operations in ``after`` have
    completed.

    Operations that have completed are dropped from the end of ``after``.
    """

    site: object
    run: Callable[[], None]
    after: tuple[AsyncOperation, ...] = ()
    access: Access | None = None
    """How a tensor-core operation is recorded, for the order of its pipe; None for the others."""
    done: bool = False

    @property
    def ready(self) -> bool:
        """Whether the operation may complete now."""
        while self.after:
            if not self.after[-1].done:
                return False
            self.after = self.after[:-1]
        return True


class Waiting:
    """The wait of a blocked agent; the agent can run again once ``ready()`` is true.

    barrier: the awaited mbarrier, if there is one; gives_up: whether the agent continues after a
        while even if the condition does not hold, so that it cannot deadlock
    """

    def __init__(
        self,
        ready: Callable[[], bool],
        describe: Callable[[], str],
        barrier: Mbarrier | None = None,
        gives_up: bool = False,
    ) -> None:
        self.ready, self.describe, self.barrier = ready, describe, barrier
        self.gives_up = gives_up


class Pending(NamedTuple):
    """A condition that lanes of an agent wait for. lanes: mask of the lanes; 0: all lanes."""

    lanes: int
    text: str
    barrier: Mbarrier | None = None

    @property
    def rank(self) -> int:
        """Rank of the wait among the possible causes of a deadlock: waits for bytes that do not
        arrive come first, then waits of a single lane (usually the one that issues operations),
        then waits for other mbarriers.
        """
        if self.barrier is None:
            return 3
        if self.barrier.tx and not self.barrier.pending:
            return 0
        return 1 if self.lanes and not self.lanes & (self.lanes - 1) else 2


Blocking = Generator[Waiting | None, None, None]
"""An instruction that may block, used as ``yield from``; None: it gives way and is runnable."""
