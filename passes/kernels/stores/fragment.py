"""The epilogue of a product whose sums are in registers of warps, and the quantisation of these
sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tcir._mlir import ir, memref
from tcir.dialect import tc
from tcir.dialect.ops.highlevel import k_part
from tcir.dialect.ops.quantise import WORD_COLUMNS
from tcir.dialect.warp_types import WALK
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64
from tcir.passes.emit.diagnostics import SMALLEST_MATMUL, match_failure
from tcir.passes.emit.epilogue import fragment_epilogue
from tcir.passes.emit.index import Index
from tcir.passes.emit.limits import round_up
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.tile_kernel import Source
from tcir.passes.kernels.product import Store, TilePlace, TileProduct
from tcir.passes.kernels.stores.group_rows import select_whole
from tcir.passes.kernels.stores.staged_fragments import StagedFragments, Staging
from tcir.passes.kernels.tile import Core, Places, tile

Made = TypeVar("Made", bound=TileProduct)


@dataclass(frozen=True)
class FragmentStore:
    """The epilogue of a fragment, and its store to the outputs of a kernel.

    after, quantise: the epilogue and the quantisation of the sums, if any
    tensors: the kernel's memrefs for the tensors that `after` reads
    maps: index map of each of these tensors, if it differs from the map of the op
    outputs: one memref, or a memref of codes and one of scales
    past: dimensions whose last tile is partial
    walk: rows and columns of an image, if the tile's rows walk over it
    staged: the tiles of shared memory from which TMA stores; None: threads store
    """

    after: tc.EpilogueOp | None
    quantise: tc.QuantiseBlocksOp | None
    tensors: Mapping[ir.Value, ir.Value]
    outputs: Sequence[ir.Value]
    past: ir.StringAttr
    maps: Sequence[ir.AffineMap] = ()
    walk: ir.Attribute | None = None
    staged: StagedFragments | None = None

    @staticmethod
    def of(
        source: Source,
        past: str,
        arguments: list[ir.Value],
        product: TileProduct,
        walk: ir.Attribute | None = None,
        staging: Staging | None = None,
    ) -> Store:
        """Returns how a kernel with these `arguments` stores its fragments."""
        after, quantise = source.after, source.quantise
        tensors, maps = ({}, ()) if after is None else product.elements(after, arguments)
        last = arguments[-1:] if quantise is None else arguments[-2:]
        outputs = [product.output(each) for each in last]
        if k_part(source.op) is not None and walk is None:
            outputs = [_matrices(each) for each in outputs]
        attribute = ir.StringAttr.get(past)
        staged = None if staging is None else staging.create(source.op, outputs[0])
        made = FragmentStore(after, quantise, tensors, outputs, attribute, maps, walk, staged)
        return lambda place: made._stored

    def _stored(self, sums: ir.Value, place: TilePlace) -> None:
        outer = [] if place.number is None else [place.number]
        gated = self.after is not None and self.after.gated
        column = index.div(place.column, 2) if gated else place.column
        self.store(sums, index.values([*outer, place.row, column]), place.end)

    def store(self, sums: ir.Value, place: list[ir.Value], end: Index | None = None) -> None:
        """Computes and stores the results of `sums`, a fragment whose first element is at
        `place`. With groups, the first index of `place` is the group, and `end` is the row after
        the group's last row; rows may be counted over all groups.
        """
        if self.after is not None:
            sums = self._epilogue(self.after, sums, place)
        if self.quantise is not None:
            store_quantised(self.quantise, sums, self.outputs, place, self.past)
            return
        if end is not None:
            (out,) = self.outputs
            at = place[-out.type.rank :]
            if self.staged is not None:
                *outer, row, column = at
                box = row, sums.type.shape[0]
                by_tma = select_whole(box, end, row, out.type.shape[-2])
                self.staged.store(sums, [*outer, by_tma, column])
                end = select_whole(box, end, 0, end)
            tc.StoreFragmentGroupOp(sums, out, index.value(end), at, self.past)
            return
        if self.staged is not None:
            self._walk(self.staged.store(sums, place))
            return
        self._walk(tc.StoreFragmentOp(sums, self.outputs[0], place, self.past))

    def _epilogue(self, after: tc.EpilogueOp, sums: ir.Value, place: list[ir.Value]) -> ir.Value:
        out = fragment_epilogue(after, self.tensors, sums, place, self.past)
        made = out.owner.opview
        self._walk(made)
        if self.maps:
            reads = [op for op in made.body.blocks[0] if isinstance(op, tc.ElementOp)]
            for each, read in zip(self.maps, reads, strict=True):
                read.attributes["map"] = ir.AffineMapAttr.get(each)
                if read.of_group:  # a dimension of the map now
                    del read.attributes["of_group"]
        return out

    def _walk(self, op: ir.OpView) -> None:
        if self.walk is not None:
            op.attributes[WALK] = self.walk


def tile_fragments(
    source: Source,
    create: Callable[[list[ir.Value]], Made],
    tiles: OutputTiles,
    core: Core[Made],
    m: int,
    n: int,
    staging: Staging | None = None,
    places: Places | None = None,
) -> None:
    """Replaces the source function by a kernel that stores fragments, for an output of `m` x `n`.

    staging: parameters of the shared-memory tiles through which TMA stores; None: threads store
    places: the tiles of a CTA, as in `tile`
    """
    past = core.tile.past(tiles, m, n)
    store = partial(FragmentStore.of, source, past, staging=staging)
    tile(source, create, tiles, core, store, places)


def _matrices(output: ir.Value) -> ir.Value:
    """An output of parts of a batch as one matrix after another."""
    kind = output.type
    if kind.rank < 4:
        return output
    parts, batch, *sizes = kind.shape
    flat = ir.MemRefType.get([parts * batch, *sizes], kind.element_type)
    return memref.collapse_shape(flat, output, [[0, 1], [2], [3]])


def check_fragment_quantised(op: tc.QuantiseBlocksOp, n_tile: int, parts: int, target: str) -> None:
    """Raises a match failure for results that cannot be quantised because a thread holds only pairs
    of elements of a row.

    parts: number of fragments that hold a tile's columns
    """
    if op.format.bits != 8:
        raise match_failure(
            op,
            f"expected codes of a type that {target} can convert to, got "
            f"{op.codes.type.element_type} (cvt to e2m1x2 needs sm_100a, PTX ISA 9.7.9.21); "
            "quantise to f8E4M3FN or f8E5M2 with scales of 32 elements, or return the values",
            SMALLEST_MATMUL,
        )
    if n_tile % (WORD_COLUMNS * parts):
        whole = WORD_COLUMNS * parts
        raise match_failure(
            op,
            f"expected n-tile to be a multiple of {whole} to quantise, got {n_tile} (a thread "
            f"packs the scales of {WORD_COLUMNS} columns into a register); take "
            f"n-tile={min(round_up(n_tile, whole), 256)}; smallest accepted: "
            f"n-tile={WORD_COLUMNS}",
            SMALLEST_MATMUL,
        )


def store_quantised(
    op: tc.QuantiseBlocksOp,
    values: ir.Value,
    results: Sequence[ir.Value],
    place: list[ir.Value],
    past: ir.StringAttr,
) -> None:
    """Quantises a fragment whose first element is at `place`, and stores its codes and scales."""
    kinds = [
        tc.FragmentType.build(values.type.shape, each.type.element_type, "C", values.type.atom)
        for each in results
    ]
    with op.location:
        made = tc.QuantiseFragmentOp(values, *kinds)
        if "scale_rounding" in op.attributes:
            made.attributes["scale_rounding"] = op.attributes["scale_rounding"]
        codes, scales = results
        tc.StoreFragmentOp(made.codes, codes, place, past)
        *_, rows, columns = op.values.type.shape
        counts = i64(rows), i64(columns // op.format.block)
        tc.StoreFragmentScalesOp(made.scales, scales, place, *counts)
