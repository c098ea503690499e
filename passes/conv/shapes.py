"""Sizes of a ``tc.conv2d`` op, as named fields."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integers, string, unsigned_operands
from tcir.dialect.limits import (
    MMA_K_BYTES,
    SWIZZLE_SPANS,
    TMA_STRIDE,
    WGMMA_TRANSPOSED_BYTES,
    Legal,
)
from tcir.dialect.ops.highlevel import conv_groups, k_part
from tcir.passes.emit import index
from tcir.passes.emit.cost import epilogue_bytes
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.index import Index
from tcir.passes.emit.limits import MMA_N, MMA_N_PAIR, ceil_div
from tcir.passes.emit.operand_tiles import TiledOperand, k_major, k_step, mn_major
from tcir.passes.emit.tile_kernel import choose_n_tile
from tcir.threads import cached_property


@dataclass(frozen=True)
class ConvShape:
    """Sizes of a convolution: N, H, W of the input; R, S, C of the filter; P, Q, K of the sums; and
    its other parameters.

    stored_bytes: bytes of the output; epilogue_reads: bytes that a ``tc.epilogue`` reads besides
                  the sums
    groups: number of groups, each of C channels of the input and of an equal part of the K channels
            of the sums
    k_part: how many of the R * S * C terms of a sum one part adds up; None: all of them
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
    stored_bytes: int
    epilogue_reads: int
    w_element: ir.Type | None = None
    unsigned: tuple[int, int] = (0, 0)
    groups: int = 1
    k_part: int | None = None

    @staticmethod
    def of(op: ir.OpView) -> ConvShape:
        """Reads the sizes from the op."""
        layout = string(op, "filter")
        extents = list(op.w.type.shape)
        r, s = extents[:2] if layout == "hwcf" else extents[1:3]
        n, h, w, channels = op.x.type.shape
        groups = conv_groups(op)
        p, q, k = op.out.type.shape[-3:]
        top, bottom, left, right = integers(op, "pads")
        sh, sw = integers(op, "strides")
        dh, dw = integers(op, "dilations")
        return ConvShape(
            n, h, w, channels // groups, r, s, p, q, k, (sh, sw), (dh, dw), top, bottom, left,
            right, layout, op.x.type.element_type, *epilogue_bytes(op.out),
            op.w.type.element_type, unsigned_operands(op), groups, k_part(op),
        )  # fmt: skip

    @property
    def sum_element(self) -> ir.Type:
        """Type of the accumulator."""
        return ir.IntegerType.get_signless(32) if str(self.element) == "i8" else ir.F32Type.get()

    @cached_property
    def element_bytes(self) -> int:
        """Bytes of an input element."""
        return tc.element_bytes(self.element)

    @property
    def channels(self) -> int:
        """Channels of the input."""
        return self.groups * self.c

    @property
    def pixel_bytes(self) -> int:
        """Bytes from one pixel of the input to the next."""
        return self.channels * self.element_bytes

    @property
    def rows_are_windows(self) -> bool:
        """Whether a filter row can be read as one tap: its channels are adjacent in memory,
        a tensor map can have the distance between neighbouring outputs as a stride, and the
        channels of one tap would not fill an mma.
        """
        step, apart = TMA_STRIDE.values[0], self.strides[1] * self.pixel_bytes
        padded = self.pad_left or self.pad_right
        contiguous = self.groups == 1 and self.dilations[1] == 1 and not padded
        filters = self.filter == "hwcf" and self.element_bytes == WGMMA_TRANSPOSED_BYTES
        encodable = apart % step == 0 and self.w * self.pixel_bytes % step == 0
        few = self.s > 1 and self.pixel_bytes < MMA_K_BYTES
        return contiguous and filters and encodable and few

    def of_windows(self) -> ConvShape:
        """Shape of the equivalent convolution in which each window of an image row counts as one
        pixel, so that a filter row is a single tap."""
        (sh, _), (dh, _) = self.strides, self.dilations
        return replace(self, w=self.q, c=self.s * self.c, s=1, strides=(sh, 1), dilations=(dh, 1))

    @property
    def group_k(self) -> int:
        """Number of output channels that are computed from the same input channels."""
        return self.k // self.groups

    def first_channel(self, k0: Index) -> Index:
        """The first input channel of the group to which output channel `k0` belongs."""
        return 0 if self.groups == 1 else index.mul(index.div(k0, self.group_k), self.c)

    @cached_property
    def kc(self) -> int:
        """Number of channels per step of the main loop, all of one group."""
        if self.groups == 1:
            return k_step(self.c, self.element_bytes)
        spans = [s for s in SWIZZLE_SPANS.values() if self.c * self.element_bytes % s == 0]
        return max(spans, default=MMA_K_BYTES) // self.element_bytes

    @property
    def steps(self) -> int:
        """Number of steps of the main loop, over all taps and their channels."""
        return self.r * self.s * ceil_div(self.c, self.kc)

    @property
    def parts(self) -> int:
        """Number of parts of the sums."""
        return 1 if self.k_part is None else ceil_div(self.r * self.s * self.c, self.k_part)

    def in_parts(self, parts: int) -> ConvShape:
        """Returns this shape with the steps of the main loop divided into `parts` equal parts;
        `parts` must divide the number of steps."""
        return replace(self, k_part=self.steps // parts * self.kc if parts > 1 else None)

    @property
    def has_equal_parts(self) -> bool:
        """Whether all parts have the same number of whole steps."""
        whole = self.c % self.kc == 0 and self.steps % self.parts == 0
        return whole and self.k_part == self.in_parts(self.parts).k_part

    def choose_n_tile(
        self, op: ir.OpView, option: int, cta_group: int = 1, multiple: int = 1
    ) -> int:
        """Number of output channels of a tcgen05 tile: `option` or, if that is 0, at most 128 per
        CTA."""
        chosen = choose_n_tile(op, option, self.group_k, cta_group)
        legal = MMA_N if cta_group == 1 else MMA_N_PAIR
        return self.of_one_group(op, chosen, option, multiple, legal)

    def of_one_group(
        self, op: ir.OpView, chosen: int, option: int, multiple: int, legal: Legal
    ) -> int:
        """Number of output channels of a tile, all in one group and a multiple of `multiple` (see
        `check_cluster`): `chosen` or, if `option` is 0, the largest `legal` number up to it."""
        if self.groups == 1:
            return chosen
        if self.c * self.element_bytes % MMA_K_BYTES:
            raise match_failure(
                op,
                f"expected groups whose input channels fill a multiple of {MMA_K_BYTES} bytes, "
                f"got {self.c} channels of {self.element_bytes} bytes (an mma sums over "
                f"{MMA_K_BYTES} bytes, and would otherwise reach into the next group); pad the "
                "channels of each group with zeros",
            )
        if self.group_k % chosen == 0 and chosen % multiple == 0 and chosen in legal:
            return chosen
        some = range(multiple, max(chosen, multiple) + 1, multiple)
        widths = [n for n in some if self.group_k % n == 0 and n in legal]
        if widths and option == 0:
            return widths[-1]
        what, why = f"divide the {self.group_k} output channels of a group", ""
        if multiple > 1:
            what += f" and are a multiple of {multiple}"
            why = ", and each CTA of a cluster loads an equal part of the filters"
        take = f"take n-tile={widths[-1]}, or " if widths else ""
        whole = max(legal.values[0], multiple)
        raise match_failure(
            op,
            f"expected tiles whose output channels {what}, got {chosen} (all columns of an mma "
            f"multiply the same input channels{why}); {take}pad each group with zero output "
            f"channels to a multiple of {whole}",
        )

    def filter_operand(self, w: ir.Value, n_tile: int, kc: int, parts: int = 1) -> TiledOperand:
        """The filter of one tap as operand B ``[k_out, c]``, of which each CTA loads a part."""
        order = ("mn", "k", "s", "r") if self.filter == "hwcf" else ("k", "s", "r", "mn")
        extents = {"mn": self.k, "k": self.c, "s": self.s, "r": self.r}
        return TiledOperand.create(w, order, extents, n_tile, kc, parts)

    def filter_tile(self, n_tile: int, kc: int) -> tc.SmemType:
        """Type of the filter operand's tile."""
        return (mn_major if self.filter == "hwcf" else k_major)(n_tile, kc, self.element)

    def filter_bytes(self, n_tile: int, kc: int) -> int:
        """Bytes of shared memory for the filter operand's tile."""
        return int(self.filter_tile(n_tile, kc).nbytes)
