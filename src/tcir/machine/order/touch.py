"""The access that is currently being checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tcir.machine.order.clocks import Access
from tcir.machine.order.lane_shadow import Granules
from tcir.machine.order.lanes import LaneNumbers
from tcir.machine.order.shadow import Shadow

Same: TypeAlias = "bool | NDArray[np.bool_] | Callable[[], bool]"
"""Whether a write puts back the same bytes; see `Touch`."""


class Touch(NamedTuple):
    """An access to granules of a memory that is being checked.

    lanes: the lane of each row of granules, or one lane for all rows; None: all lanes of the warp
        together, or an agent that is no warp
    same: whether a write stores bytes equal to those already in memory, or to those that the
        conflicting access stores; an array has one element for each row of granules
    """

    shadow: Shadow
    where: Granules
    access: Access
    write: bool
    lanes: LaneNumbers | None
    same: Same = False
