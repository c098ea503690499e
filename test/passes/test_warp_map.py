"""The warp map of a kernel: another order of warps compiles, executes equal, and bad ones fail."""

from __future__ import annotations

import pytest

import tcir
from tcir.dialect.warp_map import EPILOGUE, MMA, PRODUCER, WARP_MAPS, Role, WarpMap

EPILOGUE_LAST = WarpMap(
    (
        Role(MMA, (0,), "one"),
        Role(PRODUCER, (1,), "one"),
        Role(EPILOGUE, (4, 5, 6, 7), "warp"),
    ),
    allocates=PRODUCER,
)
"""Another order: warps 2 and 3 have no role."""
