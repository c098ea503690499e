"""The order in which the agents of a cluster take turns and its operations in flight complete.

A correct program gives one result under every order. ``order_seed`` selects an order. Its remainder
modulo 6 decides which operations complete early or late, so that a few consecutive seeds cover the
extremes and not only averages:

| seed modulo 6 | operations                                                          |
| None          | in the order of issue, each before any agent continues              |
| 0, 2, 4       | at any time: each step is drawn from all that could happen          |
| 1             | all as late as possible                                             |
| 3             | those of the tensor core at once, copies (TMA, bulk, cp.async) late |
| 5             | copies at once, those of the tensor core late                       |

"Late" means: when every agent has ended, is blocked, or has polled `HOLD` times in a row without
success, but at the latest after `LONGEST` turns of agents. Late completion exposes a wait that
gives up, and a program that relies on a delay that is usually long enough.

Under an order with late operations, a thread's first test of each phase of an mbarrier returns
false, unless the thread knows that the phase is complete. This exposes a wait that tests only once.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tcir.machine.engine.agent import Agent
from tcir.machine.order.operation import AsyncOperation

HOLD = 64
"""Polls in vain after which an agent does not keep operations from completing any more."""
LONGEST = 2_000
"""Turns of agents after which a late operation completes in any case; a long one counts as one for
each `TURN` instructions, so that a loop which works while it polls does not spend the budget."""
TURN = 16

_COPY, _TENSOR = "copy", "tensor core"
_LATE: tuple[frozenset[str], ...] = (
    frozenset(),
    frozenset({_COPY, _TENSOR}),
    frozenset(),
    frozenset({_COPY}),
    frozenset(),
    frozenset({_TENSOR}),
)


class CompletionOrder:
    """The order that a seed selects for one cluster; see the table above."""

    def __init__(self, seed: int, cluster: int) -> None:
        self.late = _LATE[seed % len(_LATE)]
        self._rng = random.Random(f"{seed}/{cluster}")
        self._polls: dict[Agent, int] = {}
        self._held = 0

    def pick(
        self, ready: Sequence[AsyncOperation], runnable: Sequence[Agent]
    ) -> AsyncOperation | Agent:
        """Returns the operation or agent that is next; at least one of `ready` and `runnable` must
        not be empty.
        """
        if not self.late:
            either: list[AsyncOperation | Agent] = [*ready, *runnable]
            return self._rng.choice(either)
        early = [o for o in ready if _path(o) not in self.late]
        if early:
            return self._rng.choice(early)
        eager = [a for a in runnable if self._polls.get(a, 0) < HOLD]
        if ready and (not eager or self._held >= LONGEST):
            self._held = 0
            self._polls.clear()  # what they poll for may be there now
            return self._rng.choice(ready)
        return self._rng.choice(eager or runnable)

    def advance(self, agent: Agent) -> None:
        """Gives an agent one turn."""
        before = agent.progress
        agent.advance()
        self._held += 1 + (agent.progress - before) // TURN
        self._polls[agent] = 0 if agent.progress != before else self._polls.get(agent, 0) + 1

    @property
    def refuses(self) -> bool:
        """Whether the first test of a phase returns false, as if the wait had timed out or the
        thread had tested early.
        """
        return bool(self.late)

    @property
    def polls_before_waiting(self) -> int:
        """Number of failed polls after which a polling loop blocks until its condition holds."""
        return HOLD if self.late else 1


def _path(operation: AsyncOperation) -> str:
    """Path of an operation, out of two: only the tensor core's keeps operations in order."""
    return _COPY if operation.access is None else _TENSOR
