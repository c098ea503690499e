"""Effects of operations on the memories of CTAs, as functions of arrays.

The same function executes an operation on one CTA or on many CTAs at once
(`tcir.interp.ptx.lockstep`): for many CTAs, its arrays have a leading axis of CTAs.
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
    """An operation that reads and writes the memories of each of several CTAs."""

    def varies(self, shared: NDArray[np.bool_]) -> None:
        """Notes which 4-byte words of shared memory may differ between the CTAs."""

    def then(self, other: Effect) -> Effect | None:
        """Returns one effect that stands for this operation followed directly by another; None if
        the two cannot be joined.
        """

    def apply(self, smem: SharedBytes, tmem: TensorWords) -> NDArray[np.bool_] | None:
        """Applies the effect in every CTA of the leading axis.

        Returns one flag per CTA, which is False if the machine would report something about this
        CTA. Returns None if it would report nothing in any CTA.
        """


def elements(smem: SharedBytes, size: int) -> NDArray[np.unsignedinteger]:
    """Shared memory as unsigned elements of ``size`` bytes."""
    whole = smem.shape[-1] // size * size
    return smem[..., :whole].view(f"u{size}")


PIECE = 16
"""Bytes that a swizzle keeps together."""


def pieces(where: NDArray[np.int64], size: int) -> NDArray[np.int64] | None:
    """Indices of the 16-byte pieces that elements of ``size`` bytes fill, in the order of the last
    axis. None if the elements do not fill whole pieces.
    """
    each = PIECE // size
    if not where.size or where.shape[-1] % each:
        return None
    runs = where.reshape(*where.shape[:-1], -1, each)
    whole = runs[..., :1] % each == 0
    if not (whole & (runs == runs[..., :1] + np.arange(each))).all():
        return None
    return runs[..., 0] // each


def by_piece(memory: NDArray[np.uint8]) -> NDArray[np.void]:
    """Returns memory [..., bytes] as 16-byte pieces."""
    whole = memory.shape[-1] // PIECE * PIECE
    return memory[..., :whole].view(f"V{PIECE}")
