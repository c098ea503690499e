"""Launches that are issued again with the same arguments on the same memory, as benchmarks do
hundreds of times.

The simulated machine is deterministic, so the effect of such a launch is that of the first one, and
it need not be executed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.special_registers import MOVING

if TYPE_CHECKING:
    from tcir.doors.launches import DoorLaunch
    from tcir.run import RunReport

RATE = 1e9
"""Bytes of memory that are copied and compared in a second: a launch that takes less time than
that is executed."""
MOST = 1 << 30
"""Bytes of memory that are kept for comparison."""
MALLOC = "malloc"
"""Found in the text of kernels that allocate: each launch gets other addresses."""
Partial = Sequence[tuple[np.ndarray, np.ndarray]]
Bytes = NDArray[np.uint8]
Place = NDArray[np.int64] | slice
_Name = tuple[object, ...]


@dataclass(frozen=True)
class LaunchEffect:
    """The effect of a launch that was executed.

    places: address and size of each storage; before: contents of the storages before the launch.
        changes: for each storage, the positions of the bytes that the launch changed, or all
        positions, and their new values
    """

    places: list[tuple[int, int]]
    before: list[bytes]
    changes: list[tuple[Place, Bytes]]
    report: RunReport

    def repeat(self, storages: Sequence[Bytes]) -> bool:
        """Applies the same changes to the storages again. If their contents differ from those
        before the execution, changes nothing and returns False.
        """
        if self.places != _places(storages):
            return False
        pairs = zip(storages, self.before, strict=True)
        if not all(storage.tobytes() == old for storage, old in pairs):
            return False
        for storage, (at, data) in zip(storages, self.changes, strict=True):
            storage[at] = data
        return True


@dataclass
class Repeats:
    """The last effect of each launch, and the seconds that its execution took.

    count: number of launches that repeated an effect
    """

    count: int = 0
    _effects: dict[_Name, LaunchEffect] = field(default_factory=dict)
    _seconds: dict[_Name, float] = field(default_factory=dict)

    def run(
        self, launch: DoorLaunch, partial: Partial, execute: Callable[[], RunReport]
    ) -> RunReport:
        """Repeats the effect of a launch, or executes the launch if its effect is not known;
        returns the report of the execution.

        partial: partly initialised arrays, and masks of their initialised bytes
        """
        name = _name(launch)
        storages = list(_storages(launch, partial))
        nbytes = sum(storage.nbytes for storage in storages)
        if name is None or self._seconds.get(name, 0.0) * RATE < nbytes:
            report = execute()
            if name is not None:
                self._seconds[name] = report.seconds
            return report
        effect = self._effects.get(name)
        if effect is not None and effect.repeat(storages):
            self.count += 1
            return effect.report
        before = [storage.tobytes() for storage in storages]
        report = execute()
        if report.ok and nbytes <= MOST:
            changes = list(map(_changes, before, storages))
            self._keep(name, LaunchEffect(_places(storages), before, changes, report))
        return report

    def _keep(self, name: _Name, effect: LaunchEffect) -> None:
        """Keeps an effect, and forgets the oldest ones beyond `MOST`."""
        self._effects.pop(name, None)
        self._effects[name] = effect
        sizes = {name: sum(map(len, each.before)) for name, each in self._effects.items()}
        total = sum(sizes.values())
        for oldest, size in sizes.items():
            if total <= MOST:
                break
            del self._effects[oldest]
            total -= size


def _places(storages: Sequence[Bytes]) -> list[tuple[int, int]]:
    return [(storage.ctypes.data, storage.nbytes) for storage in storages]


def _changes(before: bytes, after: Bytes) -> tuple[Place, Bytes]:
    """Positions and values of the bytes that changed; all bytes if many did, whose positions would
    take more memory."""
    changed = np.frombuffer(before, np.uint8) != after
    if 8 * np.count_nonzero(changed) > changed.size:
        return slice(None), after.copy()
    at = np.flatnonzero(changed)
    return at, after[at]


@lru_cache(maxsize=64)
def _changes_itself(ptx: str) -> bool:
    """Whether kernels read a clock or allocate, so that the same launch has another effect."""
    return any(name in ptx for name in (*MOVING, MALLOC))


def _name(launch: DoorLaunch) -> _Name | None:
    """All of a launch but its memory; None if its effect changes, or it has arrays as arguments."""
    if _changes_itself(launch.ptx):
        return None
    numbers = [each for each in launch.args if isinstance(each, bytes | np.generic)]
    if len(numbers) < len(launch.args):
        return None
    arguments = tuple(each if isinstance(each, bytes) else each.tobytes() for each in numbers)
    return (
        launch.ptx, launch.name, launch.grid, launch.cluster, launch.block, launch.shared,
        launch.programmatic, launch.cooperative, arguments,
    )  # fmt: skip


def _storages(launch: DoorLaunch, partial: Partial) -> Iterator[Bytes]:
    """The bytes that the launch may change, and which of them are initialised."""
    for array in (*launch.memory, *(launch.variables or {}).values()):
        yield array.reshape(-1).view(np.uint8)
    for _, mask in partial:
        yield mask.reshape(-1).view(np.uint8)
