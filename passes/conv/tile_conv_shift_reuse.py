"""tile-conv-shift-reuse: tiles a convolution so that an input tile stays in tensor memory for all
taps of a filter row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.cta_pair import PAIR
from tcir.dialect.limits import (
    MMA_K_BYTES,
    QUARTER_LANES,
    QUARTERS,
    SWIZZLE_ATOM_ROWS,
    SWIZZLE_SPANS,
    TMEM_LANES,
)
from tcir.passes.conv.halo import (
    HALO_LOADS,
    HALOS,
    QUARTERS_OF_A_SHIFT,
    SHIFTS,
    HaloRows,
    multiply_shifted,
)
from tcir.passes.conv.im2col import check_filter_rows, choose_channels, tiles_of_filters
from tcir.passes.conv.linear import LinearTiling
from tcir.passes.conv.packed import PackedTiling
from tcir.passes.conv.rows import RowsTiling
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.shift_classes import ShiftClasses
from tcir.passes.conv.sources import ConvTiling, find_convolutions
from tcir.passes.conv.tiling import Boxes, OutputTiling
from tcir.passes.conv.wide import WideTiling
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64, mma, of_pair
from tcir.passes.emit.cluster import ClusterShape
from tcir.passes.emit.diagnostics import SMALLEST_CONV, match_failure
from tcir.passes.emit.index import Index
from tcir.passes.emit.lanes import LaneValue, spread
from tcir.passes.emit.limits import ceil_div, round_up
from tcir.passes.emit.operand_tiles import TiledOperand, k_major
from tcir.passes.emit.staged_store import RowBoxes
from tcir.passes.emit.tile_kernel import (
    Accumulate,
    Source,
    accumulator,
    argument,
    loop,
)
from tcir.passes.kernels import legal
from tcir.passes.kernels.cores.tcgen05 import OfTensorMemory
from tcir.passes.kernels.product import OfMatrices, Store, TilePlace
from tcir.passes.kernels.stores.epilogue_tile import TileStores
from tcir.passes.kernels.stores.lanes import box_store, lane_store
from tcir.passes.kernels.tile import tile
from tcir.passmanager.pipeline import register_pass

TILINGS: dict[str, Callable[[ConvShape, ShiftClasses], OutputTiling]] = {
    "rows": RowsTiling,
    "linear": LinearTiling,
    "packed": PackedTiling,
}


@register_pass
@dataclass(frozen=True)
class TileConvShiftReuse(ConvTiling):
    """Turns ``tc.conv2d`` into the program of one CTA, in program order.

    n_tile: output channels of a tile, N of the mma; 0 chooses
    n_tiles: tiles of `n_tile` channels that a CTA computes from the same pixels in shared memory,
             each with its own accumulator and its own copy of the pixels in tensor memory
    persistent, ctas, scheduler, epilogue_warps: as in tile-gemm
    store, store_stages, epilogue_tile: as in tile-gemm; with store=tma (tiling=rows) a box has the
                                        outputs of a sub-partition
    cta_group: 2: pairs of CTAs compute two tiles together, each with half of the filters; the first
               CTA of a pair copies and shifts the pixels of both
    cluster: Mx1: CTAs along units of pixels, each of which loads a part of the filters
    halo:   ``mask``: lanes without a new pixel are computed and not stored; ``refresh``: the last
            lane of each sub-partition gets its pixel from shared memory after every shift
    shift:  with halo=refresh, ``ashift``: the mma shifts, and the refresh waits for the mma;
            ``shift``: tcgen05.shift shifts, which the ISA orders before the refresh
    shift_quarters: whether tcgen05.shift is assumed to move ``one`` sub-partition or ``all``
    halo_load: with halo=refresh, ``boxes``: a TMA load for each pixel of the halo; ``w128``: one
               load of mode im2col::w::128 for A tile and halo
    tiling: ``rows``: a sub-partition holds adjacent pixels of one output row; ``packed``: output
            rows follow one another on the lanes; ``linear``: lanes run over the flattened input,
            and each tap's mma masks the lanes whose pixel is padding

    The sums may be in parts (``k_part``), each with the same number of filter rows.

    Before::

        %y = "tc.conv2d"(%x, %w) {…} : (tensor<1x56x56x64xf16>, tensor<3x3x64x64xf16>) -> …

    After (`func.func @f(%x: memref, %w: memref, %y: memref) attributes {tc.kernel, tc.grid, …}`)::

        %d = "tc.tmem_tile"() : !tc.tmem<128x64, f32>
        scf.for %i = 0 to R * ceil(C / 64) {
          per class of taps (one for stride 1):
            %a = "tc.smem_tile"()     // 4 sub-partitions x 32 pixels, one lane apart, x 64 channels
            "tc.tma_load"(%map_x, …, %a) {row = 0, 32, 64, 96}
          %b0, %b1, %b2 = …           // the filter, one tile per tap of the row
          "tc.tma_load"(%map_w, …, %b0) …
          %ta = "tc.tmem_tile"()      // one per class
          per K slice j, per class:
            "tc.cp"(%a, %ta) {slice = j}
            "tc.mma"(%d, %ta, %b0) {ashift = true}; "tc.mma"(%d, %ta, %b1) {ashift = true};
            "tc.mma"(%d, %ta, %b2) {ashift = false}
        }
        scf.for %quarter { scf.for %column { tc.tmem_ld, round, tc.store_rows {rows = 30} } }

    Preserves the value of every output element up to the order of the f32 sums, and the location
    of the convolution on every op.
    """

    name: ClassVar[str] = "tile-conv-shift-reuse"
    halo: str = "mask"
    tiling: str = "rows"
    shift: str = "ashift"
    shift_quarters: str = "one"
    halo_load: str = "boxes"

    def __post_init__(self) -> None:
        super().__post_init__()
        legal.check(legal.options_of(self) | {"product": legal.SHIFTED})

    def run(self, module: ir.Module) -> None:
        options = legal.options_of(self)
        for source in find_convolutions(module, self.name, legal.SHIFTED, options=options):
            op = source.op
            tiling, n_tile = self.check(op)
            shape, columns = tiling.shape, ceil_div(tiling.shape.k, self.n_tiles * n_tile)
            parts = shape.parts if shape.k_part else None
            tiles = self.output_tiles(source, tiling.ctas * TMEM_LANES, columns, parts)
            self.warps.assign(source, staged=False)
            create = partial(ShiftedTaps.create, op, options=self, tiling=tiling, n_tile=n_tile)
            stores = self._stores(source, tiling, self.results(source, n_tile, QUARTER_LANES))
            tile(source, create, tiles, ShiftedCore(n_tile, self.n_tiles), stores)

    def _stores(
        self, source: Source, tiling: OutputTiling, results: TileStores
    ) -> Callable[[list[ir.Value], ShiftedTaps], Store]:
        """The store of a tiling: in rows where the lanes of a sub-partition are neighbours."""
        if not isinstance(tiling, RowsTiling) or tiling.classes.column_step > 1:
            if results.stages:
                raise match_failure(
                    source.op,
                    f"expected store=direct with dilation {tiling.shape.dilations[1]} along the "
                    "width, got store=tma: the outputs of a sub-partition are "
                    f"{tiling.classes.column_step} columns apart, and a TMA box has no gaps; "
                    "leave store out",
                    SMALLEST_CONV,
                )
            return partial(lane_store, source, None, results)
        if results.stages:
            return partial(box_store, source, results, RowBoxes(tiling.classes.valid))
        return partial(tiling.store, source, results)

    def check(self, op: ir.OpView) -> tuple[OutputTiling, int]:
        """Returns the tiling and the output channels of a tile; raises `PassError` when this pass
        cannot tile `op`, a ``tc.conv2d``."""
        shape = ConvShape.of(op)
        check_filter_rows(op, shape)
        return self._choose(op, shape), choose_channels(self, op, shape)

    def _choose(self, op: ir.OpView, shape: ConvShape) -> OutputTiling:
        for option, known in (
            ("halo", HALOS),
            ("tiling", tuple(TILINGS)),
            ("shift", SHIFTS),
            ("shift_quarters", QUARTERS_OF_A_SHIFT),
            ("halo_load", HALO_LOADS),
        ):
            if getattr(self, option) not in known:
                raise match_failure(
                    op,
                    f"{option} must be {' or '.join(known)}, got {getattr(self, option)} (this "
                    f"version has no other); leave {option} out",
                )
        classes = ShiftClasses.of(shape, self.halo == "refresh")
        legal.check(legal.options_of(self), op)
        wide = self.halo_load == "w128"
        if classes.halo >= QUARTER_LANES:
            raise match_failure(
                op,
                f"expected a filter at most {QUARTER_LANES * len(classes.taps)} wide, got "
                f"S={shape.s} (each shift to the next tap makes one of a sub-partition's "
                f"{QUARTER_LANES} lanes useless); use pipeline conv-implicit-gemm",
                SMALLEST_CONV,
            )
        kc = SWIZZLE_SPANS["128B"] // shape.element_bytes
        if self.halo == "refresh" and shape.groups > 1 and shape.c % kc:
            raise match_failure(
                op,
                f"expected groups of a multiple of {kc} channels with halo=refresh, got {shape.c} "
                "(TMA boxes have 128 bytes of channels, and would reach into the next group); use "
                "halo=mask",
            )
        tiling = (WideTiling if wide else TILINGS[self.tiling])(shape, classes)
        tiling.check(op)
        return tiling

    def stage(self, shape: ConvShape, tiling: OutputTiling) -> _Stage:
        """Sizes and types of the tiles that one iteration uses."""
        halo, wide = tiling.classes.halo, isinstance(tiling, WideTiling)
        refreshed = self.halo == "refresh" and halo > 0
        kc = shape.kc
        if refreshed or wide:  # a box of one pixel starts at 128 bytes; w128 has no narrow swizzle
            kc = SWIZZLE_SPANS["128B"] // shape.element_bytes
        rows = tiling.rows if isinstance(tiling, WideTiling) else TMEM_LANES
        return _Stage(
            kc,
            kc * shape.element_bytes // MMA_K_BYTES,
            refreshed,
            k_major(round_up(rows, SWIZZLE_ATOM_ROWS), kc, shape.element),
            k_major(SWIZZLE_ATOM_ROWS * halo, kc, shape.element)
            if refreshed and not wide
            else None,
        )

    def multiply_refreshed(
        self,
        classes: ShiftClasses,
        slices: int,
        shared: list[ir.Value],
        copies: list[ir.Value],
        halos: list[HaloRows],
        product: Product,
    ) -> None:
        """Emits the products class by class: for each tap all K slices, then the shift and the
        refresh."""
        for c, taps in enumerate(classes.taps):
            for j in range(slices):
                tc.CpOp(shared[c], copies[c], i64(j))
            of_class = partial(product, c)
            multiply_shifted(
                taps, slices, copies[c], halos[c], of_class, self.shift, self.shift_quarters
            )


@dataclass(frozen=True)
class ShiftedTaps(OfMatrices):
    """``tc.conv2d`` in units of a `tiling`, four units per tile. From tap to tap a copy of the
    pixels in tensor memory is shifted.

    pixels: the map of the input; halo: map of the halo, if it has tiles of its own
    filters: operand B of one tap, of which each CTA of a pair loads half, and of a `cluster` a part
    """

    options: TileConvShiftReuse
    tiling: OutputTiling
    stage: _Stage
    pixels: ir.Value
    halo: ir.Value | None
    filters: TiledOperand
    cluster: ClusterShape

    @staticmethod
    def create(
        op: tc.Conv2dOp,
        arguments: list[ir.Value],
        options: TileConvShiftReuse,
        tiling: OutputTiling,
        n_tile: int,
    ) -> ShiftedTaps:
        """Builds the tensor maps in a kernel of these `arguments`."""
        stage, x, halo = options.stage(tiling.shape, tiling), argument(arguments, op.x), None
        cluster = options.cluster_of(op)
        pixels = tiling.pixel_map(x, stage.a_type, Boxes.a_tile())
        if stage.halo_type:
            halo = tiling.pixel_map(x, stage.halo_type, Boxes.halo(tiling.classes.halo))
        w = argument(arguments, op.w)
        filters = tiling.shape.filter_operand(w, n_tile // options.cta_group, stage.kc, cluster.m)
        return ShiftedTaps(options, tiling, stage, pixels, halo, filters, cluster)

    @property
    def steps(self) -> int:
        """Number of iterations of the main loop, over filter rows and channels, for one part of the
        sums."""
        shape = self.tiling.shape
        return shape.r // shape.parts * ceil_div(shape.c, self.stage.kc)

    @property
    def sums(self) -> ir.Type:
        """Type of the accumulator."""
        return self.tiling.shape.sum_element

    def at(self, place: TilePlace, sums: Sequence[ir.Value]) -> Callable[[Index], None]:
        """The steps of the main loop for the tile at `place`, which add to `sums`; called before
        the loop is emitted."""
        tiling, stage, shape = self.tiling, self.stage, self.tiling.shape
        classes, chunks = tiling.classes, ceil_div(shape.c, stage.kc)
        first_unit, pair = index.mul(place.row_tile, QUARTERS), self.options.cta_group
        group_c0, share = shape.first_channel(place.column), self.cluster.share_of_b()
        channels = tiles_of_filters(place.column, self.filters, len(sums), pair)
        first_row = 0 if place.part is None else index.mul(place.part, shape.r // shape.parts)
        load = tiling.loader(self.pixels, stage.a_type, first_unit, Boxes.a_tile())
        if self.halo is not None and stage.halo_type is not None:
            boxes = Boxes.halo(classes.halo)
            load_halo = tiling.loader(self.halo, stage.halo_type, first_unit, boxes)
        on = tiling.accumulators(sums, first_unit) if isinstance(tiling, LinearTiling) else None

        def step(i: Index) -> None:
            r = index.add(first_row, index.div(i, chunks))
            c0 = index.mul(index.rem(i, chunks), stage.kc)
            shared = [tc.SmemTileOp(stage.a_type).tile for _ in classes.taps]
            kind = self.filters.type
            taps = [[tc.SmemTileOp(kind).tile for _ in channels] for _ in range(shape.s)]
            halos = [tc.SmemTileOp(stage.halo_type).tile for _ in classes.taps if stage.halo_type]
            for c, a in enumerate(shared):
                load(a, r, c, index.add(group_c0, c0))
            for c, a in enumerate(halos):
                load_halo(a, r, c, index.add(group_c0, c0))
            for s, tiles in enumerate(taps):
                for b, k0 in zip(tiles, channels, strict=True):
                    self.filters.load(b, {"mn": k0, "k": c0, "s": s, "r": r}, share)
            for d, filters in zip(sums, zip(*taps, strict=True), strict=True):
                masked = [on(d, r, s) if on else d for s in range(shape.s)]
                started = Accumulate(None if tiling.masked else i)
                self._multiply(masked, started, filters, shared, halos)
            for op in ir.InsertionPoint.current.block if pair == PAIR else ():
                if isinstance(op, tc.CpOp | tc.ShiftOp | tc.RefreshOp | tc.MmaOp):
                    of_pair(op)

        return step

    def _multiply(
        self,
        sums: Sequence[ir.Value],
        started: Accumulate,
        filters: Sequence[ir.Value],
        shared: list[ir.Value],
        halos: list[ir.Value],
    ) -> None:
        """Adds the products of a step to an accumulator, given for each tap with its mask.

        Each accumulator has copies of the pixels for itself: only for mma of one accumulator what
        .ashift writes is in order before what the next one reads (PTX ISA 9.7.16.6.2).
        """
        stage, classes, shape = self.stage, self.tiling.classes, self.tiling.shape
        kind = tc.TmemType.build([TMEM_LANES, stage.kc], shape.element)
        copies = [tc.TmemTileOp(kind).tile for _ in classes.taps]

        def product(c: int, s: int, j: int, shift: bool) -> None:
            first, signs = started.take(), shape.unsigned
            mma(sums[s], copies[c], filters[s], first, j, ashift=shift, unsigned=signs)

        if stage.refreshed:
            rows = [stage.halo_rows(a, halos[c : c + 1]) for c, a in enumerate(shared)]
            self.options.multiply_refreshed(classes, stage.slices, shared, copies, rows, product)
        else:
            _multiply(classes, stage.slices, shared, copies, product)

    def corner(self, place: TilePlace, quarter: ir.Value) -> list[Index]:
        """The first output of a sub-partition, if all its lanes have outputs of one row."""
        assert isinstance(self.tiling, RowsTiling)
        first_unit = index.mul(place.row_tile, QUARTERS)
        return [*place.outer, *self.tiling.decode(index.add(first_unit, quarter))]

    def lanes(self, out: ir.Value, place: TilePlace, quarter: ir.Value) -> list[LaneValue]:
        """Returns the outputs of a sub-partition's lanes. A lane without an output gets a position
        outside the tensor."""
        first_unit = index.mul(place.row_tile, QUARTERS)
        return [*map(spread, place.outer), *self.tiling.places(first_unit, quarter)]


class ShiftedCore(OfTensorMemory):
    """The main loop of tcgen05 for taps whose lanes may be masked: the accumulators are zeroed
    first, and all products add to them."""

    def sums(self, product: ShiftedTaps, place: TilePlace) -> list[tuple[ir.Value, TilePlace]]:
        """Emits the accumulators of the tile at `place`."""
        sums = [accumulator(self.n_tile, product.sums) for _ in range(self.count)]
        step = product.at(place, sums)
        with loop(product.steps) as i:
            step(i)
        return self.placed(sums, place)


Product = Callable[[int, int, int, bool], None]
"""``product(c, s, j, ashift)`` emits the mma of class c, tap s and K slice j."""


@dataclass(frozen=True)
class _Stage:
    """The tiles of one iteration of the main loop.

    kc:        channels; slices: instructions along them
    refreshed: whether stale lanes get new pixels after a shift
    a_type:    the shared tile of a class; halo_type: that of its halo, if separate
    """

    kc: int
    slices: int
    refreshed: bool
    a_type: tc.SmemType
    halo_type: tc.SmemType | None

    def halo_rows(self, a: ir.Value, own: list[ir.Value]) -> HaloRows:
        """The halo of a class: a tile of its own if `own` is given, or else the rows after the 128
        pixels of `a`."""
        if own:
            return HaloRows(own[0], 0, SWIZZLE_ATOM_ROWS)
        return HaloRows(a, TMEM_LANES, QUARTERS)


def _multiply(
    classes: ShiftClasses,
    slices: int,
    shared: list[ir.Value],
    copies: list[ir.Value],
    product: Product,
) -> None:
    """Slice by slice: every class is copied and shifted by its mma."""
    for j in range(slices):
        for c, taps in enumerate(classes.taps):
            tc.CpOp(shared[c], copies[c], i64(j))
            for s in taps:
                product(c, s, j, s != taps[-1])
