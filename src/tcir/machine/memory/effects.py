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
