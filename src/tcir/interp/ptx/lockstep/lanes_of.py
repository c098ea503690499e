"""Lanes that execute an instruction of the trace, in each CTA."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.lanes import LANE_MASK
from tcir.interp.ptx.lockstep.group import LockstepGroup
from tcir.interp.ptx.registers import PREDICATE


@dataclass(frozen=True)
class Active:
    """Lanes of an instruction. mask: lanes of the running group; leader: lanes of the leader that
    execute the instruction. whole: whether `leader` is all live lanes.

    guard: the slot of a varying guard, -1 for none; negate: `@!%p`. unread, unwritten: lanes in
    which an operand, or a written register, is undefined in the leader.
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
        """Lanes by CTA, bool [CTAs, 32]. A CTA leaves if a lane would read an undefined value, or
        keep one in a result."""
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
        """Like `of`, as one mask [CTAs * 32]; None if `everywhere`."""
        return None if self.everywhere else self.of(group).reshape(-1)
