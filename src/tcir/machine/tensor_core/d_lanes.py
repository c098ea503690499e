"""The lanes of D in tensor memory: which of them an mma writes, and which row of D each lane
has.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import MachineError
from tcir.machine.memory.tensor_memory import LANES

Words = NDArray[np.uint32]
Element = TypeVar("Element", bound=np.generic)


def enabled_lanes(
    masks: tuple[int, ...] | None, lanes: NDArray[np.int64], cta_group: int, site: object
) -> list[NDArray[np.bool_] | None]:
    """For each CTA, a mask of the `lanes` that are written (None: all).

    Bit i of mask v disables lane 32 v + i; in a pair, masks 4..7 belong to the CTA of odd rank.
    """
    if masks is None:
        return [None] * cta_group
    if len(masks) != 4 * cta_group:
        raise MachineError(
            "lane-mask", f"expected {4 * cta_group} mask words, got {len(masks)}", site=site
        )
    found: list[NDArray[np.bool_] | None] = []
    for start in range(0, len(masks), 4):
        words = masks[start : start + 4]
        off = np.array([words[lane // 32] >> (lane % 32) & 1 for lane in range(LANES)], bool)
        found.append(~off[lanes] if off.any() else None)
    return found


def join_columns(block: NDArray[Element], parts: int) -> NDArray[Element]:
    """Returns D [rows, n] from its lanes, for data paths B, E and G, which store parts of D's
    columns on different lanes.
    """
    if parts == 1:
        return block
    lanes, columns = block.shape
    split = block.reshape(parts, lanes // parts, columns)
    return np.ascontiguousarray(split.transpose(1, 0, 2)).reshape(lanes // parts, -1)


def stack_columns(d: NDArray[Element], parts: int) -> NDArray[Element]:
    """Inverse of `join_columns`."""
    if parts == 1:
        return d
    rows, n = d.shape
    return d.reshape(rows, parts, n // parts).transpose(1, 0, 2).reshape(rows * parts, -1)
