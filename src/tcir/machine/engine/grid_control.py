"""Programmatic dependent launch: a grid may start before the previous grid has ended.

PTX ISA 9.7.13, griddepcontrol. The simulated machine executes launches one after the other and
models the overlap by a missing order: until an agent waits, the earlier launches count as still
able to write every byte of every buffer. An agent is ordered after these writes once it has
executed griddepcontrol.wait, or has synchronised with an agent that has.
"""

from __future__ import annotations

from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import EARLIER


class GridControl:
    """griddepcontrol of an agent. The machine executes later grids as separate launches, so
    launch_dependents has no effect.
    """

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent = agent

    def wait(self, *, site: object) -> None:
        """griddepcontrol.wait: blocks until the earlier grids have ended and their writes are
        visible to this grid.
        """
        self.agent.proceed(site)
        self.agent.lanes.learn()
        self.agent.clock[EARLIER] = 1
