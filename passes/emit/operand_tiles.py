"""Shared-memory tiles for operands of an mma, and the TMA loads that fill them."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import ATOM_32B, SWIZZLE_ATOM_ROWS, SWIZZLE_OF_SPAN, TMA_STRIDE
from tcir.passes.emit import index
from tcir.passes.emit.builders import TmaBox, make_tensor_map, tma_load
from tcir.passes.emit.cluster import MulticastShare, multicast
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.index import Index
from tcir.passes.emit.limits import ceil_div


def check_pitch(
    op: ir.OpView, name: str, extent: int, smallest: str, element_bytes: int = 2
) -> None:
    """Raises a match failure if no tensor map can have rows of `extent` elements. name: name of the
    dimension, for the error message"""
    step = TMA_STRIDE.values[0] // element_bytes  # the smallest stride, in elements
    if extent % step:
        raise match_failure(
            op,
            f"expected {name} to be a multiple of {step}, got {name}={extent} (strides of a tensor "
            f"map are {TMA_STRIDE} bytes, {TMA_STRIDE.source}, and elements are {element_bytes} "
            f"bytes); pad {name} with zeros to {-(-extent // step) * step}",
            smallest,
        )


_MODES = {span: mode for span, mode in SWIZZLE_OF_SPAN.items() if mode != "NONE"}


def swizzle_for(extent: int, element_bytes: int) -> str:
    """The narrowest swizzle whose span covers `extent` elements; the widest swizzle if none
    does."""
    for span in sorted(_MODES):
        if extent * element_bytes <= span:
            return _MODES[span]
    return _MODES[max(_MODES)]


def k_step(extent: int, element_bytes: int) -> int:
    """Elements of K per step of the main loop: one span of the swizzle that `swizzle_for` returns
    for `extent`."""
    return tc.SWIZZLE_BYTES[swizzle_for(extent, element_bytes)] // element_bytes


def k_major(mn: int, k: int, element: ir.Type) -> tc.SmemType:
    """Type of a K-major tile whose extent `k` is one swizzle span."""
    return tc.SmemType.build([mn, k], element, "K", swizzle_for(k, tc.element_bytes(element)))


def mn_major(mn: int, k: int, element: ir.Type, parts: int = 1) -> tc.SmemType:
    """Type of an MN-major tile, which is divided into columns of one swizzle span of `mn` each;
    every part, out of `parts` equal parts, has whole columns. For 32-bit elements there is only one
    swizzle (PTX ISA 9.7.16.10.5, table 54)."""
    bytes_ = tc.element_bytes(element)
    swizzle = ATOM_32B if bytes_ == 4 else swizzle_for(mn, bytes_)
    if parts > 1 and bytes_ < 4:
        part = mn // parts * bytes_
        swizzle = _MODES[max((span for span in _MODES if part % span == 0), default=min(_MODES))]
    return tc.SmemType.build([mn, k], element, "MN", swizzle)


def part_step(order: str, element: ir.Type) -> int:
    """The number that must divide the rows of M or N in each part of a tile: the rows of a swizzle
    pattern, or as many as the narrowest swizzle spans. order: name of the innermost dimension,
    ``k`` or ``mn``"""
    if order == "k":
        return SWIZZLE_ATOM_ROWS
    bytes_ = tc.element_bytes(element)
    span = tc.SWIZZLE_BYTES[ATOM_32B] if bytes_ == 4 else min(_MODES)
    return span // bytes_


@dataclass(frozen=True)
class TiledOperand:
    """An operand that is loaded to shared memory in boxes of a tiled tensor map.

    order: names of the tensor's dimensions, innermost first: ``mn``, ``k``, and other dimensions,
        of which a box has one index. ``k`` first means K-major, ``mn`` first means MN-major.
    """

    type: tc.SmemType
    map: ir.Value
    order: tuple[str, ...]

    @staticmethod
    def create(
        tensor: ir.Value,
        order: tuple[str, ...],
        extents: dict[str, int],
        mn: int,
        k: int,
        parts: int = 1,
    ) -> TiledOperand:
        """Describes the operand ``[mn, k]`` of `tensor`, of which each CTA loads a part, and builds
        its tensor map."""
        element = tensor.type.element_type
        kind = k_major(mn, k, element) if order[0] == "k" else mn_major(mn, k, element, parts)
        bytes_ = tc.element_bytes(element)
        box = {"k": k, "mn": mn // parts if kind.major == "K" else kind.span // bytes_}
        tensor_map = make_tensor_map(
            tensor,
            TmaBox([box.get(name, 1) for name in order]),
            dims=[extents[name] for name in order],
            swizzle=kind.swizzle,
        )
        return TiledOperand(kind, tensor_map, order)

    def load(
        self, tile: ir.Value, origin: dict[str, Index], share: MulticastShare | None = None
    ) -> None:
        """Fills `tile` with the elements from `origin` on, by one box or by one box per swizzle
        span. If CTAs of a cluster share the tile, this CTA loads its part for all of them."""
        if share is not None:
            tile = share.part(tile)
            origin = origin | {"mn": share.first(origin["mn"], tile.type.shape[0])}
        kind = tile.type
        mn = kind.shape[0]
        bytes_ = tc.element_bytes(kind.element)
        columns = mn if kind.major == "K" else kind.span // bytes_
        rows = kind.rows // ceil_div(mn, columns)
        for number in range(ceil_div(mn, columns)):
            at = origin | {"mn": index.add(origin["mn"], number * columns)}
            coords = index.values([at[name] for name in self.order])
            load = tma_load(self.map, coords, tile, number * rows, rows * kind.span)
            if share is not None:
                multicast(load, share.masks)
