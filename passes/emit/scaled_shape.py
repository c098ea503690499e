"""The sizes and formats of a block-scaled product as the tiling passes need them, and the contents
of one stage."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect.attributes import integer, string
from tcir.dialect.limits import MMA_K_BYTES
from tcir.dialect.ops.block_scale import SCALE_ROW_BYTES, SCALE_ROWS, ScaledStep
from tcir.dialect.ops.block_scaled import (
    BLOCK_BYTES,
    BLOCK_SCALES,
    ELEMENT_BITS,
    SCALE_TYPES,
    SOURCE,
    kinds_of,
    packed_kind,
)
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.limits import ceil_div

PTX_NAMES = {
    "f4E2M1FN": "e2m1",
    "f6E2M3FN": "e2m3",
    "f6E3M2FN": "e3m2",
    "f8E4M3FN": "e4m3",
    "f8E5M2": "e5m2",
}
"""Element types as PTX calls them."""


@dataclass(frozen=True)
class ScaledRows:
    """Operand A or B: rows of K elements with a scale per block.

    padded: whether an element takes a byte in shared memory, as 4- and 6-bit elements of kind
        mxf8f6f4 do
    """

    rows: int
    element: str
    bits: int
    layout: str
    padded: bool

    @property
    def dtype(self) -> str:
        """Element type of the tensor map: ``u4_align16b`` or ``u6_align16b`` for padded elements,
        otherwise ``u8``, so that the tensor map counts bytes.
        """
        return f"u{self.bits}_align16b" if self.padded else "u8"

    @staticmethod
    def of(kind: str, element: str, rows: int, layout: str) -> ScaledRows:
        """Describes rows of elements of an MLIR type for an instruction of this kind."""
        bits = ELEMENT_BITS[element]
        padded = kind == "mxf8f6f4" and bits < 8
        return ScaledRows(rows, PTX_NAMES[element], bits, layout, padded)

    def units(self, k: int) -> int:
        """Number of elements of the tensor map (`dtype`) that `k` elements of the operand take."""
        return k if self.padded else k * self.bits // 8

    def row_bytes(self, k: int) -> int:
        """Number of bytes of global memory that hold `k` elements."""
        return k * self.bits // 8


@dataclass(frozen=True)
class ScaledShape:
    """Sizes and formats of a ``tc.block_scaled_matmul``."""

    batch: int
    m: int
    n: int
    k: int
    a: ScaledRows
    b: ScaledRows
    step: ScaledStep
    scale_type: str

    @staticmethod
    def of(op: ir.OpView, kind: str = "") -> ScaledShape:
        """Reads sizes and formats from the op. If several kinds of instruction multiply its types,
        `kind` chooses one."""
        shape, other = list(op.a.type.shape), list(op.b.type.shape)
        vector = len(other) < len(shape)
        batch = shape[0] if len(shape) == 3 else 1
        a, b, scale, b_scale = (
            str(v.type.element_type) for v in (op.a, op.b, op.a_scales, op.b_scales)
        )
        block = integer(op, "block")
        kinds = kinds_of(a, b, scale, b_scale, block)
        if kind and kind not in kinds:
            raise match_failure(
                op,
                f"expected kind to be one of {', '.join(kinds)}, got {kind} (those multiplying {a} "
                f"by {b} with scales {scale} in blocks of {block}, {SOURCE}); leave it out",
            )
        kind = kind or packed_kind(kinds)

        def operand(name: str, element: str, rows: int) -> ScaledRows:
            return ScaledRows.of(kind, element, rows, string(op, f"{name}_scale_layout"))

        return ScaledShape(
            batch=batch,
            m=shape[-2],
            n=1 if vector else other[-2],
            k=shape[-1],
            a=operand("a", a, shape[-2]),
            b=operand("b", b, 1 if vector else other[-2]),
            step=ScaledStep(kind, block),
            scale_type=SCALE_TYPES[scale],
        )

    @property
    def scales(self) -> int:
        """Number of scales per row."""
        return self.k // self.step.block

    @property
    def scale_blocks(self) -> int:
        """Number of blocks of 4 scales along k in the blocked layout."""
        return ceil_div(self.scales, BLOCK_SCALES)


@dataclass(frozen=True)
class Stage:
    """The data that one iteration of the main loop loads and multiplies.

    row_bytes: bytes of each row of A and B in shared memory, which is one swizzle span
    """

    shape: ScaledShape
    row_bytes: int

    @property
    def steps(self) -> int:
        """Number of instructions of a stage."""
        return self.row_bytes // MMA_K_BYTES

    @property
    def k(self) -> int:
        """Elements of K in a stage."""
        return self.steps * self.shape.step.k

    @property
    def scales(self) -> int:
        """Number of scales per row in a stage."""
        return self.steps * self.shape.step.scales

    @property
    def scale_blocks(self) -> int:
        """Number of blocks of 128 rows times 4 scales that a stage has for each 128 rows."""
        return ceil_div(self.scales, BLOCK_SCALES)

    @property
    def per_tile(self) -> int:
        """Number of stages that cover K."""
        return ceil_div(self.shape.k, self.k)

    def scale_place(self, step: int) -> tuple[int, int]:
        """Position of the first scale of instruction `step`: the number of a set of 4 scales, and
        the byte in that set."""
        return divmod(step * self.shape.step.scales, BLOCK_SCALES)


assert SCALE_ROWS * SCALE_ROW_BYTES == BLOCK_BYTES
