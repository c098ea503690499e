"""What an operation does to the memories of CTAs, as a function of arrays.

An operation on one CTA and the same one on many CTAs at once (`tcir.interp.ptx.lockstep`) are one
function: its arrays have a leading axis of CTAs or none.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

SharedBytes = NDArray[np.uint8]
"""Shared memory: uint8 [..., bytes], a multiple of 16."""
TensorWords = NDArray[np.uint32]
"""Tensor memory: uint32 [..., 128 lanes, 512 columns]."""


class Effect(Protocol):
    """An operation that reads and writes the memories of each CTA."""

    def varies(self, shared: NDArray[np.bool_]) -> None:
        """Notes which 4-byte words of shared memory may differ between the CTAs."""

    def then(self, other: Effect) -> Effect | None:
        """This operation and, right after it, another one, as one; None: they stay two."""

    def apply(self, smem: SharedBytes, tmem: TensorWords) -> NDArray[np.bool_] | None:
        """Does it in every CTA of the leading axis; False: the machine would report something."""


def elements(smem: SharedBytes, size: int) -> NDArray[np.unsignedinteger]:
    """Shared memory as unsigned elements of ``size`` bytes."""
    whole = smem.shape[-1] // size * size
    return smem[..., :whole].view(f"u{size}")


PIECE = 16
"""Bytes that a swizzle keeps together."""


def pieces(where: NDArray[np.int64], size: int) -> NDArray[np.int64] | None:
    """Pieces of memory that elements of ``size`` bytes consist of, in the order of the last
    axis; None: the pieces do not make up elements."""
    each = PIECE // size
    if not where.size or where.shape[-1] % each:
        return None
    runs = where.reshape(*where.shape[:-1], -1, each)
    whole = runs[..., :1] % each == 0
    if not (whole & (runs == runs[..., :1] + np.arange(each))).all():
        return None
    return runs[..., 0] // each


def by_piece(memory: NDArray[np.uint8]) -> NDArray[np.void]:
    """Memory [..., bytes] as pieces."""
    whole = memory.shape[-1] // PIECE * PIECE
    return memory[..., :whole].view(f"V{PIECE}")
