"""The part of the machine's counters that one CTA has counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tcir.machine import Machine
from tcir.machine.counters import Counters

OWN = ("global_load", "global_store", "global_to_shared_read", "shared_to_global")
"""Counters that may differ between CTAs that issue the same operations."""
_TENSORS = "global_to_shared_by_tensor"


@dataclass(frozen=True)
class Counts:
    """Counts by the name of a counter (`tcir.machine.counters`), and bytes of loads by tensor."""

    by_name: dict[str, int]
    by_tensor: Counter[int]

    @classmethod
    def of(cls, machine: Machine) -> Counts:
        """Returns everything that a machine has counted."""
        plain = {name: count for name, count in vars(machine.counters).items() if name != _TENSORS}
        return cls(plain, Counter(machine.counters.global_to_shared_by_tensor))

    def __sub__(self, before: Counts) -> Counts:
        plain = {name: count - before.by_name[name] for name, count in self.by_name.items()}
        return Counts(plain, self.by_tensor - before.by_tensor)

    def with_own(self, own: Counters) -> Counts:
        """Returns these counts, with the counters that may differ between CTAs taken from `own`."""
        return Counts(self.by_name | {n: getattr(own, n) for n in OWN}, self.by_tensor)

    def add_to(self, machine: Machine) -> None:
        """Adds the counts to the machine's counters."""
        for name, count in self.by_name.items():
            setattr(machine.counters, name, getattr(machine.counters, name) + count)
        machine.counters.global_to_shared_by_tensor.update(self.by_tensor)
