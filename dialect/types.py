"""Types of the ``tc`` dialect. Their parameters are MLIR attributes, so the types print in generic
form."""

import re
from functools import cache
from typing import Any

from tcir._mlir import ir
from tcir.dialect.attributes import integer_of, integers_of, string_of
from tcir.dialect.base import TC
from tcir.dialect.limits import ATOM_32B, MBARRIER_BYTES, SWIZZLE_SPANS

SWIZZLE_BYTES = SWIZZLE_SPANS
"""Width in bytes of one swizzled row ("span"), by swizzle mode (PTX ISA 9.7.16.10.6)."""


def element_bytes(element: ir.Type) -> int:
    """Bytes that one element of type ``element`` takes in memory. An i1 takes a byte, 0 or 1."""
    return _bytes_of(str(element))


@cache
def _bytes_of(element: str) -> int:
    match = re.fullmatch(r"[a-z]+(\d+).*", element)
    assert match, f"no width in {element}"
    return 1 if int(match[1]) == 1 else int(match[1]) // 8


class ShapedType(TC.Type):
    """Base of the types whose first parameters are two extents and an element type."""

    shape_attr: Any
    element_attr: Any

    @property
    def shape(self) -> list[int]:
        """The two extents, in elements."""
        return integers_of(self.shape_attr)

    @property
    def element(self) -> ir.Type:
        """Element type."""
        return ir.TypeAttr(self.element_attr).value


class SmemType(ShapedType, name="smem"):
    """A shared-memory operand tile ``[mn, k]`` in a canonical tcgen05 layout.

    ``!tc.smem<array<i64: mn, k>, element, major, swizzle>``. ``major`` is ``"K"`` or ``"MN"``,
    ``swizzle`` ``"NONE" | "32B" | "64B" | "128B" | "128B_ATOM_32B"``; the span of a swizzle is S
    bytes (16 without a swizzle). A tile is a stack of *rows* of S bytes, in the order in which TMA
    boxes fill it:

    - K-major: ``k`` is split into columns of S bytes; row ``column * mn + m``.
    - MN-major: ``mn`` is split into columns of S bytes; row ``column * k + kk``.

    The swizzle XORs bits of the absolute shared-memory address into lower bits (PTX ISA
    9.7.16.10.6). With 128 bytes, bits 7 to 9 are XORed into bits 4 to 6; with 64 bytes, bits 7 and
    8 into bits 4 and 5; with 32 bytes, bit 7 into bit 4. With atoms of 32 bytes, which MN-major f32
    needs (table 54), bits 7 and 8 are XORed into bits 5 and 6 (CuTe's ``Swizzle<2, 5, 2>``). A tile
    of ``i8`` holds either the bytes of narrower operands, where k counts bytes, or blocks of scale
    factors as rows of 16 bytes; the op that reads the tile determines which.
    """

    example = """
    func.func @example() {
      %tile = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
      return
    }
    """

    major_attr: Any
    swizzle_attr: Any

    @staticmethod
    def build(shape: list[int], element: ir.Type, major: str, swizzle: str) -> "SmemType":
        """Builds the type from Python values."""
        return SmemType.get(
            ir.DenseI64ArrayAttr.get(shape),
            element,
            ir.StringAttr.get(major),
            ir.StringAttr.get(swizzle),
        )

    @property
    def major(self) -> str:
        """Name of the coordinate that is contiguous: ``"K"`` or ``"MN"``."""
        return string_of(self.major_attr)

    @property
    def swizzle(self) -> str:
        """Swizzle mode."""
        return string_of(self.swizzle_attr)

    @property
    def span(self) -> int:
        """Bytes of one row."""
        return SWIZZLE_BYTES[self.swizzle]

    @property
    def nbytes(self) -> int:
        """Size in bytes. The tile takes whole columns of one swizzle span each; the size is rounded
        up to 128."""
        return -(-self.rows * self.span // 128) * 128

    @property
    def rows(self) -> int:
        """Number of rows of ``span`` bytes."""
        mn, k = self.shape
        inner, outer = (k, mn) if self.major == "K" else (mn, k)
        columns = -(-inner * element_bytes(self.element) // self.span)
        return columns * outer

    def offset(self, mn: int, k: int) -> int:
        """Byte offset of an element from the start of a tile aligned to the swizzle pattern."""
        outer, inner = (mn, k) if self.major == "K" else (k, mn)
        column, byte = divmod(inner * element_bytes(self.element), self.span)
        rows = self.shape[0] if self.major == "K" else self.shape[1]
        linear = (column * rows + outer) * self.span + byte
        if self.swizzle == ATOM_32B:
            return linear ^ (linear >> 2 & 0x60)
        return linear ^ (linear >> 3 & (self.span - 1) & -16)


class TmemType(ShapedType, name="tmem"):
    """A tensor-memory tile of 128 lanes: ``!tc.tmem<array<i64: 128, cols>, element>``.

    32-bit elements (accumulators) take one column each; 16-bit elements of an A operand are
    packed two per column, lower k in the low half (PTX ISA 9.7.16.10.4). ``i8`` elements are bytes,
    four per column. They are scale factors, of which a block of 128 rows times 4 scales takes 16
    bytes of every lane, or packed elements of an A operand.
    """

    example = """
    func.func @example() {
      %tile = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>}
          : () -> !tc.tmem<array<i64: 128, 64>, f16>
      return
    }
    """

    @staticmethod
    def build(shape: list[int], element: ir.Type) -> "TmemType":
        """Builds the type from Python values."""
        return TmemType.get(ir.DenseI64ArrayAttr.get(shape), element)

    @property
    def columns(self) -> int:
        """Number of 32-bit columns."""
        return self.shape[1] * element_bytes(self.element) // 4


class MbarrierType(TC.Type, name="mbarrier"):
    """An mbarrier object: 8 bytes of shared memory (PTX ISA 9.7.13.15)."""

    @property
    def nbytes(self) -> int:
        """Bytes of the object."""
        return MBARRIER_BYTES


class TensorMapType(TC.Type, name="tensor_map"):
    """A TMA descriptor of a global tensor (PTX ISA 5.5).

    The attributes of ``tc.make_tensor_map`` hold its parameters.
    """


class TmemBaseType(TC.Type, name="tmem_base"):
    """The address that ``tc.tmem_alloc`` returns: the base of consecutive whole columns of tensor
    memory."""


class LaneMasksType(TC.Type, name="lane_mask_table"):
    """A table in shared memory. Each entry is a mask of the tensor-memory lanes, out of 128, that
    an mma must not write.

    An entry is 16 bytes: bit i of word q is lane ``32 * q + i`` (``disable-output-lane``, PTX ISA
    9.7.16.10.9).
    """


class LaunchResponsesType(TC.Type, name="launch_response_table"):
    """Responses of cluster launch control in shared memory, 16 bytes each (PTX ISA 9.7.13.17)."""


class RingType(TC.Type, name="ring"):
    """``count`` equal objects that are used in turn, such as ``!tc.ring<4 : i64,
    !tc.smem<...>>``."""

    example = """
    func.func @example() {
      %tiles = "tc.smem_tile"()
          : () -> !tc.ring<4 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">>
      return
    }
    """

    count_attr: Any
    of_attr: Any

    @staticmethod
    def build(count: int, of: ir.Type) -> "RingType":
        """Builds the type from Python values."""
        return RingType.get(ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count), of)

    @property
    def count(self) -> int:
        """Number of slots."""
        return integer_of(self.count_attr)

    @property
    def of(self) -> ir.Type:
        """Type of one slot."""
        return ir.TypeAttr(self.of_attr).value


def one_of(type_: ir.Type) -> ir.Type:
    """The type of one slot if `type_` is a ring; otherwise `type_` itself."""
    return type_.of if isinstance(type_, RingType) else type_


def slots(type_: ir.Type) -> int:
    """Number of objects of a type: the count of a ring, 1 for any other type."""
    return type_.count if isinstance(type_, RingType) else 1


def shared_bytes(type_: ir.Type) -> int:
    """Bytes of shared memory of a tile, a barrier, or a ring of tiles or barriers."""
    return slots(type_) * int(one_of(type_).nbytes)


def tensor_columns(type_: ir.Type) -> int:
    """Number of tensor-memory columns of a tile or a ring of tiles."""
    return slots(type_) * int(one_of(type_).columns)
