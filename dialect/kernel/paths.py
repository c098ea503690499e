"""Finds tiles that two warp roles access in turn, and the paths of mbarriers that order these
accesses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import combinations

from tcir._mlir import arith, ir, scf
from tcir.dialect.attributes import constant_of, defining, optional_integer
from tcir.dialect.kernel.completion import barrier_of
from tcir.dialect.kernel.view import KernelOp, KernelView
from tcir.dialect.loops import EXCHANGES
from tcir.dialect.ops.block_scale import MmaBlockScaleOp
from tcir.dialect.ops.compute import MmaOp
from tcir.dialect.ops.lanes import EnableLanesOp
from tcir.dialect.ops.memory import SHARES, SlotOp
from tcir.dialect.ops.movement import TmemLdOp, TmemStOp
from tcir.dialect.ops.smem_part import whole_tile
from tcir.dialect.ops.structure import RoleOp
from tcir.dialect.ops.sync import CommitOp, MbarrierArriveOp, MbarrierWaitOp
from tcir.dialect.ops.tma import TmaLoadOp
from tcir.dialect.ops.tmem_words import TmemLdWordsOp, TmemStWordsOp
from tcir.dialect.ops.warpgroup import WGMMA_OPS
from tcir.dialect.types import RingType, SmemType, TmemType
from tcir.dialect.walk import walk

MULTIPLIES = MmaOp | MmaBlockScaleOp


@dataclass(frozen=True)
class TileAccess:
    """An access to a tile in shared or tensor memory, or to a slot of a ring of tiles."""

    site: KernelOp
    tile: ir.Value
    writes: bool


@dataclass(frozen=True)
class Path:
    """A path from the last access of one warp role in an iteration to the first access of another
    role, or to the first access of other columns: the waits that order the second access after the
    first.

    waits: the mbarrier waits, in order; None: nothing orders the accesses
    turns: number of iterations between the two accesses that the parities of the waits imply
    """

    before: TileAccess
    after: TileAccess
    waits: tuple[KernelOp, ...] | None
    turns: int = 0


@dataclass(frozen=True)
class Reuse:
    """A tile that two places of a kernel access, or columns that two tiles share. It has the path
    from the first access to the second and, if a loop repeats both accesses, the path from the
    second back to the first.

    most: largest number of iterations that both paths together may take
    """

    there: Path
    back: Path | None
    most: int

    @property
    def paths(self) -> list[Path]:
        """The path from the first access to the second, and the path back if there is one."""
        return [self.there] if self.back is None else [self.there, self.back]

    @property
    def missing(self) -> list[Path]:
        """Paths that no wait establishes, and paths that together take more iterations than
        allowed."""
        late = sum(path.turns for path in self.paths) > self.most
        return [path for path in self.paths if path.waits is None or late and path.turns]


def reuses_of(kernel: KernelView) -> list[Reuse]:
    """Finds each pair of accesses of different roles to one tile, where at least one access writes
    it. The accesses are in loops of these roles, or in parts of the roles outside loops. Also finds
    columns that one product reads as A and another product overwrites."""
    groups: dict[ir.Value, dict[_Place, list[TileAccess]]] = {}
    for access in accesses_of(kernel):
        if access.site.role is not None:
            place = _Place.of(kernel, access.site)
            groups.setdefault(access.tile, {}).setdefault(place, []).append(access)
    found: list[Reuse] = []
    for of_places in groups.values():
        order = sorted(of_places, key=lambda place: place.stage)
        for first, second in combinations(order, 2):
            one, other = of_places[first], of_places[second]
            if first.role == second.role or not any(each.writes for each in (*one, *other)):
                continue
            there, back = (_path(kernel, a[-1], b[0]) for a, b in ((one, other), (other, one)))
            if first.stage == second.stage and first.loop:
                found.append(Reuse(there, back, slots_of(there.before.tile)))
                continue
            if first.stage == second.stage and there.waits is None:
                there = back
            found.append(Reuse(there, None, int(not isinstance(there.before.site.op, MULTIPLIES))))
    return found + [
        Reuse(_path(kernel, reads[-1], writes[0]), None, 1)
        for tile, of_places in groups.items()
        for shared, others in groups.items()
        if _share(tile, shared)
        for place, reads in of_places.items()
        for writes in [others.get(place, [])]
        if writes and isinstance(writes[0].site.op, MULTIPLIES) and not reads[-1].writes
    ]


def accesses_of(kernel: KernelView) -> Iterator[TileAccess]:
    """Yields the accesses to tiles in shared and tensor memory, in program order."""
    for site in kernel.sites:
        op = site.op
        if isinstance(op, TmaLoadOp):
            yield TileAccess(site, _tile(op.tile), True)
        elif isinstance(op, TmemLdOp | TmemLdWordsOp):
            yield TileAccess(site, _tile(op.source), False)
        elif isinstance(op, TmemStOp | TmemStWordsOp):
            yield TileAccess(site, _tile(op.target), True)
        elif isinstance(op, MULTIPLIES):
            yield TileAccess(site, _tile(op.d), True)
            if isinstance(op.a.type, TmemType):
                yield TileAccess(site, _tile(op.a), False)
        for name in site.traits.reads_shared:
            read = getattr(op, name)
            for tile in [read] if isinstance(read, ir.Value) else read:
                if isinstance(tile.type, SmemType):
                    yield TileAccess(site, _tile(tile), False)


def slots_of(value: ir.Value) -> int:
    """Number of slots of a ring; 1 for a value that is not a ring."""
    return value.type.count if isinstance(value.type, RingType) else 1


@dataclass(frozen=True)
class _Place:
    """A role's part before its loops, one of these, or the part after them (`stage` 0, 1, 2)."""

    role: RoleOp
    loop: ir.Operation | None
    stage: int

    @classmethod
    def of(cls, kernel: KernelView, site: KernelOp) -> _Place:
        assert site.role is not None
        if loops := loops_of(site.op):
            return cls(site.role, loops[0], 1)
        mine = [each for each in kernel.sites if _same_role(each, site)]
        behind = mine[next(n for n, each in enumerate(mine) if each is site) :]
        return cls(site.role, None, 0 if any(loops_of(each.op) for each in behind) else 2)


def _path(kernel: KernelView, before: TileAccess, after: TileAccess) -> Path:
    """The path of the fewest iterations: an arrival after `before` in its role, of a load its own
    one, a wait on its barrier, an arrival after that, and so on, up to a wait before `after`.
    Between accesses in equally deep loops all are as deep, as others are not in every iteration."""
    sites = kernel.sites
    start, end = (
        next(n for n, site in enumerate(sites) if site is access.site) for access in (before, after)
    )
    depths = {len(loops_of(access.site.op)) for access in (before, after)}
    loaded = isinstance(before.site.op, TmaLoadOp)

    def usable(site: KernelOp) -> bool:
        return site.role is not None and (len(depths) > 1 or len(loops_of(site.op)) in depths)

    bars = {n: bar for n, site in enumerate(sites) if (bar := arrival_of(site)) and usable(site)}
    waits = [
        n for n, site in enumerate(sites) if isinstance(site.op, MbarrierWaitOp) and usable(site)
    ]
    found: list[tuple[int, int, tuple[int, ...]]] = [(0, start, ())]
    seen: set[int] = set()
    while found:
        turns, at, path = heappop(found)
        if path and at == end:
            return Path(before, after, tuple(sites[n] for n in path), turns)
        if at in seen:
            continue
        seen.add(at)
        if path and (more := _iterations(sites, at, end)) is not None:
            heappush(found, (turns + more, end, path))
        for arrival, bar in bars.items():
            more = 0 if arrival == at else _iterations(sites, at, arrival)
            if more is None or not path and loaded and arrival != at:
                continue
            for wait in waits:
                if barrier_of(sites[wait].op.bar) == bar:
                    later = turns + more + _flipped(sites[wait].op)
                    heappush(found, (later, wait, (*path, wait)))
    return Path(before, after, None)


def _tile(value: ir.Value) -> ir.Value:
    masked = defining(value, EnableLanesOp)
    tile = whole_tile(masked.d if masked else value)
    slot = defining(tile, SlotOp)
    return tile if slot is None else slot.ring


def arrival_of(site: KernelOp) -> ir.Value | None:
    """The mbarrier on which an op arrives, or on which a load counts its bytes; None if the op uses
    no mbarrier."""
    if isinstance(site.op, CommitOp | MbarrierArriveOp):
        return barrier_of(site.op.bar)
    if isinstance(site.op, TmaLoadOp) and site.op.signal is not None:
        return barrier_of(site.op.signal)
    return None


def _same_role(site: KernelOp, other: KernelOp) -> bool:
    return site.role is not None and other.role is not None and site.role == other.role


def _iterations(sites: list[KernelOp], first: int, last: int) -> int | None:
    """Iterations from one op of a role to another: 0 to a later one, 1 to an earlier one of the
    same loop; None: it is never executed after the first."""
    if not _same_role(sites[first], sites[last]):
        return None
    if first < last:
        return 0
    loops = loops_of(sites[first].op)
    return 1 if any(loop in loops for loop in loops_of(sites[last].op)) else None


def loops_of(op: ir.OpView) -> list[ir.Operation]:
    """The loops around an op that contain loads, products or exchanges, the innermost loop
    first."""
    found, around = [], op.operation.parent
    while around is not None and around.name != RoleOp.OPERATION_NAME:
        if around.name == scf.ForOp.OPERATION_NAME and any(map(_takes_turns, walk(around))):
            found.append(around)
        around = around.parent
    return found


def _takes_turns(op: ir.OpView) -> bool:
    return isinstance(op, (TmaLoadOp, MmaOp, MmaBlockScaleOp, *WGMMA_OPS)) or (
        EXCHANGES in op.operation.attributes
    )


def _share(tile: ir.Value, other: ir.Value) -> bool:
    numbers = [optional_integer(each.owner.opview, SHARES) for each in (tile, other)]
    return tile != other and numbers[0] is not None and numbers[0] == numbers[1]


def _flipped(wait: MbarrierWaitOp) -> int:
    """Iterations between an arrival and a wait for it: with the parity 1 - p as many as the barrier
    has slots."""
    parity = defining(wait.parity, arith.SubIOp)
    return slots_of(barrier_of(wait.bar)) if parity and constant_of(parity.lhs) == 1 else 0
