"""Atoms: one instruction each, with thread-value layouts that say which elements each thread
has.
"""

from __future__ import annotations

from .copy import COPY_OPERATIONS, CopyAtom, CopyOperation, copy_atom
from .mma import MMA_ATOMS, MmaAtom, mma_atom

__all__ = [
    "COPY_OPERATIONS",
    "MMA_ATOMS",
    "CopyAtom",
    "CopyOperation",
    "MmaAtom",
    "copy_atom",
    "mma_atom",
]
