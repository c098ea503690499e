"""Block formats by their usual names: each is an element format, a block length and a scale
type.
"""

from __future__ import annotations

from dataclasses import dataclass

from .elements import Element, element
from .errors import FormatError
from .scales import check_scale


@dataclass(frozen=True)
class BlockFormat:
    """A format in which ``block`` consecutive elements along k share a scale.

    Raises FormatError for combinations that the hardware does not support. Blocks of 32 must have
    ue8m0 scales and may have any element; blocks of 16 must have e2m1 elements and may have either
    scale type (PTX ISA 9.7.16.10.7, tables of scale_vec sizes).
    """

    element: str
    block: int
    scale: str

    def __post_init__(self) -> None:
        element(self.element)
        check_scale(self.scale)
        if self.block not in (16, 32):
            raise FormatError("block", self.block, "16 or 32", "scale_vec 4X, or 2X and 1X")
        if self.block == 32 and self.scale != "ue8m0":
            raise FormatError(
                "scale format of blocks of 32",
                self.scale,
                "ue8m0",
                "ue4m3 exists with scale_vec::4X only, blocks of 16 e2m1 elements",
            )
        if self.block == 16 and self.element != "e2m1":
            raise FormatError(
                "element format of blocks of 16",
                self.element,
                "e2m1",
                "kind mxf8f6f4 has scale_vec::1X only, blocks of 32",
            )

    @property
    def elements(self) -> Element:
        """The element format."""
        return element(self.element)

    @property
    def has_global_scale(self) -> bool:
        """Whether the format has a global scale. Formats with ue4m3 scales do, because the range of
        ue4m3 is too small for a whole tensor.
        """
        return self.scale == "ue4m3"

    def scales_of(self, k: int) -> int:
        """Number of blocks in a row of k elements; the last block may be short."""
        return -(-k // self.block)


FORMATS: dict[str, BlockFormat] = {
    "nvfp4": BlockFormat("e2m1", 16, "ue4m3"),
    "mxfp4": BlockFormat("e2m1", 32, "ue8m0"),
    "mxfp6_e2m3": BlockFormat("e2m3", 32, "ue8m0"),
    "mxfp6_e3m2": BlockFormat("e3m2", 32, "ue8m0"),
    "mxfp8_e4m3": BlockFormat("e4m3", 32, "ue8m0"),
    "mxfp8_e5m2": BlockFormat("e5m2", 32, "ue8m0"),
}


def block_format(format: str | BlockFormat) -> BlockFormat:
    """Looks up a format by name; returns a `BlockFormat` unchanged."""
    if isinstance(format, BlockFormat):
        return format
    try:
        return FORMATS[format]
    except (KeyError, TypeError):
        raise FormatError(
            "block format",
            repr(format),
            "one of " + ", ".join(FORMATS),
            "others as BlockFormat(element, block, scale)",
        ) from None
