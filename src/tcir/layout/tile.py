"""Cuts layouts mode by mode, and recasts them to wider elements.

Definitions are CuTe's (NVIDIA/cutlass, media/docs/cpp/cute/02_layout_algebra.md).
"""

from __future__ import annotations

from math import prod

from .int_tuple import IntTuple, LayoutError, flatten
from .layout import Layout, concatenate, logical_divide, logical_product

Tile = Layout | int | None
"""How one mode is divided: by a layout, into runs of an extent, or not at all."""


def as_layout(tile: Layout | int) -> Layout:
    """Returns ``tile`` as a layout; an extent means that many contiguous elements."""
    return Layout(tile) if isinstance(tile, int) else tile


def check_divisible(layout: Layout, tiles: tuple[Tile, ...], what: str) -> None:
    """Raises `LayoutError`, with a coordinate outside the layout, unless each tile divides the
    extent of its mode."""
    if len(tiles) > len(layout):
        raise LayoutError(f"expected {what} of at least {len(tiles)} modes, got {layout}")
    for mode, tile in enumerate(tiles):
        if tile is None:
            continue
        extent, step = layout[mode].size, as_layout(tile).size
        if extent % step:
            outside = tuple(extent if i == mode else 0 for i in range(len(layout)))
            raise LayoutError(
                f"expected {what} of multiples of {_extents(tiles)}, got extents "
                f"{tuple(m.size for m in layout)}: coordinate {outside} of the last tile is outside"
            )


def _extents(tiles: tuple[Tile, ...]) -> tuple[int | str, ...]:
    return tuple("any" if t is None else as_layout(t).size for t in tiles)


def divide_modes(layout: Layout, tiles: tuple[Tile, ...], what: str = "a tensor") -> Layout:
    """Returns ``((tile0, rest0), (tile1, rest1), …)``: each mode divided by its tile (``None``:
    kept)."""
    check_divisible(layout, tiles, what)
    padded = (*tiles, *(None,) * (len(layout) - len(tiles)))
    return concatenate(
        *(
            mode if tile is None else logical_divide(mode, as_layout(tile))
            for mode, tile in zip(layout, padded, strict=True)
        )
    )


def zipped_divide(
    layout: Layout, tiles: tuple[int | Layout, ...], what: str = "a tensor"
) -> Layout:
    """Returns the divided layout as ``((tile0, tile1, …), (rest0, rest1, …, further modes))``."""
    divided = divide_modes(layout, tiles, what)
    cut = [divided[i] for i in range(len(tiles))]
    further = [divided[i] for i in range(len(tiles), len(divided))]
    return concatenate(
        concatenate(*(mode[0] for mode in cut)),
        concatenate(*(mode[1] for mode in cut), *further),
    )


def flat_divide(layout: Layout, tiles: tuple[int | Layout, ...]) -> Layout:
    """Returns the divided layout as ``(tile0, tile1, …, rest0, rest1, …)``."""
    zipped = zipped_divide(layout, tiles)
    return concatenate(*zipped[0], *zipped[1])


def local_tile(layout: Layout, tiles: tuple[int, ...], coordinate: IntTuple) -> tuple[Layout, int]:
    """Returns the tile at ``coordinate`` of a layout cut into ``tiles``, and its offset."""
    zipped = zipped_divide(layout, tiles)
    return zipped[0], zipped[1](coordinate)


def raked_product(block: Layout, tiler: Layout) -> Layout:
    """Returns ``((tiler0, block0), (tiler1, block1), …)``, CuTe's raked product: the elements of
    the copies of ``block`` are interleaved, so that ``tiler``'s coordinate varies fastest.
    """
    product = logical_product(block, tiler)
    if len(block) != len(tiler):
        raise LayoutError(f"expected layouts of equal rank, got {block} and {tiler}")
    return concatenate(
        *(concatenate(t, b) for t, b in zip(product[1], product[0], strict=True)),
    )


def tile_to_shape(block: Layout, shape: tuple[int, ...]) -> Layout:
    """Repeats ``block`` to fill ``shape``, along the first mode first (CuTe's blocked product)."""
    check_divisible(Layout(shape), tuple(mode.size for mode in block), "a shape")
    repeats = tuple(n // mode.size for n, mode in zip(shape, block))
    repeats += shape[len(block) :]
    padded = concatenate(*block, *(Layout(1, 0) for _ in shape[len(block) :]))
    product = logical_product(padded, Layout(repeats))
    return concatenate(
        *(concatenate(b, t) for b, t in zip(product[0], product[1], strict=True)),
    )


def upcast(layout: Layout, factor: int) -> Layout:
    """Returns the layout of elements that consist of ``factor`` units, e.g. of 16-bit elements
    instead of bits.

    Raises `LayoutError` if an element would be split.
    """

    def leaf(extent: int, step: int) -> tuple[int, int]:
        if step == 0 or extent == 1:
            return extent, 0
        if step % factor == 0:
            return extent, step // factor
        if factor % step == 0 and (extent * step) % factor == 0:
            return extent * step // factor, 1
        raise LayoutError(
            f"expected runs of at least {factor} units, got {extent} units of stride {step} in "
            f"{layout}: elements would be split at coordinate {extent}"
        )

    def build(part: Layout) -> Layout:
        if isinstance(part.shape, int):
            assert isinstance(part.stride, int)
            return Layout(*leaf(part.shape, part.stride))
        return concatenate(*(build(mode) for mode in part))

    return build(layout)


def product_each(layout: Layout) -> tuple[int, ...]:
    """Returns the sizes of the top-level modes."""
    return tuple(mode.size for mode in layout)


def row_major(shape: tuple[int, ...]) -> Layout:
    """Returns the compact layout whose last mode is contiguous."""
    flat = tuple(flatten(shape))
    return Layout(shape, tuple(prod(flat[i + 1 :]) for i in range(len(flat))))
