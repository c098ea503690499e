"""Ops of `nvvm` for bulk copies to global memory: each is one PTX instruction."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.errors import IncompleteError
from tcir.interp.thread.nvvm import address, segments
from tcir.interp.thread.speller import Speller, expect, only, spelling

_STORE_MODES = {"tile": "tile", "im2col": "im2col_no_offs", "tile_scatter4": "tile::scatter4"}
"""NVVM's mode of a store -> PTX's mode."""


@spelling("nvvm.cp.async.bulk.tensor.global.shared.cta")
def _tma_store(speller: Speller, op: ir.Operation) -> None:
    """Spells a ``cp.async.bulk.tensor`` store (PTX ISA 9.7.9.27.1.2)."""
    only(op, "mode")
    modes = {f"#nvvm.tma_store_mode<{name}>": ptx for name, ptx in _STORE_MODES.items()}
    mode = modes[expect(op, "mode", *modes)]
    tensor_map, source, coordinates, *rest = segments(op)
    if any(rest):
        raise IncompleteError("no rule for a cache policy or a predicate")
    place = ", ".join(speller.read_one(coordinate) for coordinate in coordinates)
    rank = 2 if mode == "tile::scatter4" else len(coordinates)
    speller.emit(
        f"cp.async.bulk.tensor.{rank}d.global.shared::cta.{mode}.bulk_group "
        f"[{speller.read_one(tensor_map[0])}, {{{place}}}], {address(speller, source[0], 3)}"
    )
