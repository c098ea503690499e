"""Transposed convolutions as convolutions of the pixels alone, without the zeros between the
pixels.

If zeros separate pixels by a distance of `s`, each output belongs to one of `s` phases and depends
on every s-th tap only. If a filter has a multiple of `s` taps, all phases have equally many taps.
The phases then become the filters of a single convolution of the pixels; the channels of its result
contain a pixel of each phase, and a transpose and reshape put these pixels in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from tcir._mlir import arith, ir, tensor
from tcir.passes.analysis.contraction import Conv, is_contraction, recognise
from tcir.passes.analysis.moves import filling
from tcir.passes.analysis.wrappers import is_positive_zero, starts_from_zeros
from tcir.passes.emit.diagnostics import is_op
from tcir.passes.emit.generic import generic, loop_index, padded, zeros
from tcir.passes.emit.reshape import reshape
from tcir.passes.emit.tensor_functions import erase_unread, functions_with_body

Indices = list[ir.Value]
"""An index for each dimension of a tensor."""


@dataclass(frozen=True)
class ImageAxis:
    """A dimension of the image in a transposed convolution.

    stride:    distance between two pixels, between which there are zeros
    taps:      number of taps of a phase
    low, high: number of zero pixels before and after the image
    crop:      number of elements of the first phases that the result leaves out
    count:     number of results of a phase
    """

    stride: int
    taps: int
    low: int
    high: int
    crop: int
    count: int

    @staticmethod
    def of(pixels: int, offset: int, stride: int, extent: int, taps: int) -> ImageAxis:
        """Builds the axis for a filter with `taps` taps. pixels: number of pixels; they are
        elements offset, offset + stride, … of `extent` elements"""
        crop = (stride - 1 - offset) % stride
        low = (offset + crop - (stride - 1)) // stride
        count = -(-(extent - taps + 1 + crop) // stride)
        each = taps // stride
        return ImageAxis(stride, each, low, count + each - 1 - low - pixels, crop, count)


def split_phases(module: ir.Module) -> None:
    """Rewrites the transposed convolutions of a module (``tensor.insert_slice`` into zeros, and a
    convolution) whose number of taps is a multiple of the stride. Preserves the sums, except for
    NaN from an inserted zero times an infinite weight."""
    for function in functions_with_body(module):
        split = []
        for op in [each for each in function.entry_block if is_contraction(each)]:
            found = recognise(op) if len(op.operands) == 3 else None
            if isinstance(found, Conv) and found.channels and found.filters:
                split.append(_split(op, found))
        if any(split):
            erase_unread(function)


def _split(op: ir.OpView, conv: Conv) -> bool:
    """Whether it is one, and rewritten."""
    image, weights, start = op.operands[conv.x], op.operands[conv.w], op.operands[2]
    sizes = conv.image[1 : 1 + len(conv.strides)]
    axes = _axes(image, weights, conv, sizes)
    if axes is None:
        return False
    phases = prod(each.stride for each in axes)
    with ir.InsertionPoint(op), op.location:
        shape = list(image.type.shape)
        for dim, pixels in zip(sizes, _pixels(image, sizes), strict=True):
            shape[dim] = pixels
        pixels_only = reshape(_inserted(image).operands[0], shape)
        operands = {
            conv.x: _padded(pixels_only, dict(zip(sizes, axes, strict=True))),
            conv.w: _filters(weights, conv, axes, phases),
            2: _zeros(start, conv, axes, phases),
        }
        new = op.operation.clone()
        for number, operand in operands.items():
            new.operands[number] = operand
        new.results[0].set_type(operands[2].type)
        result = _apart(new.results[0], start, conv, axes)
    op.results[0].replace_all_uses_with(result)
    op.operation.erase()
    return True


def _inserted(image: ir.Value) -> ir.Operation:
    """The insertion that an image, or its reshape, is."""
    op = image.owner
    return op.operands[0].owner if op.name == "tensor.expand_shape" else op


def _pixels(image: ir.Value, sizes: Sequence[int]) -> list[int]:
    return [_inserted(image).operands[0].type.shape[d] for d in _before(image, sizes)]


def _before(image: ir.Value, sizes: Sequence[int]) -> list[int]:
    """Maps dimensions of the image to dimensions of the insertion; only those that a reshape leaves
    alone."""
    if image.owner.name != "tensor.expand_shape":
        return list(sizes)
    groups = [
        [ir.IntegerAttr(d).value for d in group]
        for group in image.owner.attributes["reassociation"]
    ]
    return [groups.index([d]) for d in sizes if [d] in groups]


def _axes(
    image: ir.Value, weights: ir.Value, conv: Conv, sizes: Sequence[int]
) -> list[ImageAxis] | None:
    """Axes of the image; None unless it is pixels between zeros, and all phases have as many
    taps."""
    if isinstance(image, ir.BlockArgument) or max(*conv.strides, *conv.dilations) > 1:
        return None
    inner = image.owner.operands[0] if is_op(image, "tensor.expand_shape") else image
    if not is_op(inner, "tensor.insert_slice") or len(inner.owner.operands) != 2:
        return None
    op, dims = inner.owner, _before(image, sizes)
    number = filling(op.operands[1])
    if number is None or not is_positive_zero(number) or len(dims) != len(sizes):
        return None
    offsets, strides = (
        list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))
        for name in ("offsets", "strides")
    )
    source, target = op.operands[0].type.shape, inner.type.shape
    others = [d for d in range(len(target)) if d not in dims]
    if len(source) != len(target) or any(source[d] != target[d] for d in others):
        return None
    taps = [weights.type.shape[d] for d in conv.taps]
    steps = [strides[d] for d in dims]
    if max(steps) == 1 or any(k % s for k, s in zip(taps, steps, strict=True)):
        return None
    return [
        ImageAxis.of(source[d], offsets[d], strides[d], target[d], k)
        for d, k in zip(dims, taps, strict=True)
    ]


def _padded(image: ir.Value, axes: dict[int, ImageAxis]) -> ir.Value:
    shape = list(image.type.shape)
    low = [axes[d].low if d in axes else 0 for d in range(len(shape))]
    high = [axes[d].high if d in axes else 0 for d in range(len(shape))]
    return padded(image, low, high)


def _filters(weights: ir.Value, conv: Conv, axes: Sequence[ImageAxis], phases: int) -> ir.Value:
    """For each filter the filters of its phases: every s-th tap, the last phase from the first tap
    on."""
    filters, shape = conv.weights[conv.groups], list(weights.type.shape)
    shape[filters] *= phases
    for dim, axis in zip(conv.taps, axes, strict=True):
        shape[dim] = axis.taps
    empty = tensor.EmptyOp(shape, weights.type.element_type).result

    def place(at: Indices) -> ir.Value:
        phase = _rest(at[filters], phases)
        at[filters] = _divided(at[filters], phases)
        for dim, axis in reversed(list(zip(conv.taps, axes, strict=True))):
            mine = arith.subi(_index(axis.stride - 1), _rest(phase, axis.stride))
            at[dim] = arith.addi(arith.muli(at[dim], _index(axis.stride)), mine)
            phase = _divided(phase, axis.stride)
        return tensor.extract(weights, at)

    return _generated(empty, lambda at, _: place(at))


def _zeros(start: ir.Value, conv: Conv, axes: Sequence[ImageAxis], phases: int) -> ir.Value:
    """Initial value of the sums of all phases."""
    shape = list(start.type.shape)
    shape[conv.out[-1]] *= phases
    for dim, axis in zip(conv.out[1:], axes):
        shape[dim] = axis.count
    return zeros(shape, start.type.element_type)


def _apart(phased: ir.Value, start: ir.Value, conv: Conv, axes: Sequence[ImageAxis]) -> ir.Value:
    """Interleaves the phases' elements to the result, and adds its initial value."""

    def summed(at: Indices, so_far: ir.Value) -> ir.Value:
        channel = at[conv.out[-1]]
        for dim, axis in zip(conv.out[1:], axes):
            place = arith.addi(at[dim], _index(axis.crop))
            channel = arith.addi(
                arith.muli(channel, _index(axis.stride)), _rest(place, axis.stride)
            )
            at[dim] = _divided(place, axis.stride)
        at[conv.out[-1]] = channel
        total = tensor.extract(phased, at)
        if starts_from_zeros(start):
            return total
        add = arith.addf if isinstance(total.type, ir.FloatType) else arith.addi
        return add(total, so_far)

    return _generated(start, summed)


def _generated(out: ir.Value, element: Callable[[Indices, ir.Value], ir.Value]) -> ir.Value:
    """A tensor by its indices and the elements of `out`."""
    rank = out.type.rank
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
    return generic(
        [],
        out,
        [identity],
        ["parallel"] * rank,
        lambda before: element([loop_index(d) for d in range(rank)], before),
    )


def _index(number: int) -> ir.Value:
    kind = ir.IndexType.get()
    return arith.ConstantOp(kind, ir.IntegerAttr.get(kind, number)).result


def _divided(number: ir.Value, by: int) -> ir.Value:
    return arith.divui(number, _index(by)) if by > 1 else number


def _rest(number: ir.Value, by: int) -> ir.Value:
    return arith.remui(number, _index(by))
