"""A layout with an offset: the positions of the elements of a tensor, of a tile, or of one thread's
part.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .int_tuple import IntTuple, LayoutError
from .layout import Layout, collision, is_injective
from .swizzle import Swizzle
from .tile import zipped_divide

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Tensor:
    """A layout with an offset. Element ``c`` has the index ``offset + layout(c)``, counted in
    elements.

    In memory the element has the byte address ``swizzle(start + index * element_bits / 8)``:
    swizzles act on addresses, not on indices.

    ``engine`` is the memory, an array of all elements from address 0 on. Only `copy`, `fill` and
    `gemm` of `tcir.layout.algorithms` need an engine.
    """

    layout: Layout
    offset: int = 0
    element_bits: int = 16
    swizzle: Swizzle | None = None
    start: int = 0
    engine: np.ndarray[Any, Any] | None = field(default=None, repr=False, compare=False)

    def __call__(self, *coordinate: IntTuple) -> int:
        return self.offset + self.layout(*coordinate)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.layout.size

    @property
    def shape(self) -> IntTuple:
        """Shape of the layout."""
        return self.layout.shape

    def indices(self) -> list[int]:
        """All indices in domain order."""
        return [self.offset + i for i in self.layout.indices()]

    def address(self, *coordinate: IntTuple) -> int:
        """Byte address of an element; for a 4-bit element, the address of the byte that contains
        it.
        """
        return self._address(self(*coordinate))

    def addresses(self) -> list[int]:
        """All byte addresses in domain order."""
        return [self._address(i) for i in self.indices()]

    def _address(self, index: int) -> int:
        address = self.start + index * self.element_bits // 8
        return self.swizzle(address) if self.swizzle else address

    def with_layout(self, layout: Layout, offset: int) -> Tensor:
        """Returns a tensor with another layout over the same memory, ``offset`` elements further
        on."""
        return replace(self, layout=layout, offset=self.offset + offset)

    def tile(self, tiles: tuple[int, ...], coordinate: IntTuple) -> Tensor:
        """The tile at ``coordinate`` of this tensor cut into ``tiles`` (CuTe's ``local_tile``)."""
        zipped = zipped_divide(self.layout, tiles)
        return self.with_layout(zipped[0], zipped[1](coordinate))

    def view(self, *coordinate: IntTuple | None) -> Tensor:
        """Returns a view of the modes whose coordinate is ``None``; the others are fixed.

        Raises `LayoutError` unless each mode has ``None`` or one coordinate inside it.
        """
        if len(coordinate) != len(self.layout):
            raise LayoutError(
                f"view: expected a coordinate or None for each of the {len(self.layout)} modes of "
                f"{self.layout}, got {len(coordinate)}"
            )
        for mode, c in zip(self.layout, coordinate, strict=True):
            if isinstance(c, int) and not 0 <= c < mode.size:
                raise LayoutError(f"view: expected a coordinate of 0 to {mode.size - 1}, got {c}")
        kept = [mode for mode, c in zip(self.layout, coordinate, strict=True) if c is None]
        offset = sum(m(c) for m, c in zip(self.layout, coordinate, strict=True) if c is not None)
        shape = tuple(m.shape for m in kept)
        stride = tuple(m.stride for m in kept)
        return self.with_layout(Layout(shape, stride), offset)

    def check_injective(self, use: str) -> None:
        """Raises `LayoutError` if two coordinates of the tensor address the same element."""
        if not is_injective(self.layout):
            raise LayoutError(
                f"{use}: expected a layout that gives every coordinate an element of its own, got "
                f"{self.layout}: {collision(self.layout)}"
            )


def identity_tensor(shape: IntTuple) -> Tensor:
    """Returns the compact column-major tensor, whose index ``i`` is coordinate
    ``Layout(shape)(i)``."""
    return Tensor(Layout(shape))
