"""The factors of a program's contraction, determined from its indexing maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcir._mlir import arith, func, tensor
from tcir.dialect.arithmetic import Arithmetic
from tcir.dialect.indexing import Dims, Index
from tcir.dialect.operation import Op, traits_of
from tcir.dialect.upstream import FLOAT_TO_INTEGER, RESHAPES, names
from tcir.interp.types import is_integer
from tcir.program.access import (
    Array,
    SumOfProducts,
    is_empty,
    is_maximum,
    product_of,
)
from tcir.program.programs import find_program
from tcir.program.signature import POWERS, Signature, numpy_type, scale_type
from tcir.program.taps import Taps
from tcir.target import TARGETS
from tcir.threads import cached_property

if TYPE_CHECKING:
    from tcir._mlir import ir

MOST_PRODUCTS = 1 << 24
"""Largest number of products in a sum that can be exact in f32."""
ROWS = 16
"""Minimum number of rows of a contraction's side that has some to spare for special values."""
# Ops that keep dimensions and values, between an input and the sum of products.
_SAME_DIMENSIONS = names(arith.ExtFOp, tensor.PadOp)
# Ops that may be in the sum of products, or before it: exact as long as its scalar factors are.
_EXACT = Arithmetic.of("products", "codes") | names(
    arith.AddFOp, arith.AddIOp, arith.ConstantOp, arith.ExtFOp, arith.ExtSIOp, arith.ExtUIOp,
    arith.MulFOp, arith.MulIOp, arith.ScalingExtFOp, "linalg.fill", "linalg.yield",
    tensor.CollapseShapeOp, tensor.EmptyOp, tensor.ExpandShapeOp, tensor.PadOp, tensor.YieldOp,
)  # fmt: skip
# Ops that may follow it: IEEE 754 and PTX round them alike.
ROUNDED = _EXACT | Arithmetic.of("rounded") | names(
    arith.AndIOp, arith.BitcastOp, arith.CmpFOp, arith.CmpIOp, arith.DivFOp, arith.MaximumFOp,
    arith.MaxNumFOp, arith.MaxSIOp, arith.MaxUIOp, arith.MinimumFOp, arith.MinNumFOp,
    arith.MinSIOp, arith.MinUIOp, arith.NegFOp, arith.OrIOp, arith.SelectOp, arith.ShLIOp,
    arith.ShRSIOp, arith.ShRUIOp, arith.SIToFPOp, arith.SubFOp, arith.SubIOp, arith.TruncFOp,
    arith.TruncIOp, arith.UIToFPOp, arith.XOrIOp, func.ReturnOp, "math.absf", "math.ceil",
    "math.floor", "math.roundeven", "math.sqrt", "math.trunc", tensor.ExtractSliceOp,
)  # fmt: skip
FOLLOWING = ROUNDED | {
    "math.acos", "math.asin", "math.atan", "math.cos", "math.cosh", "math.erf", "math.exp",
    "math.exp2", "math.expm1", "math.fpowi", "math.log", "math.log10", "math.log1p", "math.log2",
    "math.powf", "math.rsqrt", "math.sin", "math.sinh", "math.tan", "math.tanh",
}  # fmt: skip
"""Ops that may follow sums; for functions the error is bounded (`tcir.validation.propagation`)."""
TO_WHOLE = FOLLOWING | FLOAT_TO_INTEGER
"""Ops that may follow integer-valued sums, which are never NaN."""
_FP8 = ("float8_e4m3fn", "float8_e5m2")
# Ops of a body that only moves elements.
_MOVED = Arithmetic(names(arith.ExtFOp, "linalg.yield"))


@dataclass(frozen=True)
class Factor:
    """An input that is a factor of every product, or to which the products are added.

    argument: number of the input; -1 - n stands for the sums of an earlier contraction n
    dtype:    element type; for codes, the type into which they are packed
    shape:    shape of the index space (`tcir.program.access.OperandAccess`)
    dims:     for each dimension: the loop that indexes it; None if that is not a single loop
    places:   number of the argument's element at each index; None: the index space is that of the
              argument
    scale:    whether it is a block scale, which has no sign
    """

    argument: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    dims: Dims
    places: Array | None
    scale: bool


@dataclass(frozen=True)
class Contraction:
    """A contraction: out[parallel loops] is the sum, over all other loops, of the product of all
    factors.

    taps:     by loop over taps: the taps at which no product has an element of padding; empty if
              there are none
    start:    the input to which the products are added; None: zeros, or a number without a loop
    blocks:   whether columns of results share scales, so that a NaN in one column spreads to others
    promoted: whether partial sums have fewer bits than f32 (wgmma on fp8)
    """

    factors: tuple[Factor, ...]
    parallel: frozenset[int]
    taps: Taps = field(default_factory=dict)
    start: Factor | None = None
    blocks: bool = False
    promoted: bool = False

    @cached_property
    def products(self) -> int:
        """Number of products in a sum."""
        extents: dict[int, int] = {}
        for factor in self.factors:
            for n, index in zip(factor.shape, factor.dims, strict=True):
                if index is not None and index[0] not in self.parallel:
                    extents[index[0]] = max(n * index[1], extents.get(index[0], 1))
        return math.prod(extents.values())

    @property
    def whole(self) -> bool:
        """Whether the factors are integers."""
        return all(is_integer(factor.dtype) for factor in self.factors)

    @property
    def inputs(self) -> tuple[Factor, ...]:
        """The factors, and the input to which the products are added."""
        return self.factors if self.start is None else (*self.factors, self.start)

    @property
    def pairs(self) -> list[tuple[Factor, Factor]]:
        """The pair of operands, and the pair of their block scales if there are any."""
        groups = ([f for f in self.factors if f.scale is scale] for scale in (False, True))
        return [(group[0], group[1]) for group in groups if group]

    def extents(self, results: int) -> tuple[int, int, int, int]:
        """Returns the number of rows and columns of a product, the number of such products (the
        batch), and the length of the longest dimension along its sums.

        Rows are indexed by the parallel loops of the first factor alone, columns by those of the
        second factor alone. results: number of elements of the result
        """
        pair = a, b = self.pairs[0]
        sizes = [
            {i[0]: n for n, i in zip(f.shape, f.dims, strict=True) if i and i[0] in self.parallel}
            for f in pair
        ]
        columns = math.prod(n for loop, n in sizes[1].items() if loop not in sizes[0])
        both = math.prod(n for loop, n in sizes[1].items() if loop in sizes[0])
        axes = self.shared_axes((a, b))
        length = a.shape[axes[0]] if axes else self.products
        # A gated activation makes one result of two sums.
        rows = math.prod(n for loop, n in sizes[0].items() if loop not in sizes[1])
        return max(results // (columns * both), rows), columns, both, length

    def shared_axes(self, pair: tuple[Factor, Factor]) -> tuple[int, int] | None:
        """Returns, for each factor, the dimension that a reduction loop of both factors indexes; if
        several loops do, the longest such dimension. None if there is none.
        """
        a, b = pair
        shared = [
            (a.dims.index(i), b.dims.index(i))
            for i in set(a.dims) & set(b.dims)
            if i is not None and i[0] not in self.parallel
        ]
        shared = [(x, y) for x, y in shared if a.shape[x] == b.shape[y]]
        return max(shared, key=lambda axes: (a.shape[axes[0]], axes), default=None)

    def own_axis(self, pair: tuple[Factor, Factor], side: int, least: int = ROWS) -> int | None:
        """Returns the longest dimension of one factor that is indexed by a parallel loop which the
        other factor does not have. None if no such dimension has at least `least` elements.
        """
        loops = self.own_loops(pair, side)
        own = [
            (n, axis)
            for axis, (n, index) in enumerate(zip(pair[side].shape, pair[side].dims, strict=True))
            if n >= least and index is not None and index[1] == 1 and index[0] in loops
        ]
        return max(own)[1] if own else None

    def own_loops(self, pair: tuple[Factor, Factor], side: int) -> set[int]:
        """Returns the parallel loops of one factor that the other factor does not have."""
        one, other = ({index[0] for index in factor.dims if index} for factor in pair)
        return (other - one if side else one - other) & self.parallel


def factor_types(product: SumOfProducts) -> set[np.dtype[Any]]:
    """Returns the types of the factors of a product; the type of their block scales is left out."""
    types = {source_of(value, access.dims)[2] for value, access in product.factors}
    scale = scale_type({each.name for each in types})
    return {each for each in types if each.name != scale} or types


def inputs_of(block: ir.Block) -> list[ir.Value]:
    """Returns the arguments of a program that contain data."""
    from tcir.dialect.attributes import is_fill_only

    return [a for a in block.arguments if not is_fill_only(a)]


def contraction_of(module: ir.Module, signature: Signature) -> Contraction | None:
    """Returns the contraction of the program, if it has exactly one and all other ops round as IEEE
    754 requires; otherwise None.

    Padding and casts may precede the contraction, and elementwise arithmetic with further inputs
    may follow it.
    """
    if signature.level != "tensor":
        return None
    block = find_program(module, signature.name).op.operation.regions[0].blocks[0]
    ops = [each.operation for each in block]
    products = [(op, product) for op in ops if (product := product_of(op)) is not None]
    if len(products) != 1:
        return None
    op, product = products[0]
    before = _before(op)
    if not all(is_parallel(each) or is_maximum(each) for each in ops if each != op):
        return None
    if any(not consists_of(each, _EXACT if each in before else TO_WHOLE) for each in ops):
        return None
    contraction = contraction_from(block, signature, product)
    if contraction is None:
        return None
    if not all(consists_of(each, FOLLOWING) for each in ops) and not contraction.whole:
        return None
    used = [f.argument for f in contraction.inputs]
    blocks = any(is_maximum(each) or traits_of(each).block_maxima for each in ops)
    return replace(contraction, blocks=blocks) if len(set(used)) == len(used) else None


def is_elementwise(module: ir.Module, signature: Signature) -> bool:
    """Whether a program has no sums, and all its ops round as IEEE 754 requires."""
    if signature.level != "tensor":
        return False
    block = find_program(module, signature.name).op.operation.regions[0].blocks[0]
    for op in (each.operation for each in block):
        if isinstance(op.opview, Op) or not consists_of(op, ROUNDED) or not is_parallel(op):
            return False
    return True


def _before(op: ir.Operation) -> list[ir.Operation]:
    """Returns the op, and all ops that its operands are computed by."""
    from tcir._mlir import ir

    found = [op]
    for each in found:
        for operand in each.operands:
            owner = operand.owner
            if isinstance(owner, ir.Operation | ir.OpView) and owner.operation not in found:
                found.append(owner.operation)
    return found


def is_parallel(op: ir.Operation) -> bool:
    """Whether an op computes each element of its result once, because it has no reduction or
    reduces no elements.
    """
    from tcir._mlir import linalg

    if is_empty(op):
        return True
    maps = [each.value for each in linalg.get_indexing_maps(op) or ()]
    return not maps or maps[-1].is_permutation


def consists_of(op: ir.Operation, allowed: Arithmetic) -> bool:
    """Whether an op, or the body of a structured op, consists of allowed ops only."""
    inside = [inner.operation for r in op.regions for b in r for inner in b]
    if inside and op.name not in ("tensor.pad", "tc.attention", "tc.block_scaled_attention"):
        return all(map(allowed.has, inside))
    return allowed.has(op)


def contraction_from(
    block: ir.Block,
    signature: Signature,
    product: SumOfProducts,
    made: Callable[[ir.Value], int | None] = lambda _: None,
) -> Contraction | None:
    """Returns the contraction of two factors, with or without scales; None if `product` is not a
    contraction, or if its sums are too long.

    made: for a factor that is not an argument, returns its number (`tcir.program.chains`), or None
    """
    arguments = inputs_of(block)
    factors = []
    for value, access in product.factors:
        source, dims, dtype = source_of(value, access.dims)
        number = arguments.index(source) if source in arguments else made(source)
        if number is None:
            return None
        shape = tuple(source.type.shape)
        unsigned = number >= 0 and signature.inputs[number].unsigned
        scale = dtype.name == POWERS or (unsigned and not is_integer(dtype))
        if shape:
            shape = shape if access.places is None else access.shape
            factors.append(Factor(number, dtype, shape, dims, access.places, scale))
    if [f.scale for f in factors].count(False) != 2 or len(factors) not in (2, 4):
        return None
    start = None
    if product.start is not None:
        source, dims, dtype = source_of(*product.start)
        if source in arguments and source.type.rank:
            shape = tuple(source.type.shape)
            start = Factor(arguments.index(source), dtype, shape, dims, None, False)
    promoted = all(f.dtype.name in _FP8 for f in factors) and _has_wgmma(block)
    contraction = Contraction(
        tuple(factors), product.parallel, product.taps, start, promoted=promoted
    )
    return contraction if contraction.products <= MOST_PRODUCTS else None


def _has_wgmma(block: ir.Block) -> bool:
    """Whether the module is compiled for a target with wgmma."""
    module = block.owner.operation.parent
    return "tc.target" in module.attributes and TARGETS[module.attributes["tc.target"].value].wgmma


def _adds_zeros(op: ir.Operation) -> bool:
    """Whether a ``tensor.pad`` pads with zeros: other numbers would be in products but in no
    factor."""
    (number,) = list(op.regions[0].blocks[0])[-1].operands
    owner = number.owner
    return getattr(owner, "name", "") == "arith.constant" and owner.attributes["value"].value == 0


def source_of(value: ir.Value, dims: Dims) -> tuple[ir.Value, Dims, np.dtype[Any]]:
    """Follows a value back through casts, padding, moves and reshapes. Returns the value before
    these ops, its indices, and its element type.

    The element type of codes is the type into which they are packed.
    """
    from tcir._mlir import ir, linalg

    packed = None
    while isinstance(value.owner, ir.Operation | ir.OpView):
        op = value.owner.operation
        maps = [each.value for each in linalg.get_indexing_maps(op) or ()]
        if maps and len(maps) == 2 and maps[1].is_permutation and consists_of(op, _MOVED):
            loops = {e.position: index for e, index in zip(maps[1].results, dims, strict=True)}
            dims = tuple(
                loops[e.position] if isinstance(e, ir.AffineDimExpr) else None
                for e in maps[0].results
            )
        elif isinstance(op.opview, RESHAPES):
            before = _reshaped(dims, value.type.shape, op.operands[0].type.shape)
            if before is None:
                break
            dims = before
        elif traits_of(op).arithmetic == "codes":
            packed = numpy_type(value.type.element_type)
        elif op.name not in _SAME_DIMENSIONS or (op.name == "tensor.pad" and not _adds_zeros(op)):
            break
        value = op.operands[0]
    element = value.type.element_type if isinstance(value.type, ir.ShapedType) else value.type
    return value, dims, packed or numpy_type(element)


def _reshaped(dims: Dims, shape: Sequence[int], source: Sequence[int]) -> Dims | None:
    """Returns the indices of a tensor of shape `source`, given those of its reshape to `shape`;
    None if the reshape splits one of its dimensions.

    If several dimensions were merged, the first has a quotient of the index, the others have None.
    """
    inner, strides = ([math.prod(s[n + 1 :]) for n in range(len(s))] for s in (shape, source))
    found: list[Index | None] = []
    for extent, stride in zip(source, strides, strict=True):
        around = [
            (index, n * step, step)
            for index, n, step in zip(dims, shape, inner, strict=True)
            if n != 1 and step <= stride and stride * extent <= n * step
        ]
        if extent != 1 and len(around) != 1:
            return None
        index, end, step = around[0] if extent != 1 else (None, 0, 1)
        first = index is not None and stride * extent == end
        found.append((index[0], index[1] * (stride // step)) if index and first else None)
    return tuple(found)
