"""Programmatic dependent launch: a grid that may start before the previous one has ended.

PTX ISA 9.7.13, griddepcontrol. The machine runs launches one after the other and records the
missing order instead: earlier launches may still write every byte of every buffer. An agent is
ordered after these writes only once it has waited, or has synchronised with an agent that has.
"""

from __future__ import annotations

from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import EARLIER


class GridControl:
    """griddepcontrol of an agent. Later grids are launches of their own, so launch_dependents
    has no effect here."""

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent = agent

    def wait(self, *, site: object) -> None:
        """griddepcontrol.wait: blocks until the earlier grids have ended and their writes are
        visible to this one."""
        self.agent.proceed(site)
        self.agent.lanes.learn()
        self.agent.clock[EARLIER] = 1
