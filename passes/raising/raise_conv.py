"""Raises a convolution in one or two dimensions, grouped or not, to ``tc.conv2d`` with channels
last."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import MMA_K_BYTES, TMA_STRIDE, WGMMA_TRANSPOSED_BYTES
from tcir.passes.analysis.contraction import Conv, set_unsigned
from tcir.passes.analysis.cuda_cores import FLAT, no_tensor_core
from tcir.passes.analysis.regroup import replace_result
from tcir.passes.analysis.wrappers import Padding, Tail
from tcir.passes.emit.builders import i64, i64s
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.limits import round_up
from tcir.passes.emit.repack import is_copied, repacked
from tcir.passes.emit.reshape import reshape
from tcir.passmanager.remarks import remark
from tcir.target import TARGETS


def raise_conv(
    op: ir.OpView,
    conv: Conv,
    pads: Sequence[Padding],
    tail: Tail,
    target: str,
    smallest: str,
) -> None:
    """Replaces `op`, the padding of its operands, and the rounding of its result by a
    ``tc.conv2d``.

    A convolution in one dimension gets a height of 1. The channels of a group are adjacent.
    """
    if reason := no_tensor_core(op):
        raise match_failure(
            op,
            f"expected a convolution for tensor cores, got another: {reason}; pipeline conv "
            "computes it on CUDA cores (split-layers)",
            smallest,
        )
    if not conv.is_channels_last:
        raise match_failure(
            op,
            "expected the result channels last, (n, p, q, k), got the dimensions "
            f"{list(conv.out)} (a lane of the accumulator is a pixel and has its channels); run "
            "fold-layouts first, which needs one result made of the sums element by element",
            smallest,
        )
    x, w, out = pads[conv.x], pads[conv.w], tail.result.type
    window = range(1, 1 + len(conv.strides))
    low, high = ([each[d] for d in conv.image] for each in (x.low, x.high))
    if any(p for ends in (low, high) for d, p in enumerate(ends) if d not in window) or any(
        [*w.low, *w.high]
    ):
        raise match_failure(
            op,
            "expected padding of height and width of the input only, got "
            f"low {low}, high {high} on the input and low {w.low}, high {w.high} on the filter; "
            "pad the others in an op of its own before this function",
            smallest,
        )
    extents = [x.source.type.shape[d] for d in conv.image]
    taps = [w.source.type.shape[d] for d in conv.taps]
    for dim, tap, stride, dilation in zip(window, taps, conv.strides, conv.dilations, strict=True):
        size = extents[dim] + low[dim] + high[dim]
        expected = (size - (tap - 1) * dilation - 1) // stride + 1
        if out.shape[dim] != expected:
            raise match_failure(
                op,
                f"expected output size {expected} in dimension {dim} (padded input "
                f"{size}, filter {tap}, stride {stride}, dilation "
                f"{dilation}), got {out.shape[dim]}; slice the input to the elements that are read",
                smallest,
            )
    flat = FLAT - len(conv.strides)
    image, weights, layout = _encodable(op, conv, x.source, w.source, target)
    groups = [(0,), *[()] * flat, *((d,) for d in window), tuple(range(window.stop, out.rank))]
    sizes = [prod(out.shape[d] for d in group) for group in groups]
    raised = tc.Conv2dOp(
        image,
        weights,
        i64s([1] * flat + [*conv.strides]),
        i64s([1] * flat + [*conv.dilations]),
        i64s([0, 0] * flat + [end[dim] for dim in window for end in (low, high)]),
        ir.StringAttr.get(layout),
        ir.RankedTensorType.get(sizes, out.element_type),
    )
    if conv.groups:
        raised.operation.attributes["groups"] = i64(extents[-2])
    set_unsigned(raised, op, conv.x, conv.w)
    replace_result(tail, raised.out, groups)


def _encodable(
    op: ir.OpView, conv: Conv, x: ir.Value, w: ir.Value, target: str
) -> tuple[ir.Value, ir.Value, str]:
    """Input, filter and its layout as TMA can encode them, in two dimensions; repacked if channels
    are not last, or rows not 16 bytes, and a filter with its outputs last if wgmma cannot read it.

    C is padded with zeros, that of a group to what an mma sums over: what is next is another group.
    The filter gets C last, so that the number of outputs no longer matters.
    """
    bytes_ = tc.element_bytes(x.type.element_type)
    unit = TMA_STRIDE.values[0] // bytes_
    step = MMA_K_BYTES // bytes_ if conv.groups else unit
    c, k = (w.type.shape[conv.weights[d]] for d in (-1, int(conv.groups)))
    fhwc = tuple(range(len(conv.weights)))
    hwcf = (*fhwc[-1:], *fhwc[:-1])
    transposed = bytes_ == WGMMA_TRANSPOSED_BYTES or not TARGETS[target].wgmma
    plain = not conv.groups and conv.weights == hwcf and k % unit == 0 and transposed
    known = list(conv.image) == sorted(conv.image) and (conv.weights == fhwc or plain)
    if not known or c % step:
        padded = round_up(c, step)
        x, w = repacked(x, conv.image, padded), repacked(w, conv.weights, padded)
        plain = False
        names = [name for name, each in (("input", x), ("filter", w)) if is_copied(each)]
        if names:
            remark(
                op,
                f"{' and '.join(names)} repacked by kernels of their own, with C = {padded} last: "
                f"a tensor map has channels innermost, and strides of {TMA_STRIDE} bytes "
                f"({TMA_STRIDE.source})",
            )
    flat = [1] * (FLAT - len(conv.strides))
    n, *image = x.type.shape
    rank = len(conv.strides)
    shape = [n, *flat, *image[:rank], prod(image[rank:])]
    filters = list(w.type.shape)
    if plain:
        return reshape(x, shape), reshape(w, [*flat, *filters]), "hwcf"
    outputs = 1 + conv.groups
    filters = [prod(filters[:outputs]), *flat, *filters[outputs:]]
    return reshape(x, shape), reshape(w, filters), "fhwc"
