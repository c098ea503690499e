"""Quantised products of `linalg` as products of i8, which tensor cores compute, and corrections.

With zero points p and q, the sum of (a - p)(b - q) over K is the sum of a b, minus q times the sum
of a, minus p times the sum of b, plus K p q. In integers modulo 2^32 this is exact. A zero point of
0 has no correction. (Jacob et al., "Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference", 2.3.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from tcir._mlir import arith, ir, linalg, tensor
from tcir.passes.analysis.contraction import value
from tcir.passes.analysis.wrappers import starts_from_zeros
from tcir.passes.emit.functions import constant_number
from tcir.passes.emit.generic import generic, zeros
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.tensor_functions import erase_unread, functions_with_body
from tcir.target import TARGETS

QUANTISED = tuple(
    f"linalg.{name}"
    for name in (
        "conv_2d_nchw_fchw_q", "conv_2d_nhwc_fhwc_q", "conv_2d_nhwc_hwcf_q",
        "quantized_batch_matmul", "quantized_matmul",
    )
)  # fmt: skip
"""Ops with factors, zero points and an accumulator, except convolutions with thin groups, which
CUDA cores compute with their zero points."""


def correct_zero_points(module: ir.Module) -> None:
    """Rewrites quantised products of i8 with sums of i32. Preserves every value."""
    pixels = TARGETS[target_of(module)].tcgen05
    for function in functions_with_body(module):
        found = [each for each in function.entry_block if _is_quantised(each)]
        found = [each for each in found if pixels or not _needs_pixels(each)]
        for op in found:
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(_corrected(op))
            op.operation.erase()
        if found:
            erase_unread(function)


def _is_quantised(op: ir.OpView) -> bool:
    if op.operation.name not in QUANTISED or len(op.results) != 1:
        return False
    kinds = [str(getattr(o.type, "element_type", o.type)) for o in op.operation.operands]
    static = all(o.type.has_static_shape for o in list(op.operands)[:2])
    if kinds != ["i8", "i8", "i32", "i32", "i32"] or not static:
        return False
    return all(constant_number(p) is not None or _tensor_of(p) for p in list(op.operands)[2:4])


def _needs_pixels(op: ir.OpView) -> bool:
    """Whether no schedule of wgmma computes it: its pixels are rows without an index of an image,
    for which there is no sum of each window."""
    return "conv" in op.operation.name and constant_number(op.operands[3]) != 0


def _tensor_of(point: ir.Value) -> ir.Value | None:
    """The tensor without dimensions that a number is read from."""
    if isinstance(point, ir.BlockArgument) or point.owner.name != "tensor.extract":
        return None
    return point.owner.operands[0] if len(point.owner.operands) == 1 else None


@dataclass(frozen=True)
class _Side:
    """A factor of a quantised product: its tensor, its indices in loops, and the zero point of the
    other factor."""

    factor: ir.Value
    indices: Sequence[ir.AffineExpr]
    other: ir.Value

    @property
    def loops(self) -> list[int]:
        """The loops that the indices of this operand consist of."""
        return sorted({d for each in self.indices for d in _loops(each)})


@dataclass(frozen=True)
class _Term:
    """A correction, by the numbers of inputs: sums of a factor, times the zero point of the other,
    which is a tensor or a constant."""

    sums: int
    point: int | None
    constant: ir.Value

    def of(self, elements: Sequence[ir.Value]) -> ir.Value:
        """The zero point of this operand as a value in the body of an op: the block argument that
        holds it, or a constant. `elements`: the arguments of the body"""
        if self.point is not None:
            return elements[self.point]
        return _i32(int(constant_number(self.constant) or 0))


def _loops(index: ir.AffineExpr) -> set[int]:
    if isinstance(index, ir.AffineDimExpr):
        return {index.position}
    if isinstance(index, ir.AffineConstantExpr):
        return set()
    return _loops(index.lhs) | _loops(index.rhs)


def _corrected(op: ir.OpView) -> ir.Value:
    a, b, p, q, start = op.operation.operands
    maps = [value(each) for each in linalg.get_indexing_maps(op.operation)]
    of_a, of_b, out = (list(maps[n].results) for n in (0, 1, -1))
    kept, count = [each.position for each in out], maps[-1].n_dims
    extents = {
        index.position: size
        for indices, operand in ((of_a, a), (of_b, b), (out, start))
        for index, size in zip(indices, operand.type.shape, strict=True)
        if isinstance(index, ir.AffineDimExpr)
    }
    kinds = ["parallel" if d in kept else "reduction" for d in range(count)]
    affine = [ir.AffineMapAttr.get(maps[n]) for n in (0, 1, -1)]
    begin = zeros(start.type.shape, start.type.element_type)
    product = generic([a, b], begin, affine, kinds, _multiplied)
    everywhere = list(range(len(kept)))
    inputs, places = [product], [everywhere]
    terms = list[_Term]()
    for side in (_Side(a, of_a, q), _Side(b, of_b, p)):
        if constant_number(side.other) == 0:
            continue
        loops = [d for d in side.loops if d in kept]
        terms.append(_Term(len(inputs), None, side.other))
        inputs.append(_summed(side, loops, extents))
        places.append([kept.index(d) for d in loops])
        if (tensor_ := _tensor_of(side.other)) is not None:
            terms[-1] = replace(terms[-1], point=len(inputs))
            inputs.append(tensor_)
            places.append([])
    begins = None if starts_from_zeros(start) else len(inputs)
    if begins is not None:
        inputs.append(start)
        places.append(everywhere)
    if len(inputs) == 1:
        return product
    number = prod(extents[d] for d in range(count) if d not in kept)

    def corrected(*elements: ir.Value) -> ir.Value:
        total = elements[0]
        points = [each.of(elements) for each in terms]
        for each, point in zip(terms, points, strict=True):
            total = arith.subi(total, arith.muli(elements[each.sums], point))
        if len(points) > 1:
            total = arith.addi(total, arith.muli(arith.muli(*points), _i32(number)))
        return total if begins is None else arith.addi(total, elements[begins])

    wide = [
        ir.AffineMapAttr.get(ir.AffineMap.get(len(kept), 0, list(map(ir.AffineDimExpr.get, dims))))
        for dims in (*places, range(len(kept)))
    ]
    empty = tensor.EmptyOp(start.type.shape, start.type.element_type).result
    return generic(inputs, empty, wide, ["parallel"] * len(kept), corrected)


def _multiplied(first: ir.Value, second: ir.Value, total: ir.Value) -> ir.Value:
    wide = total.type
    return arith.addi(total, arith.muli(arith.extsi(wide, first), arith.extsi(wide, second)))


def _summed(side: _Side, kept: list[int], extents: dict[int, int]) -> ir.Value:
    """The sums of a factor over the loops that it has besides `kept`.

    Loops that are an index only together with another, those of a window, are the dimensions of a
    tensor that nothing reads.
    """
    place = {d: n for n, d in enumerate(side.loops)}
    single = {each.position for each in side.indices if isinstance(each, ir.AffineDimExpr)}
    window = [d for d in side.loops if d not in single and d not in kept]

    def moved(index: ir.AffineExpr) -> ir.AffineExpr:
        if isinstance(index, ir.AffineDimExpr):
            return ir.AffineDimExpr.get(place[index.position])
        if isinstance(index, ir.AffineConstantExpr):
            return index
        made = ir.AffineAddExpr if isinstance(index, ir.AffineAddExpr) else ir.AffineMulExpr
        return made.get(moved(index.lhs), moved(index.rhs))

    def over(indices: Sequence[ir.AffineExpr]) -> ir.AffineMapAttr:
        return ir.AffineMapAttr.get(ir.AffineMap.get(len(place), 0, list(indices)))

    inputs, maps = [side.factor], [over(list(map(moved, side.indices)))]
    if window:
        kind = side.factor.type.element_type
        inputs.append(tensor.EmptyOp([extents[d] for d in window], kind).result)
        maps.append(over([ir.AffineDimExpr.get(place[d]) for d in window]))
    maps.append(over([ir.AffineDimExpr.get(place[d]) for d in kept]))
    kinds = ["parallel" if d in kept else "reduction" for d in side.loops]
    begin = zeros([extents[d] for d in kept], ir.IntegerType.get_signless(32))

    def added(element: ir.Value, *last: ir.Value) -> ir.Value:
        return arith.addi(last[-1], arith.extsi(last[-1].type, element))

    return generic(inputs, begin, maps, kinds, added)


def _i32(number: int) -> ir.Value:
    kind = ir.IntegerType.get_signless(32)
    return arith.ConstantOp(kind, ir.IntegerAttr.get(kind, number)).result
