"""The part of the machine's counters that one CTA has counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.launch import LaunchState

_TENSORS = "global_to_shared_by_tensor"


@dataclass(frozen=True)
class Counts:
    """Counters by name (`tcir.machine.counters`), bytes of loads by tensor, and number of warp
    instructions.
    """

    by_name: dict[str, int]
    by_tensor: Counter[int]
    instructions: int

    @classmethod
    def of(cls, launch: LaunchState) -> Counts:
        """Returns everything that a launch has counted so far."""
        counters = launch.machine.counters
        plain = {name: count for name, count in vars(counters).items() if name != _TENSORS}
        return cls(plain, Counter(counters.global_to_shared_by_tensor), launch.instructions)

    def __sub__(self, before: Counts) -> Counts:
        plain = {name: count - before.by_name[name] for name, count in self.by_name.items()}
        tensors = self.by_tensor - before.by_tensor
        return Counts(plain, tensors, self.instructions - before.instructions)

    def beyond(self, extra: Mapping[str, NDArray[np.int64]], row: int) -> Counts:
        """Returns the counts of the CTA number `row`, which are larger than these (the leader's) by
        its `extra`.
        """
        plain = {n: c + (int(extra[n][row]) if n in extra else 0) for n, c in self.by_name.items()}
        return Counts(plain, self.by_tensor, self.instructions)

    def of_each(self, extra: Mapping[str, NDArray[np.int64]], rows: NDArray[np.bool_]) -> Counts:
        """Returns the sum of the counts of the CTAs `rows`; those of each CTA are larger than these
        (the leader's) by its `extra`.
        """
        times = int(rows.sum())
        plain = {
            name: times * count + (int(extra[name][rows].sum()) if name in extra else 0)
            for name, count in self.by_name.items()
        }
        tensors = Counter({tensor: times * count for tensor, count in self.by_tensor.items()})
        return Counts(plain, tensors, times * self.instructions)

    def add_to(self, launch: LaunchState) -> None:
        """Adds these counts to those of a launch."""
        counters = launch.machine.counters
        for name, count in self.by_name.items():
            setattr(counters, name, getattr(counters, name) + count)
        counters.global_to_shared_by_tensor.update(self.by_tensor)
        launch.instructions += self.instructions
