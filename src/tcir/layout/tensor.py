"""A layout with an offset: where the elements of a tensor, of a tile or of one thread are."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .int_tuple import IntTuple, LayoutError
from .layout import Layout, collision, is_injective
from .swizzle import Swizzle
from .tile import zipped_divide


@dataclass(frozen=True)
class Tensor:
    """Element ``c`` has index ``offset + layout(c)``, counted in elements.

    In memory it has the byte address ``swizzle(start + index * element_bits / 8)``: swizzles act on
    addresses, not on indices.
    """

    layout: Layout
    offset: int = 0
    element_bits: int = 16
    swizzle: Swizzle | None = None
    start: int = 0

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
        """Byte address of an element (of the byte that contains it, for 4-bit elements)."""
        address = self.start + self(*coordinate) * self.element_bits // 8
        return self.swizzle(address) if self.swizzle else address

    def view(self, layout: Layout, offset: int) -> Tensor:
        """Another layout over the same memory, ``offset`` elements further on."""
        return replace(self, layout=layout, offset=self.offset + offset)

    def tile(self, tiles: tuple[int, ...], coordinate: IntTuple) -> Tensor:
        """The tile at ``coordinate`` of this tensor cut into ``tiles`` (CuTe's ``local_tile``)."""
        zipped = zipped_divide(self.layout, tiles)
        return self.view(zipped[0], zipped[1](coordinate))

    def slice(self, *coordinate: IntTuple | None) -> Tensor:
        """The modes given as ``None``; the others are fixed."""
        kept = [mode for mode, c in zip(self.layout, coordinate, strict=True) if c is None]
        offset = sum(m(c) for m, c in zip(self.layout, coordinate, strict=True) if c is not None)
        shape = tuple(m.shape for m in kept)
        stride = tuple(m.stride for m in kept)
        return self.view(Layout(shape, stride), offset)

    def check_injective(self, use: str) -> None:
        """Raises `LayoutError` if two coordinates of the tensor are the same element."""
        if not is_injective(self.layout):
            raise LayoutError(
                f"{use}: expected a layout that gives every coordinate an element of its own, got "
                f"{self.layout}: {collision(self.layout)}"
            )


def identity_tensor(shape: IntTuple) -> Tensor:
    """The compact column-major tensor: index ``i`` is coordinate ``Layout(shape)(i)``."""
    return Tensor(Layout(shape))
