"""Cooperative launches: all CTAs of the grid are resident at a time, or there is no launch."""

from __future__ import annotations

import math

from tcir.errors import LaunchError
from tcir.target import DEFAULT_TARGET
from tcir.time import ctas_per_sm

TOO_LARGE = 720
"""cudaErrorCooperativeLaunchTooLarge."""


class CooperativeLaunchError(LaunchError):
    """A cooperative launch has more CTAs than the SMs hold at a time."""


def check_cooperative(grid: tuple[int, int, int], block: tuple[int, int, int], shared: int) -> None:
    """CooperativeLaunchError for more CTAs than a B200 holds at a time.

    By threads and dynamic shared memory (`shared`, bytes); registers, which ptxas chooses, and
    static shared memory may allow fewer. Sizes that no launch may have are not looked at.
    """
    threads = math.prod(block)
    if not 1 <= threads <= 1024 or not 0 <= shared <= DEFAULT_TARGET.smem_per_cta:
        return
    each = ctas_per_sm(threads, 0, shared, DEFAULT_TARGET)
    most, ctas = each * DEFAULT_TARGET.sms, math.prod(grid)
    if ctas > most:
        raise CooperativeLaunchError(
            f"grid: expected at most {most} CTAs of {threads} threads and {shared} bytes of "
            f"dynamic shared memory, got {ctas}: those of a cooperative launch run at the same "
            f"time, on {DEFAULT_TARGET.sms} SMs {each} each; launch fewer, that loop over the work"
        )
