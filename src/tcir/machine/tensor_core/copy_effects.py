"""Effects of tcgen05.cp and tcgen05.shift on the memories of CTAs, without hazard checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.machine.memory.effects import Effect, SharedBytes, TensorWords
from tcir.machine.tensor_core.narrow import decompressed


@dataclass(frozen=True)
class CpEffect:
    """tcgen05.cp: copies bytes [rows, bytes] of shared memory to the given columns of each set of
    lanes.

    bits: width of the elements to decompress; None: no decompression
    shift: position of an element's lowest bit in its byte
    """

    addresses: NDArray[np.int64]
    lanes: Sequence[slice | NDArray[np.int64]]
    columns: slice
    bits: int | None
    shift: int

    def words(self, smem: SharedBytes) -> TensorWords:
        """Returns the words that the copy writes, uint32 [..., rows, columns]."""
        data = smem[..., self.addresses]
        if self.bits is not None:
            data = decompressed(data, self.bits, self.shift)
        return np.ascontiguousarray(data).view(np.uint32)

    def varies(self, shared: NDArray[np.bool_]) -> None:
        pass

    def then(self, other: Effect) -> None:
        pass

    def apply(self, smem: SharedBytes, tmem: TensorWords) -> None:
        words = self.words(smem)
        for lanes in self.lanes:
            tmem[:, lanes, self.columns] = words


@dataclass(frozen=True)
class ShiftEffect:
    """tcgen05.shift: in the given columns, lane l receives the words of lane ``source[l]``."""

    source: NDArray[np.int64]
    columns: slice

    def varies(self, shared: NDArray[np.bool_]) -> None:
        pass

    def then(self, other: Effect) -> None:
        pass

    def apply(self, smem: SharedBytes, tmem: TensorWords) -> None:
        tmem[:, :, self.columns] = tmem[:, self.source, self.columns]
