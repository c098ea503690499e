"""Tensors whose addresses a script requests by `data_ptr`; kernels may access them through tables
of pointers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tcir.doors.launches import Argument
from tcir.triton.tensors import dtype_of

LONGEST_TABLE = 1 << 20
"""Maximum number of elements of a tensor that is searched for addresses."""


class Addresses:
    """Memory of the tensors whose `data_ptr` was called, as long as the tensors exist."""

    def __init__(self) -> None:
        self._storages: dict[int, tuple[StorageWeakRef, np.dtype]] = {}

    def taken(self, tensor: torch.Tensor) -> None:
        """Records that the script requested the address of a tensor."""
        storage = tensor.untyped_storage()
        self._storages[storage.data_ptr()] = StorageWeakRef(storage), dtype_of(tensor)

    def reached(self, args: Sequence[Argument]) -> list[np.ndarray]:
        """The recorded memory that a launch can access: its address occurs as a 64-bit integer
        among `args`, in their arrays, or in memory that was itself found in this way.

        Each array is a whole storage. The simulated machine must place it at the address that it
        has on the CPU.
        """
        spans = sorted(self._spans(), key=lambda span: span[0])
        starts = [start for start, _ in spans]
        found: dict[int, np.ndarray] = {}
        tables = list(args)
        while tables:
            new: dict[int, np.ndarray] = {}
            for number in _numbers(tables):
                n = bisect_right(starts, number) - 1
                if n >= 0 and number < starts[n] + spans[n][1].nbytes:
                    new[starts[n]] = spans[n][1]
            tables = [array for start, array in new.items() if start not in found]
            found.update(new)
        return list(found.values())

    def _spans(self) -> Iterator[tuple[int, np.ndarray]]:
        """Start address and elements of each recorded storage that is still alive."""
        for start, (reference, kind) in list(self._storages.items()):
            storage = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
            if storage is None:
                del self._storages[start]
            elif start:
                raw = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage).numpy()
                yield start, raw if raw.size % kind.itemsize else raw.view(kind)


def _numbers(args: Sequence[Argument]) -> list[int]:
    """The different 64-bit integers among arguments, and in arrays that may be tables."""
    numbers = [
        np.asarray(arg).reshape(-1).astype(np.int64)
        for arg in args
        if isinstance(arg, np.ndarray | np.generic)
        and arg.dtype in (np.int64, np.uint64)
        and 0 < arg.size <= LONGEST_TABLE
    ]
    return list(map(int, np.unique(np.concatenate(numbers)))) if numbers else []
