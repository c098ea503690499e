"""Sizes of a ``tc.conv2d`` op, by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integers, string
from tcir.passes.build.operand_tiles import TiledOperand, k_major, mn_major
from tcir.passes.build.tensor_functions import tensor_bytes


@dataclass(frozen=True)
class ConvShape:
    """N, H, W, C of the input; R, S of the filter; P, Q, K of the sums; and the rest.

    epilogue_bytes: of the output, and of what a ``tc.epilogue`` reads beside the sums
    """

    n: int
    h: int
    w: int
    c: int
    r: int
    s: int
    p: int
    q: int
    k: int
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pad_top: int
    pad_bottom: int
    pad_left: int
    pad_right: int
    filter: str
    element: ir.Type
    epilogue_bytes: int
    w_element: ir.Type | None = None
    unsigned: tuple[int, int] = (0, 0)

    @staticmethod
    def of(op: ir.OpView) -> ConvShape:
        """Reads the op."""
        layout = string(op, "filter")
        extents = list(op.w.type.shape)
        r, s = extents[:2] if layout == "hwcf" else extents[1:3]
        n, h, w, c = op.x.type.shape
        _, p, q, k = op.out.type.shape
        top, bottom, left, right = integers(op, "pads")
        sh, sw = integers(op, "strides")
        dh, dw = integers(op, "dilations")
        return ConvShape(
            n, h, w, c, r, s, p, q, k, (sh, sw), (dh, dw), top, bottom, left, right, layout,
            op.x.type.element_type, _epilogue_bytes(op.out),
            op.w.type.element_type, _unsigned(op),
        )  # fmt: skip

    @property
    def sum_element(self) -> ir.Type:
        """Type of the accumulator."""
        return ir.IntegerType.get_signless(32) if str(self.element) == "i8" else ir.F32Type.get()

    @cached_property
    def element_bytes(self) -> int:
        """Bytes of an input element."""
        return tc.element_bytes(self.element)

    def filter_operand(self, w: ir.Value, n_tile: int, kc: int) -> TiledOperand:
        """The filter as operand B ``[k_out, c]`` of one tap."""
        order = ("mn", "k", "s", "r") if self.filter == "hwcf" else ("k", "s", "r", "mn")
        extents = {"mn": self.k, "k": self.c, "s": self.s, "r": self.r}
        return TiledOperand.create(w, order, extents, n_tile, kc)

    def filter_bytes(self, n_tile: int, kc: int) -> int:
        """Shared memory of that operand's tile."""
        kind = mn_major if self.filter == "hwcf" else k_major
        return int(kind(n_tile, kc, self.element).nbytes)


def _epilogue_bytes(sums: ir.Value) -> int:
    after = [use.owner.opview for use in sums.uses if isinstance(use.owner.opview, tc.EpilogueOp)]
    moved = [each.type for op in after for each in (op.out, *(e.tensor for e in op.elements))]
    return sum(map(tensor_bytes, moved or [sums.type]))


def _unsigned(op: ir.OpView) -> tuple[int, int]:
    if "unsigned" not in op.attributes:
        return (0, 0)
    x, w = integers(op, "unsigned")
    return (x, w)
