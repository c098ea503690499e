"""The shift-reuse steps of a convolution, read from the tile program itself.

`read_schedule` follows a CTA's program (the result of ``tile-conv-shift-reuse`` with tiling rows
and halo mask; others are rejected): which pixel each TMA box puts on which row, which rows each
copy puts on which lanes, what every ``.ashift`` moves, and which lanes the epilogue stores.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from tcir.errors import InputError
from tcir.layout.tmem import LANES

from .walk import Object, Step, Walk, kernel_of

QUARTER = LANES // 4

DRAWN = (
    "expected the result of tile-conv-shift-reuse with tiling=rows and halo=mask (what is drawn: "
    "the pixel on each lane at each tap of a filter row, and the lanes that are stored)"
)
# Any op without a handler is an error; these messages name the pass option that brought it, which
# only the pass knows.
_OPTION_OF = {
    "tc.lane_masks": "tiling=linear",
    "tc.lane_index": "a tiling other than rows, or to a dilation",
    "tc.refresh": "halo=refresh",
    "tc.shift": "shift=shift",
}


@dataclass(frozen=True)
class Pixel:
    """Coordinates in the input, from the last (W) to the first (N); outside: zeros were loaded."""

    coordinates: tuple[int, ...]
    outside: bool


@dataclass(frozen=True)
class Lane:
    """The pixel a lane holds; stale: a shift left old data there."""

    pixel: Pixel | None
    stale: bool = False


@dataclass(frozen=True)
class Tap:
    """One mma: the filter tap it multiplies by, and what its lanes hold."""

    row: int
    column: int
    channel: int
    k_slice: int
    shift: bool
    lanes: tuple[Lane, ...]
    copy: int  # which copy to tensor memory it multiplies; a stride of 2 has two


@dataclass
class Schedule:
    """All taps in order, and the output coordinates each lane stores (None: masked)."""

    function: str
    taps: list[Tap] = field(default_factory=list)
    stores: list[tuple[int, ...] | None] = field(default_factory=lambda: [None] * LANES)
    output: tuple[int, ...] = ()

    def of_filter_row(self, row: int) -> list[Tap]:
        """The taps of the first K slice and channel step of a filter row."""
        taps = [tap for tap in self.taps if tap.row == row]
        if not taps:
            rows = sorted({tap.row for tap in self.taps})
            raise InputError(f"expected a filter row of {rows}, got {row}")
        first = taps[0]
        return [t for t in taps if (t.k_slice, t.channel) == (first.k_slice, first.channel)]


@dataclass(frozen=True)
class _Map:
    dims: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]  # of the box, in elements: the strides of the convolution


@dataclass
class _Reader:
    schedule: Schedule
    maps: dict[int, _Map] = field(default_factory=dict)
    loads: dict[int, list[tuple[int, _Map, list[int]]]] = field(default_factory=dict)
    tensor: dict[tuple[int, int], tuple[Lane, ...]] = field(default_factory=dict)

    def visit(self, step: Step) -> Any:
        name = step.name
        handler = {
            "tc.make_tensor_map": self._map, "tc.tma_load": self._load, "tc.cp": self._copy,
            "tc.mma": self._mma, "tc.tmem_ld": self._read, "tc.store_rows": self._store,
        }.get(name)  # fmt: skip
        if handler is not None:
            return handler(step)
        if name.startswith("arith.") and step.operands:
            return step.operands[0]  # value conversions keep the lanes
        if name in _OPTION_OF:
            raise InputError(f"{DRAWN}, got {name}, which belongs to {_OPTION_OF[name]}")
        if name.startswith("tc.") and name not in ("tc.smem_tile", "tc.tmem_tile"):
            raise InputError(
                f"{name} is not part of a sequential tile program; give the result of "
                "tile-conv-shift-reuse, before the passes that follow it"
            )
        return None

    def _map(self, step: Step) -> Object:
        mode = str(step.operation.attributes["mode"].value)
        if mode != "tiled":
            raise InputError(f"{DRAWN}, got a tensor map of mode {mode}, which tiling=packed uses")
        key = 2_000_000 + len(self.maps)
        self.maps[key] = _Map(
            tuple(step.integers("dims")),
            tuple(step.integers("box")),
            tuple(step.integers("element_strides")),
        )
        return Object("map", key, "")

    def _load(self, step: Step) -> None:
        segments = step.integers("operandSegmentSizes")
        described = self.maps[step.operands[0].key]
        coordinates = step.operands[1 : 1 + segments[1]]
        tile = next(o for o in step.operands if isinstance(o, Object) and "!tc.smem" in o.type)
        self.loads.setdefault(tile.key, []).append((step.integer("row"), described, coordinates))

    def _pixels(self, key: int) -> dict[int, Pixel]:
        """The pixel on each row of a tile; later loads replace earlier ones."""
        rows: dict[int, Pixel] = {}
        for row, described, start in self.loads.get(key, []):
            steps = described.steps[1:]
            extents = [-(-size // step) for size, step in zip(described.box[1:], steps)]
            for r in range(prod(extents)):
                rest, point = r, []
                for extent, step, first in zip(extents, steps, start[1:]):
                    point.append(first + rest % extent * step)
                    rest //= extent
                outside = any(not 0 <= c < n for c, n in zip(point, described.dims[1:]))
                rows[row + r] = Pixel(tuple(point), outside)
        return rows

    def _filter(self, tile: Object) -> tuple[int, int, int]:
        """Filter row, filter column and channel of a tile of the filter."""
        loads = self.loads.get(tile.key)
        if not loads or len(loads[0][2]) != 4:
            raise InputError(
                "an mma reads a filter tile that was not filled by a TMA load of four coordinates"
            )
        at = loads[0][2]
        # hwcf is contiguous along K: coordinates K, C, S, R; fhwc: C, S, R, K.
        return (at[3], at[2], at[1]) if '"MN"' in tile.type else (at[2], at[1], at[0])

    def _copy(self, step: Step) -> None:
        source, target = step.operands[:2]
        rows = self._pixels(source.key)
        if not rows:
            raise InputError("tc.cp reads a tile that was not filled by a TMA load of the input")
        lanes = tuple(Lane(rows.get(lane)) for lane in range(LANES))
        self.tensor[target.key, step.integer("slice")] = lanes

    def _mma(self, step: Step) -> None:
        a, b = step.operands[1:3]
        at = a.key, step.integer("a_slice")
        if at not in self.tensor:
            raise InputError(
                "expected an mma whose A was copied to tensor memory, got another one: this "
                "program does not reuse its input by shifts"
            )
        lanes, shift = self.tensor[at], step.flag("ashift")
        row, column, channel = self._filter(b)
        self.schedule.taps.append(Tap(row, column, channel, at[1], shift, lanes, a.key))
        if shift:
            # PTX ISA 9.7.16.10.9: after the product; lane 31 of a sub-partition keeps its value.
            self.tensor[at] = tuple(
                Lane(lanes[i].pixel, True) if i % QUARTER == QUARTER - 1 else lanes[i + 1]
                for i in range(LANES)
            )

    def _read(self, step: Step) -> Object:
        quarter = step.operands[1]
        return Object("rows", quarter, "")

    def _store(self, step: Step) -> None:
        value, target, *indices = step.operands
        rows, dimension = step.integer("rows"), step.integer("row_dim")
        extents = [int(n) for n in target.type.split("<")[1].split("x")[: len(indices)]]
        self.schedule.output = tuple(extents)
        for i in range(rows):
            place = list(indices)
            place[dimension] += i
            if all(0 <= c < n for c, n in zip(place, extents)):
                self.schedule.stores[value.key * QUARTER + i] = tuple(place[:-1])


def read_schedule(module: Any, cta: tuple[int, int, int] = (0, 0, 0)) -> Schedule:
    """The schedule of one CTA; InputError for programs that do not shift their input."""
    kernel = kernel_of(module)
    schedule = Schedule(str(kernel.attributes["sym_name"].value))
    Walk(_Reader(schedule).visit, dict(zip("xyz", cta))).function(kernel)
    if not schedule.taps:
        raise InputError(
            "expected a convolution of tile-conv-shift-reuse, got a kernel without mma"
        )
    return schedule
