"""The shift-reuse steps of a convolution, read from the tile program itself.

`read_schedule` follows a CTA's program (the result of ``tile-conv-shift-reuse``). It records the
pixels that each TMA load puts on rows and the rows that each copy puts on lanes. It also records
which lanes an ``.ashift`` or ``tcgen05.shift`` moves, a refresh fills from the halo, an mma
disables, and the epilogue stores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tcir.errors import InputError
from tcir.layout.tmem import LANES

from .traversal import Map, Pixel
from .walk import KernelWalk, Object, VisitedOp, kernel_of, nested

QUARTER = LANES // 4
_TILES = {"tc.smem_tile", "tc.tmem_tile", "tc.lane_masks", "tc.tmem_st", "tc.load_rows"}
"""Ops on tiles that hold no pixels of the input: new tiles, zeros, and reads of the epilogue."""


@dataclass(frozen=True)
class Lane:
    """The pixel that a lane holds. stale: a shift left an old pixel in the lane; halo: the pixel
    came from the halo by a refresh.
    """

    pixel: Pixel | None
    stale: bool = False
    halo: bool = False


@dataclass(frozen=True)
class Tap:
    """One mma of the convolution: the filter tap by which it multiplies, and the pixels that its
    lanes hold.

    shift: the shift that follows the mma and moves every pixel one lane down: ".ashift" or
        "tcgen05.shift"; "": there is none. refresh: lanes that receive a pixel of the halo
        afterwards.
    """

    row: int
    column: int
    channel: int
    k_slice: int
    shift: str
    lanes: tuple[Lane, ...]
    copy: int  # which copy to tensor memory it multiplies; a stride of 2 has two
    enabled: tuple[bool, ...] = (True,) * LANES  # False: disable-output-lane keeps the lane's sum
    refresh: tuple[int, ...] = ()


@dataclass
class TapSchedule:
    """All taps in order, and the output coordinates that each lane stores (None: the lane is
    masked).
    """

    function: str
    taps: list[Tap] = field(default_factory=list)
    stores: list[tuple[int, ...] | None] = field(default_factory=lambda: [None] * LANES)
    output: tuple[int, ...] = ()

    def of_filter_row(self, row: int) -> list[Tap]:
        """Returns the taps of the first K slice and channel step of a filter row."""
        taps = [tap for tap in self.taps if tap.row == row]
        if not taps:
            rows = sorted({tap.row for tap in self.taps})
            raise InputError(f"expected a filter row of {rows}, got {row}")
        first = taps[0]
        return [t for t in taps if (t.k_slice, t.channel) == (first.k_slice, first.channel)]


def _extents(memory: Object) -> tuple[int, ...]:
    """Returns the shape of a memref."""
    return tuple(int(n) for n in re.findall(r"(\d+)x", memory.type.split("<")[1].split(",")[0]))


@dataclass(frozen=True)
class _Load:
    row: int
    map: Map
    start: list[int]
    offsets: list[int]
    halo: int

    def pixels(self) -> list[Pixel]:
        return self.map.pixels(self.start[1:], self.offsets, self.halo)


@dataclass
class _Reader:
    schedule: TapSchedule
    shifted: tuple[int, ...]
    """The sub-partitions that the kernel's tcgen05.shift ops name; a single one means all."""
    maps: dict[int, Map] = field(default_factory=dict)
    loads: dict[int, list[_Load]] = field(default_factory=dict)
    tensor: dict[tuple[int, int], tuple[Lane, ...]] = field(default_factory=dict)
    masks: dict[tuple[int, int, int], tuple[int, ...]] = field(default_factory=dict)
    enabled: dict[int, tuple[bool, ...]] = field(default_factory=dict)
    quarter: int = 0
    """The sub-partition whose sums were read last, and are stored next."""

    def visit(self, step: VisitedOp) -> Any:
        name = step.name
        handler = {
            "tc.make_tensor_map": self._map, "tc.tma_load": self._load, "tc.cp": self._copy,
            "tc.mma": self._mma, "tc.tmem_ld": self._read, "tc.store_rows": self._store,
            "tc.store_lanes": self._store_lanes, "tc.write_lane_mask": self._write_mask,
            "tc.enable_lanes": self._enable, "tc.lane_index": self._lane_index,
            "tc.shift": self._shift, "tc.refresh": self._refresh,
        }.get(name)  # fmt: skip
        if handler is not None:
            return handler(step)
        if name.startswith("tc.") and name not in _TILES:
            raise InputError(
                f"{name} is not part of a sequential tile program; give the result of "
                "tile-conv-shift-reuse, before the passes that follow it"
            )
        return None

    def _map(self, step: VisitedOp) -> Object:
        key = 2_000_000 + len(self.maps)
        self.maps[key] = Map(
            str(step.operation.attributes["mode"].value),
            tuple(step.integers("dims")),
            tuple(step.integers("box")),
            tuple(step.integers("element_strides")),
            tuple(step.integers("corners")),
            _extents(step.operands[0])[-2::-1],
        )
        return Object("map", key, "")

    def _load(self, step: VisitedOp) -> None:
        segments = step.integers("operandSegmentSizes")
        described = self.maps[step.operands[0].key]
        at = 1 + segments[1]
        coordinates, offsets = step.operands[1:at], step.operands[at : at + segments[2]]
        tile = next(o for o in step.operands if isinstance(o, Object) and "!tc.smem" in o.type)
        load = _Load(step.integer("row"), described, coordinates, offsets, step.integer("halo"))
        self.loads.setdefault(tile.key, []).append(load)

    def _pixels(self, key: int) -> dict[int, Pixel]:
        """Returns the pixel on each row of a tile; later loads replace earlier ones."""
        rows: dict[int, Pixel] = {}
        for load in self.loads.get(key, []):
            rows |= enumerate(load.pixels(), load.row)
        return rows

    def _filter(self, tile: Object) -> tuple[int, int, int]:
        """Returns filter row, filter column and channel of a tile of the filter."""
        loads = self.loads.get(tile.key)
        if not loads or len(loads[0].start) != 4:
            raise InputError(
                "an mma reads a filter tile that was not filled by a TMA load of four coordinates"
            )
        at = loads[0].start
        # hwcf is contiguous along K: coordinates K, C, S, R; fhwc: C, S, R, K.
        return (at[3], at[2], at[1]) if '"MN"' in tile.type else (at[2], at[1], at[0])

    def _copy(self, step: VisitedOp) -> None:
        source, target = step.operands[:2]
        rows = self._pixels(source.key)
        if not rows:
            raise InputError("tc.cp reads a tile that was not filled by a TMA load of the input")
        lanes = tuple(Lane(rows.get(lane)) for lane in range(LANES))
        self.tensor[target.key, step.integer("slice")] = lanes

    def _mma(self, step: VisitedOp) -> None:
        a, b = step.operands[1:3]
        at = a.key, step.integer("a_slice")
        if at not in self.tensor:
            raise InputError(
                "expected an mma whose A was copied to tensor memory, got another one: this "
                "program does not reuse its input by shifts"
            )
        lanes, shift = self.tensor[at], ".ashift" if step.flag("ashift") else ""
        row, column, channel = self._filter(b)
        enabled = self.enabled.get(step.operands[0].key, (True,) * LANES)
        self.schedule.taps.append(Tap(row, column, channel, at[1], shift, lanes, a.key, enabled))
        if shift:
            self.tensor[at] = _moved(lanes, range(LANES // QUARTER))  # after the product

    def _shift(self, step: VisitedOp) -> None:
        (tile,) = step.operands
        at, quarter = (tile.key, step.integer("slice")), step.integer("quarter")
        quarters = [quarter] if len(self.shifted) > 1 else range(LANES // QUARTER)
        self.tensor[at] = _moved(self.tensor[at], quarters)
        self._then(at, shift="tcgen05.shift")

    def _refresh(self, step: VisitedOp) -> None:
        source, target = step.operands
        at, row = (target.key, step.integer("slice")), step.integer("row")
        rows, lanes = self._pixels(source.key), list(self.tensor[at])
        fresh = range(QUARTER - 1, LANES, QUARTER)
        for i, lane in enumerate(fresh):
            lanes[lane] = Lane(rows.get(row + i), halo=True)
        self.tensor[at] = tuple(lanes)
        self._then(at, refresh=tuple(fresh))

    def _then(self, at: tuple[int, int], shift: str = "", refresh: tuple[int, ...] = ()) -> None:
        """Records the shift or refresh after the last mma that read this slice."""
        taps = self.schedule.taps
        last = max(i for i, tap in enumerate(taps) if (tap.copy, tap.k_slice) == at)
        taps[last] = replace(
            taps[last], shift=shift or taps[last].shift, refresh=refresh or taps[last].refresh
        )

    def _read(self, step: VisitedOp) -> None:
        self.quarter = step.operands[1]

    def _lane_index(self, _: VisitedOp) -> tuple[int, ...]:
        return tuple(range(QUARTER))

    def _write_mask(self, step: VisitedOp) -> None:
        table, tap, quarter, lanes = step.operands
        if not isinstance(lanes, tuple):
            raise InputError("expected masks computed from indices, got one that depends on data")
        self.masks[table.key, tap, quarter] = lanes

    def _enable(self, step: VisitedOp) -> Object:
        tile, table, tap = step.operands
        key = 3_000_000 + len(self.enabled)
        quarters = [self.masks.get((table.key, tap, q), ()) for q in range(LANES // QUARTER)]
        if not all(quarters):
            raise InputError(f"tc.enable_lanes reads mask {tap}, which not every warp has written")
        self.enabled[key] = tuple(bool(lane) for quarter in quarters for lane in quarter)
        return Object(tile.kind, key, tile.type)

    def _store(self, step: VisitedOp) -> None:
        _, target, *indices = step.operands
        dimension = step.integer("row_dim")
        for i in range(step.integer("rows")):
            place = list(indices)
            place[dimension] += i
            self._stored(target, i, place)

    def _store_lanes(self, step: VisitedOp) -> None:
        _, target, *indices = step.operands
        columns = [x if isinstance(x, tuple) else (x,) * QUARTER for x in indices]
        for i, place in enumerate(zip(*columns, strict=True)):
            self._stored(target, i, list(place))

    def _stored(self, target: Object, lane: int, place: list[int]) -> None:
        """Records a lane's output, unless it is outside the tensor."""
        extents = _extents(target)
        self.schedule.output = extents
        if all(0 <= c < n for c, n in zip(place, extents, strict=True)):
            self.schedule.stores[self.quarter * QUARTER + lane] = tuple(place[:-1])


def _moved(lanes: Sequence[Lane], quarters: Iterable[int]) -> tuple[Lane, ...]:
    """Returns the lanes after a shift, in which lane 31 of a sub-partition keeps its value (PTX ISA
    9.7.16.10.9)."""
    found = list(lanes)
    for quarter in quarters:
        first, last = quarter * QUARTER, (quarter + 1) * QUARTER - 1
        found[first:last] = lanes[first + 1 : last + 1]
        found[last] = Lane(lanes[last].pixel, True)
    return tuple(found)


def read_schedule(module: Any, cta: tuple[int, int, int] = (0, 0, 0)) -> TapSchedule:
    """Reads the schedule of one CTA. Raises InputError for programs that do not shift their
    input.
    """
    kernel = kernel_of(module)
    schedule = TapSchedule(str(kernel.attributes["sym_name"].value))
    named = {int(op.attributes["quarter"].value) for op in nested(kernel)
             if op.name == "tc.shift"}  # fmt: skip
    KernelWalk(_Reader(schedule, tuple(named)).visit, dict(zip("xyz", cta))).function(kernel)
    if not schedule.taps:
        raise InputError(
            "expected a convolution of tile-conv-shift-reuse, got a kernel without mma"
        )
    return schedule
