"""Canonical shared-memory layouts of tcgen05 operands, and the byte offsets (LBO, SBO) in their
descriptors.

Formulas: PTX ISA 9.7.16.10.6 and CUTLASS ``mma_traits_sm100.hpp`` (``make_umma_desc``).
"""

from __future__ import annotations

from dataclasses import dataclass

from .int_tuple import LayoutError
from .layout import Layout
from .swizzle import SWIZZLES, Swizzle, SwizzledLayout

SPANS = {"NONE": 16, "32B": 32, "64B": 64, "128B": 128, "128B_ATOM_32B": 128}
"""Bytes of one row of the pattern, along the contiguous dimension."""


@dataclass(frozen=True)
class OperandLayout:
    """Layout that gives the byte offset of element ``(mn, k)`` before the swizzle, with the
    descriptor's LBO and SBO in bytes.
    """

    layout: Layout
    swizzle: Swizzle
    leading: int
    stride: int
    alignment: int

    def at(self, start: int) -> SwizzledLayout:
        """The layout of the tile at byte address ``start``, a multiple of ``alignment``."""
        if start % self.alignment:
            raise LayoutError(
                f"expected a start that is a multiple of {self.alignment}, got {start}"
            )
        return SwizzledLayout(self.swizzle, self.layout, start)


def operand_layout(
    mn: int, k: int, element_bytes: int, major: str = "K", swizzle: str = "128B"
) -> OperandLayout:
    """The densely packed layout of an ``mn x k`` operand tile.

    ``major`` is the contiguous dimension (``"K"`` or ``"MN"``). It is split into columns, each as
    wide as the swizzle span, which are stored one after another. ``leading`` and ``stride`` are the
    descriptor's LBO and SBO. LBO is 0 if the hardware does not use it (K-major, swizzled, one
    column per descriptor).
    """
    if major not in ("K", "MN"):
        raise LayoutError(f"expected major K or MN, got {major}")
    if swizzle not in SWIZZLES:
        raise LayoutError(f"expected swizzle in {', '.join(SWIZZLES)}, got {swizzle}")
    if swizzle == "128B_ATOM_32B" and (major, element_bytes) != ("MN", 4):
        raise LayoutError("128B swizzle with 32-byte atoms exists for MN-major 32-bit types only")
    if element_bytes == 4 and major == "MN" and swizzle != "128B_ATOM_32B":
        raise LayoutError(f"MN-major 32-bit types need 128B_ATOM_32B, got {swizzle}")
    span = SPANS[swizzle]
    wide = span // element_bytes
    group = 4 if swizzle == "128B_ATOM_32B" else 8
    inner, outer = (k, mn) if major == "K" else (mn, k)
    if inner % wide or outer % group:
        raise LayoutError(
            f"expected {major} a multiple of {wide} (one {span}-byte row) and the other extent a "
            f"multiple of {group} (rows of the swizzle pattern), got mn={mn} k={k}"
        )
    panel = outer * span
    rows = Layout((group, outer // group), (span, group * span))
    along = Layout((wide, inner // wide), (element_bytes, panel))
    if major == "K":
        layout = Layout((rows.shape, along.shape), (rows.stride, along.stride))
        leading, stride = (panel if swizzle == "NONE" else 0), group * span
    else:
        layout = Layout((along.shape, rows.shape), (along.stride, rows.stride))
        # LBO and SBO swap roles between "none" and the swizzled modes.
        leading, stride = (group * span, panel) if swizzle == "NONE" else (panel, group * span)
    return OperandLayout(layout, SWIZZLES[swizzle], leading, stride, max(group * span, 128))
