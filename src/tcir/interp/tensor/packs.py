"""``linalg.pack`` and ``linalg.unpack``: divide tensors into tiles, and join the tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcir._mlir import ir
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array


@dataclass(frozen=True)
class Tiles:
    """How a tensor is divided into tiles. sizes: tile size by dimension. inner: order of the
    dimensions in a tile. outer: order of the dimensions over tiles.
    """

    sizes: dict[int, int]
    inner: list[int]
    outer: list[int]

    @staticmethod
    def of(op: ir.OpView, rank: int) -> Tiles:
        inner, sizes, outer = (
            list(ir.DenseI64ArrayAttr(op.attributes[name])) if name in op.attributes else []
            for name in ("inner_dims_pos", "static_inner_tiles", "outer_dims_perm")
        )
        return Tiles(dict(zip(inner, sizes, strict=True)), inner, outer or list(range(rank)))

    def whole(self, shape: Sequence[int]) -> list[int]:
        """Rounds a shape up to whole tiles."""
        return [-(-n // (tile := self.sizes.get(d, 1))) * tile for d, n in enumerate(shape)]

    def split(self, whole: Sequence[int]) -> list[int]:
        """Splits each dimension into two: the number of tiles and the size of a tile."""
        return [
            n
            for d, size in enumerate(whole)
            for n in (size // self.sizes.get(d, 1), self.sizes.get(d, 1))
        ]

    @property
    def order(self) -> list[int]:
        """Permutation of the dimensions after `split` that puts the dimensions inside a tile
        last.
        """
        apart = [d for d in self.outer if d not in self.sizes]
        return [2 * d for d in self.outer] + [2 * d + 1 for d in (*self.inner, *apart)]


@evaluate("linalg.pack")
def linalg_pack(
    _: Interpreter, op: ir.OpView, source: Array, out: Array, *padding: Array
) -> Sequence[Array]:
    tiles = Tiles.of(op, source.ndim)
    padded = np.full(tiles.whole(source.shape), padding[0] if padding else 0, source.dtype)
    padded[tuple(map(slice, source.shape))] = source
    split = padded.reshape(tiles.split(padded.shape)).transpose(tiles.order)
    return [split.reshape(out.shape)]


@evaluate("linalg.unpack")
def linalg_unpack(_: Interpreter, op: ir.OpView, source: Array, out: Array) -> Sequence[Array]:
    tiles = Tiles.of(op, out.ndim)
    whole = tiles.whole(out.shape)
    split = [tiles.split(whole)[d] for d in tiles.order]
    back = source.reshape(split).transpose(np.argsort(tiles.order))
    return [back.reshape(whole)[tuple(map(slice, out.shape))].copy()]
