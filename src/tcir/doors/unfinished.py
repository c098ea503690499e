"""Memory that earlier launches may still write when a programmatic launch begins (PTX ISA 9.7.13,
griddepcontrol).

A programmatic launch begins when all CTAs of the previous launch have executed `launch_dependents`
or have ended. An ordinary launch begins when all previous launches have ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tcir.interp.ptx.parser import parse

if TYPE_CHECKING:
    from tcir.doors.launches import DoorLaunch
    from tcir.run import RunReport


GAP = 64
"""Bytes between two changed ones up to which they count as one part."""


@dataclass
class Unfinished:
    """Memory that launches which may not have ended have changed.

    memory: the changed parts; True stands for any memory, because changes are not tracked before
        the first programmatic launch
    """

    memory: list[np.ndarray] | bool = True
    _watching: bool = False

    def run(self, launch: DoorLaunch, first: bool, execute: Callable[[], RunReport]) -> RunReport:
        """Executes a launch and records the memory that it changes. first: whether no launch
        precedes it.
        """
        self._watching |= launch.programmatic
        if not self._watching:
            return execute()
        before = [storage.tobytes() for storage in launch.memory]
        report = execute()
        changed = [
            part for pair in zip(launch.memory, before, strict=True) for part in _changed(*pair)
        ]
        if first or not launch.programmatic or _waits_first(launch.ptx, launch.name):
            self.memory = changed
        elif isinstance(self.memory, list):
            self.memory = self.memory + changed
        return report


def _changed(storage: np.ndarray, before: bytes) -> list[np.ndarray]:
    """Parts of the storage that hold all bytes that changed."""
    now = storage.reshape(-1).view(np.uint8)
    at = np.flatnonzero(now != np.frombuffer(before, np.uint8))
    ends = np.flatnonzero(np.diff(at) > GAP) + 1
    return [now[part[0] : part[-1] + 1] for part in np.split(at, ends) if part.size]


@lru_cache(8)
def _waits_first(ptx: str, name: str) -> bool:
    """Whether each thread waits for the launches before, before it lets others begin: whether a
    `griddepcontrol.wait` precedes all branches and `launch_dependents`."""
    for instruction in parse(ptx).functions[name].body or ():
        if instruction.guard is not None or instruction.mnemonic.startswith("bra"):
            return False
        if instruction.mnemonic.startswith("griddepcontrol."):
            return instruction.mnemonic == "griddepcontrol.wait"
    return False
