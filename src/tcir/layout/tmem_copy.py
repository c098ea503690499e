"""Tiled tcgen05.ld and st: the elements of an accumulator that each thread of four warps holds."""

from __future__ import annotations

from dataclasses import dataclass

from .int_tuple import LayoutError
from .layout import Layout, composition, concatenate, left_inverse
from .tensor import Tensor
from .tmem import COLUMN, LANE, LANES, lane_column, ld_st

WARPS = 4
QUARTER = LANES // WARPS


@dataclass(frozen=True)
class TmemCopy:
    """A tiled tcgen05.ld or st.

    layout_tv: ``(thread, value) -> index`` in the column-major tile. Values number the registers of
        an instruction first, then the instructions: first the upper 16 lanes of the sub-partition
        (for shapes of 16 lanes), then further columns
    words: maps the same threads and values to words of tensor memory
    """

    shape: str
    num: int
    layout_tv: Layout
    words: Layout

    @property
    def size(self) -> int:
        """Number of threads. Warp ``w`` can access only lanes ``32 w`` to ``32 w + 31``."""
        return self.layout_tv[0].size

    def partition(self, thread: int, tensor: Tensor) -> Tensor:
        """The elements of an (M, N) tensor that ``thread`` has, in the order of its registers."""
        parts = composition(tensor.layout, self.layout_tv)
        return tensor.with_layout(concatenate(*parts[1]), parts[0](thread))


def make_tmem_copy(shape: str, num: int, accumulator: Layout) -> TmemCopy:
    """Returns ``tcgen05.ld.SHAPE.xNUM`` repeated over an accumulator of `tmem.accumulator`.

    Raises `LayoutError`, which names the word, if an instruction would access lanes or columns
    outside the accumulator.
    """
    if shape == "16x32bx2":
        raise LayoutError(
            "expected 32x32b, 16x64b, 16x128b or 16x256b, got 16x32bx2: the distance between "
            "its two windows is up to the caller (tmem.ld_st has its layout)"
        )
    one = ld_st(shape, num)
    width = 1 + max(lane_column(w)[1] for w in one.indices())
    owned = accumulator.indices()
    lanes = {lane_column(w)[0] for w in owned}
    columns = 1 + max(lane_column(w)[1] for w in owned)
    if columns % width:
        raise LayoutError(
            f"expected a multiple of {width} columns ({shape}.x{num}), got {columns}: column "
            f"{columns // width * width} begins an instruction that does not fit"
        )
    halves = 2 if shape.startswith("16") and any(lane % QUARTER >= 16 for lane in lanes) else 1
    words = concatenate(
        concatenate(*(one[0] if isinstance(one[0].shape, tuple) else [one[0]]),
                    Layout(WARPS, QUARTER * LANE)),
        concatenate(one[1], Layout(halves, 16 * LANE if halves > 1 else 0),
                    Layout(columns // width, width * COLUMN)),
    )  # fmt: skip
    foreign = sorted(set(words.indices()) - set(owned))
    if foreign:
        lane, column = lane_column(foreign[0])
        raise LayoutError(
            f"{shape}.x{num} reads lane {lane}, column {column}, which is not part of the "
            f"accumulator {accumulator}; use a shape of 16 lanes"
        )
    return TmemCopy(shape, num, composition(left_inverse(accumulator), words), words)
