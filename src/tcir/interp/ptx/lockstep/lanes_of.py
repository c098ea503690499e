"""Determines the lanes that execute an instruction of the trace, in each CTA."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.lanes import LANE_MASK
from tcir.interp.ptx.lockstep.group import LockstepGroup
from tcir.interp.ptx.registers import PREDICATE


@dataclass(frozen=True)
class Active:
    """Lanes that execute an instruction.

    mask:      lanes of the running group
    leader:    lanes that execute the instruction in the leader
    whole:     whether all live lanes execute it in the leader
    guard:     slot of the guard, if the guard varies between CTAs; -1 otherwise
    negate:    the guard is negated (`@!%p`)
    unread:    lanes in which an operand is undefined in the leader
    unwritten: lanes in which a written register is undefined in the leader
    """

    warp: int
    mask: int
    leader: int
    whole: bool
    guard: int = -1
    negate: bool = False
    unread: int = 0
    unwritten: int = 0

    def of(self, group: LockstepGroup) -> NDArray[np.bool_]:
        """Lanes that execute the instruction, bool [CTAs, 32]. Removes a CTA from the group if one
        of its lanes would read an undefined value, or would keep an undefined value in a result.
        """
        if self.guard < 0:
            return np.broadcast_to(LANE_MASK[self.leader], (group.count, 32))
        own = group.by_cta(self.warp, self.guard, PREDICATE)
        own = (~own if self.negate else own) & LANE_MASK[self.mask]
        leader = LANE_MASK[self.leader]
        if self.unread:
            group.leave((own & ~leader & LANE_MASK[self.unread]).any(axis=1))
        if self.unwritten:
            group.leave((leader & ~own & LANE_MASK[self.unwritten]).any(axis=1))
        return own

    @property
    def everywhere(self) -> bool:
        """Whether all live lanes execute the instruction in every CTA."""
        return self.guard < 0 and self.whole

    def where(self, group: LockstepGroup) -> NDArray[np.bool_] | None:
        """Lanes as in `of`, as one mask [CTAs * 32]; None if all live lanes execute the instruction
        in every CTA.
        """
        return None if self.everywhere else self.of(group).reshape(-1)
