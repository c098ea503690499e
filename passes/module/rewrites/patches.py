"""Convolutions of patches as matrix products, for strides that are too large for tensor maps.

If windows do not overlap, each pixel belongs to at most one patch. The image, viewed with the
dimensions (patch, place in the patch), is then operand A of a product: a patch is a row, and the
filters are the columns of B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcir._mlir import ir, tensor
from tcir.dialect.limits import TMA_ELEMENT_STRIDE
from tcir.passes.analysis.contraction import Conv, is_contraction, recognise
from tcir.passes.analysis.cuda_cores import FLAT
from tcir.passes.analysis.moves import inverse, transpose
from tcir.passes.analysis.wrappers import starts_from_zeros
from tcir.passes.emit.clone import clone
from tcir.passes.emit.generic import generic, padded, zeros
from tcir.passes.emit.reshape import reshape
from tcir.passes.emit.tensor_functions import erase_unread, functions_with_body


@dataclass(frozen=True)
class Patches:
    """A dimension of the image as a sequence of `count` patches. Patches are `stride` elements
    apart; a patch has `taps` elements, which are `step` elements apart."""

    dim: int
    count: int
    stride: int
    taps: int
    step: int

    @property
    def is_apart(self) -> bool:
        """Whether patches do not overlap."""
        return (self.taps - 1) * self.step < self.stride


def patches_of(op: ir.OpView, conv: Conv) -> list[Patches] | None:
    """The patches along each dimension; None unless the windows do not overlap and the convolution
    has either a stride above 8 or three dimensions, which neither tensor maps nor the lanes of a
    tile can express."""
    if conv.groups or not (conv.channels and conv.filters):
        return None
    if max(conv.strides) in TMA_ELEMENT_STRIDE and len(conv.strides) <= FLAT:
        return None
    image, weights, out = (op.operands[n].type.shape for n in (conv.x, conv.w, 2))
    windows = range(1, 1 + len(conv.strides))
    found = [
        Patches(conv.image[n], out[conv.out[n]], stride, weights[tap], step)
        for n, stride, tap, step in zip(
            windows, conv.strides, conv.taps, conv.dilations, strict=True
        )
    ]
    read = ((p.count - 1) * p.stride + (p.taps - 1) * p.step + 1 for p in found)
    fits = all(n <= image[p.dim] for n, p in zip(read, found, strict=True))
    return found if fits and all(each.is_apart for each in found) else None


def multiply_patches(module: ir.Module) -> None:
    """Rewrites convolutions whose windows do not overlap as matrix products. Preserves the sums."""
    for function in functions_with_body(module):
        rewritten = False
        for op in [each for each in function.entry_block if is_contraction(each)]:
            found = recognise(op) if len(op.operands) == 3 else None
            if isinstance(found, Conv) and (patches := patches_of(op, found)):
                _multiply(op, found, patches)
                rewritten = True
        if rewritten:
            erase_unread(function)


def _multiply(op: ir.OpView, conv: Conv, patches: Sequence[Patches]) -> None:
    image, weights, start = op.operands[conv.x], op.operands[conv.w], op.operands[2]
    with ir.InsertionPoint(op), op.location:
        order = list(conv.out)
        shape = [start.type.shape[d] for d in order]
        zero = starts_from_zeros(start)
        begin = zeros(shape, start.type.element_type) if zero else transpose(start, order)
        result = _product(op, conv, (_apart(image, patches), weights), begin)
        if order != sorted(order):
            result = transpose(result, inverse(order))
    op.results[0].replace_all_uses_with(result)
    op.operation.erase()


def _apart(image: ir.Value, patches: Sequence[Patches]) -> ir.Value:
    """The image, each dimension of patches as two: the patch, and the place in it."""
    of = {each.dim: each for each in patches}
    shape = list(image.type.shape)
    whole = [of[d].count * of[d].stride if d in of else n for d, n in enumerate(shape)]
    cut = [min(sizes) for sizes in zip(whole, shape, strict=True)]
    image = _slice(image, cut, [1] * len(shape))
    behind = [n - m for n, m in zip(whole, cut, strict=True)]
    image = padded(image, [0] * len(shape), behind)  # which no window reads
    dims, read, steps = list[int](), list[int](), list[int]()
    for d, size in enumerate(whole):
        each = of.get(d)
        dims += [each.count, each.stride] if each else [size]
        read += [each.count, each.taps] if each else [size]
        steps += [1, each.step] if each else [1]
    return _slice(reshape(image, dims), read, steps)


def _slice(value: ir.Value, sizes: Sequence[int], steps: Sequence[int]) -> ir.Value:
    """Takes a slice from the first element of each dimension on."""
    if list(value.type.shape) == list(sizes):
        return value
    kind = ir.RankedTensorType.get(sizes, value.type.element_type)
    return tensor.ExtractSliceOp(
        kind, value, [], [], [], [0] * len(sizes), [*sizes], [*steps]
    ).result


def _product(
    op: ir.OpView, conv: Conv, factors: tuple[ir.Value, ir.Value], start: ir.Value
) -> ir.Value:
    """Product of the patches and the filters, with the body of `op`, channels last."""
    rank = len(conv.strides)
    batch, filters, channel = 0, 1 + rank, 2 + rank
    taps = range(3 + rank, 3 + 2 * rank)
    of_image = {conv.image[0]: [batch], conv.image[-1]: [channel]}
    of_image |= {conv.image[1 + n]: [1 + n, taps[n]] for n in range(rank)}
    of_weights = dict(zip(conv.weights, (filters, *taps, channel), strict=True))
    dims = {
        conv.x: [loop for d in sorted(of_image) for loop in of_image[d]],
        conv.w: [of_weights[d] for d in sorted(of_weights)],
    }
    maps = [
        ir.AffineMapAttr.get(ir.AffineMap.get(taps.stop, 0, list(map(ir.AffineDimExpr.get, loops))))
        for loops in (dims[0], dims[1], range(channel))
    ]
    block = op.regions[0].blocks[0]

    def summed(*elements: ir.Value) -> ir.Value:
        known = dict(zip(block.arguments, elements, strict=True))
        *body, end = block.operations
        for each in body:
            clone(each, known)
        return known[end.operands[0]]

    kinds = ["parallel"] * channel + ["reduction"] * (taps.stop - channel)
    inputs = factors if conv.x == 0 else factors[::-1]
    return generic(inputs, start, maps, kinds, summed)
