"""Shadow memory: for each granule of a memory, the access that wrote it last and the accesses that
read it since.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from tcir.machine.jit import jit
from tcir.machine.order.accesses import Accesses, Loads, Twin
from tcir.machine.order.clocks import Access, Component
from tcir.machine.order.involved import issuer
from tcir.machine.order.lane_shadow import Granules, LaneShadow
from tcir.machine.order.lanes import LaneNumbers

COMPACT = 8192
"""Recorded accesses after which those that no granule names any more are dropped."""
MANY = 1 << 16
"""The same where accesses are noted without an object each."""
SHARE = 64
"""In a record of so many granules for each of them, whose every number is looked at then, later."""
PART = 1 << 18
"""Granules that are renumbered at a time."""
FEW = 64
"""Values that a set of Python sorts faster than numpy."""


class ByLane(NamedTuple):
    """The lanes of a warp that make an access. known: whether the whole warp has observed a given
    access.
    """

    lanes: LaneNumbers
    known: Callable[[Access], bool]


class Owner(Protocol):
    """The CTA that owns a memory, as far as the checks of accesses need it."""

    index: tuple[int, int, int]
    remote_accesses: dict[Component, Access]


class Shadow:
    """Last writer of every granule, and its readers since that write.

    An access is represented by its position in ``accesses`` plus one; 0 stands for no access.
    ``readers`` holds indices of sets of such numbers.
    """

    owner: Owner | None = None
    """The CTA whose memory it is."""
    constant: NDArray[np.int32] | None = None
    """Reader of each granule of global memory that the launch must not write."""
    lanes: LaneShadow | None = None
    """Lanes of the warps' accesses."""
    bytewise = False
    """Whether each granule, a word, has its bytes recorded apart: see `split`."""

    def __init__(self, shape: int | tuple[int, int], space: str) -> None:
        self.space = space
        self.writer = np.zeros(shape, np.int32)
        self.readers = np.zeros(shape, np.int32)
        self.accesses: list[Access] | Accesses = []
        self.sets: list[frozenset[int]] = [frozenset()]
        self._set_ids: dict[frozenset[int], int] = {frozenset(): 0}
        self._room = COMPACT
        self._warps: dict[Component, int] = {}
        """Numbers of the warps whose lanes `lanes` knows."""

    def split(self) -> None:
        """Refines the granularity of the record from words to single bytes.

        Each word becomes a row of four bytes, so that the index of a word still selects all its
        bytes; the index (words, bytes) selects single bytes. Only programs that access less than a
        word at a time need this finer and slower record.
        """
        if not self.bytewise:
            self.bytewise = True
            self.writer = np.repeat(self.writer[:, None], 4, axis=1)
            self.readers = np.repeat(self.readers[:, None], 4, axis=1)
            if self.lanes is not None:
                self.lanes.split()

    def writers_at(self, where: Granules) -> list[Access]:
        """Distinct last writers of the granules."""
        return [self.accesses[i - 1] for i in _distinct(self.writer[where]) if i]

    def writers_read(self, where: Granules, read: Access) -> list[Access]:
        """Distinct last writers of the granules that an access read."""
        writer = self.writer[where][self.met(where, read, wrote=False)]
        return [self.accesses[i - 1] for i in _distinct(writer) if i]

    def written_by(self, access: Access, where: NDArray[np.int64]) -> NDArray[np.int64]:
        """Granules whose last writer is this access."""
        writer = self.writer[where]
        named = [i for i in _distinct(writer) if i and self.accesses[i - 1] is access]
        written = np.isin(writer, named)
        return where[written.any(axis=1) if self.bytewise else written]

    def flat(self, where: Granules) -> NDArray[np.int64]:
        """The indices of the granules in a flat array, in the shape that ``where`` selects."""
        if isinstance(where, np.ndarray) and self.writer.ndim == 1:
            return where
        if isinstance(where, slice) and self.writer.ndim == 1:
            return np.arange(where.start, where.stop)
        return np.arange(self.writer.size).reshape(self.writer.shape)[where]

    def met(self, where: Granules, other: Access, wrote: bool) -> NDArray[np.bool_]:
        """Mask, in the shape of `flat`, of the granules whose last writer or reader is a given
        earlier access; all granules if that access is no longer recorded.
        """
        current = self.writer[where] if wrote else self.readers[where]
        named = [
            i
            for i in _distinct(current)
            if any(
                self.accesses[n - 1] is other
                for n in (frozenset({i} - {0}) if wrote else self._members(i))
            )
        ]
        found = np.isin(current, named)
        return found if found.any() else ~found

    def readers_at(self, where: Granules) -> list[Access]:
        """Distinct accesses that read the granules since they were last written."""
        found: set[int] = set()
        for i in _distinct(self.readers[where]):
            found |= self._members(i)
        return [self.accesses[i - 1] for i in sorted(found)]

    def _members(self, readers: int) -> frozenset[int]:
        """The accesses that a value of ``readers`` stands for."""
        return self.sets[readers]

    def record_read(
        self,
        where: Granules,
        access: Access,
        by: ByLane | None = None,
        known: Callable[[Access], bool] = lambda _: True,
    ) -> None:
        """Adds a reader; it replaces an earlier reader of the same component, kind and target. by:
        lanes of the reader; known: whether the reader is ordered after a given earlier access.
        """
        number = self._add(access)
        current = self.readers[where]
        distinct = _distinct(current)
        if by is not None:
            self._lanes_read(where, access, by, current, distinct)
        if len(distinct) == 1:
            self.readers[where] = self._with(distinct[0], number, access)
            return
        lookup = np.array([self._with(i, number, access) for i in distinct], np.int32)
        self.readers[where] = lookup[np.searchsorted(distinct, current)]

    def record_write(self, where: Granules, access: Access) -> None:
        """Records an access as the last writer of the granules."""
        self.writer[where] = self._add(access)
        self.readers[where] = 0

    def beside_at(self, where: Granules) -> list[Access]:
        """Distinct readers of the granules that `readers_at` does not return."""
        return []

    def record_constant(self, where: Granules, access: Access) -> None:
        """Adds a reader that requires the granules to be constant during the whole launch."""
        if self.constant is None:
            self.constant = np.zeros_like(self.writer)
        self.constant[where] = self._add(access)

    def constant_at(self, where: Granules) -> list[Access]:
        """Distinct last readers that require the granules to be constant during the whole
        launch."""
        if self.constant is None:
            return []
        return [self.accesses[i - 1] for i in _distinct(self.constant[where]) if i]

    def refine(self, pieces: int) -> None:
        """Divides each granule into pieces, because an array is accessed in smaller units from now
        on.
        """
        self.writer, self.readers = (np.repeat(a, pieces) for a in (self.writer, self.readers))
        if self.constant is not None:
            self.constant = np.repeat(self.constant, pieces)
        if self.lanes is not None:
            self.lanes.refine(pieces)

    def lanes_write(self, where: Granules, lanes: LaneNumbers) -> None:
        """Records the lanes that make a warp's write; the write itself is recorded separately."""
        if self.lanes is None:
            self.lanes = LaneShadow(self.writer.shape)
        self.lanes.write(where, lanes)

    def _lanes_read(
        self,
        where: Granules,
        access: Access,
        by: ByLane,
        current: NDArray[np.int32],
        distinct: list[int],
    ) -> None:
        """Records the lanes of a read, and keeps the lanes that read since they were last
        synchronised."""
        if self.lanes is None:
            self.lanes = LaneShadow(self.writer.shape)
        kept = [
            i
            for i in distinct
            if any(
                a.component == access.component and not by.known(a)
                for a in (self.accesses[n - 1] for n in self._members(i))
            )
        ]
        fresh: NDArray[np.bool_] | bool = not kept
        if kept and len(kept) < len(distinct):
            fresh = ~np.isin(current, kept)
        self.lanes.read(where, by.lanes, self._warp(access.component), fresh)

    def other_lanes(self, where: Granules, other: Access, mine: LaneNumbers, wrote: bool) -> int:
        """Mask of the lanes, other than `mine`, that made an earlier access to the granules. If
        `mine` is `TOGETHER`, the mask contains all lanes that made it.
        """
        current = self.writer[where] if wrote else self.readers[where]
        named, distinct = [], _distinct(current)
        for i in distinct:
            accesses = frozenset({i} - {0}) if wrote else self._members(i)
            if any(self.accesses[n - 1] is other for n in accesses):
                named.append(i)
        if self.lanes is None or not named:
            return other.lanes  # one that others are concurrent with
        chosen = None if len(distinct) == 1 else np.isin(current, named)
        only = mine if isinstance(mine, int) else int(mine[0]) if len(mine) == 1 else None
        if (
            not wrote
            and only is not None
            and self.lanes.read_by_another(where, chosen, self._warp(other.component))
        ):  # whose lanes have replaced them
            return other.lanes & ~(1 << only)
        look = self.lanes.other_writers if wrote else self.lanes.other_readers
        return look(where, chosen, mine)

    def _warp(self, component: Component) -> int:
        return self._warps.setdefault(component, len(self._warps) + 1)

    def parts(self, where: Granules) -> list[tuple[list[Access], tuple[NDArray[np.int64], ...]]]:
        """Divides the granules by their last writer. Each part consists of that writer, followed by
        the accesses concurrent with it, and of its granules.
        """
        if isinstance(where, slice):
            where = np.arange(where.start, where.stop)
        if self.bytewise and not isinstance(where, tuple):
            where = np.ravel(where)[:, None], np.arange(4)
        index = where if isinstance(where, tuple) else (where,)
        places = [
            a.ravel() for a in np.broadcast_arrays(*cast("tuple[NDArray[np.int64], ...]", index))
        ]
        writer = self.writer[tuple(places)]
        out = []
        for number in _distinct(writer):
            last = [self.accesses[number - 1]] if number else []
            out.append(
                (
                    [*last, *(b for a in last for b in a.concurrent)],
                    tuple(a[writer == number] for a in places),
                )
            )
        return out

    def _add(self, access: Access) -> int:
        if len(self.accesses) >= self._room:
            self._compact()
        self.accesses.append(access)
        return len(self.accesses)

    def _with(self, old: int, number: int, access: Access) -> int:
        kept = {i for i in self.sets[old] if not _same_line(self.accesses[i - 1], access)}
        return self._set_id(frozenset(kept | {number}))

    def _set_id(self, members: frozenset[int]) -> int:
        if members not in self._set_ids:
            self._set_ids[members] = len(self.sets)
            self.sets.append(members)
        return self._set_ids[members]

    def _compact(self) -> None:
        """Forgets accesses that no granule names any more."""
        live_sets = np.unique(self.readers)
        named = {int(i) for i in np.unique(self.writer)}.union(*(self.sets[i] for i in live_sets))
        live = np.array(sorted(named | {0}), np.int32)
        self.writer[...] = np.searchsorted(live, self.writer)
        renamed = {int(old): new for new, old in enumerate(live)}
        old_sets, numbers = [self.sets[i] for i in live_sets], np.zeros(len(live_sets), np.int32)
        self.sets, self._set_ids = [frozenset()], {frozenset(): 0}
        for position, members in enumerate(old_sets):
            numbers[position] = self._set_id(frozenset(renamed[i] for i in members))
        self.readers[...] = numbers[np.searchsorted(live_sets, self.readers)]
        self.accesses = [self.accesses[i - 1] for i in live if i]
        self._room = len(self.accesses) + COMPACT


class LastShadow(Shadow):
    """Shadow memory for global memory, whose granules have many readers: at most three readers of a
    granule are kept.

    The first is the last reader. The other two are chosen among the readers that belong to another
    component than the reader after them and are not ordered before it: the last such reader in the
    CTA of the reader after it, and the last one in another CTA.

    beside: numbers of the other two readers; None until some granule has had two readers
    """

    accesses: Accesses

    def __init__(self, shape: int, space: str) -> None:
        super().__init__(shape, space)
        self.accesses = Accesses()
        self.beside: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None
        self._lines = np.zeros(1, np.int32)
        self._ctas = np.zeros(1, np.int32)
        self._leave_room()

    def _leave_room(self) -> None:
        self._room = len(self.accesses) + max(MANY, self.writer.size // SHARE)

    def _members(self, readers: int) -> frozenset[int]:
        return frozenset({readers} - {0})

    def record_read(
        self,
        where: Granules,
        access: Access,
        by: ByLane | None = None,
        known: Callable[[Access], bool] = lambda _: True,
    ) -> None:
        current = self.readers[where]
        distinct = _distinct(current)
        if by is not None:
            self._lanes_read(where, access, by, current, distinct)
        self._keep(where, access, current, distinct, known)
        self.readers[where] = self._add(access)

    def _keep(
        self,
        where: Granules,
        access: Access,
        current: NDArray[np.int32],
        distinct: list[int],
        known: Callable[[Access], bool],
    ) -> None:
        """Keeps the last readers that ``access`` comes beside."""
        near, far = list[int](), list[int]()
        for number in distinct:
            last = self.accesses[number - 1] if number else access
            if last.component != access.component and not known(last):
                same = issuer(last.component)[0] == issuer(access.component)[0]
                (near if same else far).append(number)
        if not near and not far:
            return
        for numbers, kept in zip((near, far), self.kept_beside(), strict=True):
            if len(numbers) == len(distinct):
                kept[where] = current
            elif numbers:
                kept[where] = np.where(np.isin(current, numbers), current, kept[where])

    def kept_beside(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Returns `beside`, which the first call creates."""
        if self.beside is None:
            self.beside = np.zeros_like(self.readers), np.zeros_like(self.readers)
        return self.beside

    def beside_at(self, where: Granules) -> list[Access]:
        """Distinct readers of these granules that `beside` records."""
        found = {i for kept in self.beside or () for i in _distinct(kept[where])}
        return [self.accesses[i - 1] for i in sorted(found) if i]

    def record_write(self, where: Granules, access: Access) -> None:
        super().record_write(where, access)
        for kept in self.beside or ():
            kept[where] = 0

    def refine(self, pieces: int) -> None:
        super().refine(pieces)
        if self.beside is not None:
            near, far = self.beside
            self.beside = np.repeat(near, pieces), np.repeat(far, pieces)

    def record_writes(
        self,
        where: NDArray[np.int64],
        count: int,
        which: NDArray[np.signedinteger],
        accesses: Sequence[Access | Twin],
    ) -> None:
        """Records several writes, each as `record_write` does. which: the access for each run of
        `count` granules.
        """
        if len(self.accesses) + len(accesses) >= self._room:
            self._compact()
        first = self.admit(accesses)
        for readers in (self.readers, *(self.beside or ())):
            _record_runs(where, count, which + first, self.writer, readers)

    def admit(self, accesses: Sequence[Access | Twin]) -> np.int32:
        """Appends accesses; returns the number that `writer` stores for the first of them."""
        first = len(self.accesses) + 1
        self.accesses.extend(accesses)
        return np.int32(first)

    def make_room(self, count: int) -> int:
        """Reserves numbers for up to `count` further accesses, and returns the first."""
        if len(self.accesses) + count >= self._room:
            self._compact()
        return len(self.accesses) + 1

    def follow(self, loads: Loads) -> None:
        """Records loads as `record_read` would. `readers` must already contain their numbers, which
        begin at the result of `make_room`.
        """
        lines = self.lines()
        self.accesses.extend([loads] * len(loads.which))
        more = np.full(len(loads.which), self.line(loads.component), np.int32)
        self._lines = np.concatenate([lines, more])

    def line(self, component: Component) -> int:
        """The number by which `lines` and `LaneShadow.warp` represent a component."""
        return self._warp(component)

    def ctas(self) -> NDArray[np.int32]:
        """For each component number of `line`, a number that represents its CTA."""
        if len(self._ctas) <= len(self._warps):
            numbers: dict[Hashable, int] = {}
            owners = (issuer(component)[0] for component in self._warps)
            found = [numbers.setdefault(owner, len(numbers)) for owner in owners]
            self._ctas = np.array([-1, *found], np.int32)
        return self._ctas

    def lines(self) -> NDArray[np.int32]:
        """For each access, by its number, the component number that `line` returns; 0 for access
        number 0, which stands for no access.
        """
        more = [self._warp(component) for component in self.accesses.lines(len(self._lines) - 1)]
        if more:
            self._lines = np.concatenate([self._lines, np.array(more, np.int32)])
        return self._lines

    def _compact(self) -> None:
        lines = self.lines() if len(self._lines) > 1 else self._lines
        named = np.zeros(len(self.accesses) + 1, bool)
        for part in self._records():
            named[part] = True
        named[0] = True
        renamed = np.cumsum(named, dtype=np.int32) - 1
        for part in self._records():
            part[...] = renamed[part]
        self.accesses.keep(named[1:].tolist())
        self._lines = lines[: len(named)][named[: len(lines)]]
        self._leave_room()

    def _records(self) -> Iterator[NDArray[np.int32]]:
        """All that names accesses, in parts: it is as large as the memory."""
        for record in (self.writer, self.readers, self.constant, *(self.beside or ())):
            if record is not None:
                yield from (record[at : at + PART] for at in range(0, len(record), PART))


@jit
def _record_runs(
    where: NDArray[np.int64],
    count: int,
    access: NDArray[np.signedinteger],
    writer: NDArray[np.int32],
    readers: NDArray[np.int32],
) -> None:
    for n in range(where.size):
        for granule in range(where[n], where[n] + count):
            writer[granule] = access[n]
            if readers[granule] != 0:  # else its pages stay as they are: none
                readers[granule] = 0


def _same_line(a: Access, b: Access) -> bool:
    """Whether being ordered after ``b`` implies being ordered after the earlier ``a``."""
    same = a.component == b.component and a.kind == b.kind and a.target == b.target
    return same and a.strong == b.strong


def _distinct(values: NDArray[np.int32]) -> list[int]:
    """The different values, sorted. Accesses cover runs of granules: mostly one, seldom many."""
    flat = values.ravel()
    if flat.size <= FEW:
        return sorted(set(flat.tolist()))
    steps = flat[1:] != flat[:-1]
    if not np.count_nonzero(steps):
        return [flat.item(0)]
    heads = flat[1:][steps]
    if heads.size > FEW:
        return np.unique(np.append(heads, flat[0])).tolist()
    return sorted({flat.item(0), *heads.tolist()})
