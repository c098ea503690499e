"""A thread that issues tensor-core operations: the numbers of its operations, and the order in
which the pipe completes them.
"""

from __future__ import annotations

from functools import partial

from tcir.machine.assumptions import Assumptions
from tcir.machine.order.clocks import Component
from tcir.machine.order.operation import AsyncOperation
from tcir.machine.order.ordering import PipeOrder, kept, listed


class TensorThread:
    """A thread that issues tcgen05.mma, cp, shift and commit.

    An agent is a warp, and usually only one of its lanes issues such operations. If two lanes
    issue, the tensor core treats them as two threads: a commit tracks only the operations of its
    own thread (PTX ISA 9.7.16.12).
    """

    def __init__(self, agent: Component, lane: int, assumptions: Assumptions) -> None:
        self.agent, self.lane = agent, lane
        self.component: Component = ("tc", agent, lane)
        self.issued = 0
        self.in_flight: list[AsyncOperation] = []
        self.kept = PipeOrder(partial(kept, assumptions))
        """The order in which they complete."""
        self.listed = PipeOrder(partial(listed, assumptions))
        """The part of this order that the PTX ISA promises."""
