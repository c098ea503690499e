"""fold-filter-rows: lets a convolution of few channels read all taps of a filter row as one tap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integers
from tcir.dialect.limits import TMA_STRIDE
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import round_up
from tcir.passes.emit.repack import is_copied, padded
from tcir.passes.emit.tensor_functions import tensor_ops
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark
from tcir.target import TARGETS


@register_pass
@dataclass(frozen=True)
class FoldFilterRows(Pass):
    """Repacks the input of a convolution of few channels so that TMA can load the pixels of all
    taps of a filter row at once: they are next to each other in memory, padding included.

    Before, in ResNet's stem. Its channels are repacked to 16 bytes, because strides of a tensor map
    are multiples of 16 bytes::

        %1 = "tc.repack"(%x) {…} : (tensor<1x224x224x3xf16>) -> tensor<1x224x224x8xf16>
        %2 = "tc.repack"(%w) {…} : (tensor<7x7x3x64xf16>) -> tensor<64x7x7x8xf16>
        %y = "tc.conv2d"(%1, %2) {strides = [2, 2], pads = [3, 3, 3, 3], filter = "fhwc"}

    After. Two pixels take 16 bytes, and the windows of neighbouring outputs are two pixels apart::

        %1 = "tc.repack"(%x) {low = [0, 0, 3, 0], …} -> tensor<1x224x230x4xf16>
        %2 = "tc.repack"(%w) {…} : (tensor<7x7x3x64xf16>) -> tensor<7x7x4x64xf16>
        %y = "tc.conv2d"(%1, %2) {strides = [2, 2], pads = [3, 3, 0, 0], filter = "hwcf"}

    `tile-conv-implicit-gemm` then sums over 7 taps of 28 channels instead of 49 taps of 8 channels.
    A convolution stays as it is if its input needs no repacking, its elements do not have 16 bits,
    it is dilated along a row, or one tap's channels already fill an mma. Preserves the value of
    every element, up to the order of the sums.

    wgmma: apply the pass only to targets with wgmma. On targets with tensor memory, every schedule
           except tile-conv-implicit-gemm needs pixels of 16 bytes
    """

    name: ClassVar[str] = "fold-filter-rows"
    wgmma: bool = False

    def run(self, module: ir.Module) -> None:
        if self.wgmma and not TARGETS[target_of(module)].wgmma:
            return
        for op in tensor_ops(module):
            if isinstance(op, tc.Conv2dOp) and is_copied(op.x):
                _fold(op)


def _fold(op: tc.Conv2dOp) -> None:
    shape, image = ConvShape.of(op), op.x.owner.opview
    place = integers(image, "permutation")
    n, h, w, c = (image.source.type.shape[d] for d in place)
    (_, sw), bytes_, step = shape.strides, shape.element_bytes, TMA_STRIDE.values[0]
    channels = next(each for each in range(c, c + step) if each * sw * bytes_ % step == 0)
    width = round_up(max(shape.pad_left + w, (shape.q - 1) * sw + shape.s), sw)
    folded = replace(shape, c=channels, w=width, pad_left=0, pad_right=0, filter="hwcf")
    whole = (width - shape.s) // sw + 1 == shape.q and shape.k * bytes_ % step == 0
    if not (folded.rows_are_windows and whole):
        return
    unread, filters, order = [image.operation], op.w, [0, 1, 2, 3]
    if is_copied(filters):
        made = filters.owner.opview
        unread.append(made.operation)
        filters, order = made.source, integers(made, "permutation")
    if shape.filter == "fhwc":
        order = [*order[1:], order[0]]
    with ir.InsertionPoint(op), op.location:
        x = padded(image.source, place, [0, 0, shape.pad_left, 0], [n, h, width, channels])
        taps = padded(filters, order, [0] * 4, [shape.r, shape.s, channels, shape.k])
    op.operation.operands[0], op.operation.operands[1] = x, taps
    op.attributes["pads"] = i64s([shape.pad_top, shape.pad_bottom, 0, 0])
    op.attributes["filter"] = ir.StringAttr.get("hwcf")
    remark(
        op,
        f"all {shape.s} taps of a filter row are loaded at once, as {shape.s * channels} adjacent "
        f"elements (C = {channels}): {shape.r} steps of the main loop instead of "
        f"{shape.r * shape.s}; a separate kernel first writes the input with its padding",
    )
    for old in unread:
        if not any(list(each.uses) for each in old.results):
            old.erase()
