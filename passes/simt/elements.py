"""Elements of tensors on CUDA cores: a thread computes one from those that it is made of.

Ops on tensors are followed back to what is in memory, element by element, so what stands between is
not stored: elementwise ops, broadcasts, transposes, padding, slices, reshapes. A reduction is a
loop over its points in lexicographic order, which is the order of the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tcir._mlir import arith, ir, linalg, scf
from tcir.dialect.ops.epilogue import SCALAR_OPS
from tcir.passes.build import simt
from tcir.passes.build.diagnostics import match_failure
from tcir.passes.build.element_epilogue import load, scalar
from tcir.passes.build.functions import FUNCTIONS
from tcir.passes.build.reshape import RESHAPES

Index: TypeAlias = "tuple[ir.Value, ...]"
"""An i32 for each dimension of a tensor."""
Loops: TypeAlias = "Mapping[int, ir.Value]"
"""The point of a structured op's loops."""

STORED = ("f32", "f16", "bf16", "i32", "i16")
"""Types of elements in memory."""
TAKEN = (
    "expected linalg ops with indexing maps (elementwise, broadcasts, transposes, reductions, "
    f"pooling), arith ops, {', '.join(FUNCTIONS)}, tensor.pad, tensor.extract_slice, reshapes"
)
"""What the kernels of this room compute."""
LEFT = (
    "no other pipeline takes it: gemm, matmul-warp and the convolutions have contractions, gemm "
    "with elementwise ops behind them"
)


def digits(number: ir.Value, shape: list[int]) -> Index:
    """The indices of element `number` of a tensor."""
    found: list[ir.Value] = []
    for extent in reversed(shape[1:]):
        found.insert(0, simt.rest(number, extent))
        number = simt.divide(number, extent)
    return (number, *found) if shape else ()


@dataclass(frozen=True)
class Elements:
    """What one thread knows.

    pointers: of the function's arguments
    known:    elements, by tensor and indices
    """

    pointers: Mapping[ir.Value, ir.Value]
    known: dict[tuple[ir.Value, Index], ir.Value] = field(default_factory=dict)

    def element(self, tensor: ir.Value, at: Index) -> ir.Value:
        """The element of `tensor` (of a number: itself) at the indices `at`."""
        if (tensor, at) not in self.known:
            self.known[tensor, at] = self._new(tensor, at)
        return self.known[tensor, at]

    def _new(self, tensor: ir.Value, at: Index) -> ir.Value:
        if isinstance(tensor, ir.BlockArgument):
            return self._load(tensor, at)
        op = tensor.owner
        with op.location:
            if op.name == "arith.constant":
                return _constant(op)
            if op.name == "linalg.fill":
                return self.element(op.operands[0], ())
            if isinstance(op.opview, RESHAPES):
                return self.element(op.operands[0], _through_view(op, at))
            if op.name == "tensor.extract_slice":
                return self.element(op.operands[0], _in_slice(op, at))
            if op.name == "tensor.pad":
                return self._padded(op, at)
            if op.name.startswith("linalg.") and linalg.get_indexing_maps(op) is not None:
                return self._structured(op, at)
            if op.name in SCALAR_OPS or op.name in FUNCTIONS:
                return scalar(op.opview, [self.element(each, at) for each in op.operands])
        raise match_failure(
            op.opview, f"{TAKEN}, got {op.name}; {LEFT}; write it with the ops above"
        )

    def _load(self, tensor: ir.BlockArgument, at: Index) -> ir.Value:
        return load(self.pointers[tensor], tensor.type, at)

    def _padded(self, op: ir.Operation, at: Index) -> ir.Value:
        """The element, or the padding: every load is inside, where it is not used at its edge."""
        (yielded,) = list(op.regions[0].blocks[0])[-1].operands
        low = list(ir.DenseI64ArrayAttr(op.attributes["static_low"]))
        if len(op.operands) != 1 or yielded.owner == op.regions[0].blocks[0] or min(low) < 0:
            raise match_failure(
                op.opview,
                "expected tensor.pad with one number, by sizes of at least 0 that are known, got "
                "another; make low, high and the number constants",
            )
        inside, places = simt.constant(1, 1), list[ir.Value]()
        for index, first, extent in zip(at, low, op.operands[0].type.shape, strict=True):
            place = simt.sub(index, first) if first else index  # below 0: a large number
            inside = simt.both_bits(inside, simt.less(place, extent))
            places.append(simt.smaller(place, extent - 1))
        element = self.element(op.operands[0], tuple(places))
        return arith.SelectOp(inside, element, self.element(yielded, ())).result

    def _structured(self, op: ir.Operation, at: Index) -> ir.Value:
        maps = [ir.AffineMapAttr(each).value for each in linalg.get_indexing_maps(op)]
        out = maps[-1].results
        if len(op.results) != 1 or not all(isinstance(e, ir.AffineDimExpr) for e in out):
            raise match_failure(
                op.opview,
                f"expected one result, indexed by single loops, got {len(op.results)} with the map "
                f"{maps[-1]}; {LEFT}; split it into ops of one result",
            )
        loops = {e.position: index for e, index in zip(out, at, strict=True)}
        sums = [dim for dim in range(maps[-1].n_dims) if dim not in loops]
        if not sums:
            return self._body(op, maps, loops)
        return self._reduced(op, maps, loops, sums, self.element(op.operands[-1], at))

    def _reduced(
        self,
        op: ir.Operation,
        maps: list[ir.AffineMap],
        loops: Loops,
        dims: list[int],
        total: ir.Value,
    ) -> ir.Value:
        """`total` and what the loops `dims` add to it, the last of them innermost."""
        if not dims:
            return self._body(op, maps, loops, total)
        dim, *inner = dims
        bounds = (simt.constant(n) for n in (0, _extent(op, maps, dim), 1))
        loop = scf.ForOp(*bounds, [total])
        with ir.InsertionPoint(loop.body):
            within = Elements(self.pointers, dict(self.known))
            here = {**loops, dim: loop.induction_variable}
            scf.YieldOp([within._reduced(op, maps, here, inner, loop.inner_iter_args[0])])
        return loop.results[0]

    def _body(
        self,
        op: ir.Operation,
        maps: list[ir.AffineMap],
        loops: Loops,
        total: ir.Value | None = None,
    ) -> ir.Value:
        """The body at one point; total: the output's element so far, if there is one."""
        block = op.regions[0].blocks[0]
        inner: dict[ir.Value, ir.Value] = {}
        for number, argument in enumerate(block.arguments):
            if number == len(maps) - 1 and total is not None:
                inner[argument] = total
            elif list(argument.uses):
                at = tuple(_place(op, e, loops) for e in maps[number].results)
                inner[argument] = self.element(op.operands[number], at)
        *ops, last = block.operations
        for each in ops:
            name = each.operation.name
            if name not in SCALAR_OPS and name not in FUNCTIONS:
                raise match_failure(
                    each, f"{TAKEN}, got {name} in a body; {LEFT}; write it with the ops above"
                )
            operands = [inner[o] if o in inner else self.element(o, ()) for o in each.operands]
            with each.location:
                inner[each.operation.results[0]] = (
                    _constant(each.operation)
                    if name == "arith.constant"
                    else scalar(each, operands)
                )
        (yielded,) = last.operation.operands
        return inner[yielded] if yielded in inner else self.element(yielded, ())


def _constant(op: ir.Operation) -> ir.Value:
    attribute, kind = op.attributes["value"], op.results[0].type
    if isinstance(kind, ir.ShapedType):
        if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
            raise match_failure(
                op.opview,
                f"expected a constant of one number, got one of {kind}: weights are read from the "
                "caller's memory; make it an argument",
            )
        kind, attribute = kind.element_type, attribute.get_splat_value()
    return arith.ConstantOp(kind, attribute).result


def _place(op: ir.Operation, expression: ir.AffineExpr, loops: Loops) -> ir.Value:
    """An affine expression at a point of the loops."""
    if isinstance(expression, ir.AffineDimExpr):
        return loops[expression.position]
    if isinstance(expression, ir.AffineConstantExpr):
        return simt.constant(expression.value)
    if isinstance(expression, ir.AffineAddExpr | ir.AffineMulExpr):
        sides = (_place(op, each, loops) for each in (expression.lhs, expression.rhs))
        return (simt.add if isinstance(expression, ir.AffineAddExpr) else simt.mul)(*sides)
    raise match_failure(
        op.opview,
        f"expected indices made of loops, sums and products, got {expression}; index by a loop of "
        "its own",
    )


def _extent(op: ir.Operation, maps: list[ir.AffineMap], dim: int) -> int:
    """The trip count of a loop."""
    for operand, each in zip(op.operands, maps):
        for expression, extent in zip(each.results, getattr(operand.type, "shape", ())):
            if isinstance(expression, ir.AffineDimExpr) and expression.position == dim:
                return int(extent)
    raise match_failure(
        op.opview, f"expected loop d{dim} to be the index of a dimension, got none; add an operand"
    )


def _through_view(op: ir.Operation, at: Index) -> Index:
    """The indices before a reshape: the element has the same number."""
    number: ir.Value = simt.constant(0)
    for index, extent in zip(at, op.results[0].type.shape, strict=True):
        number = simt.add(simt.mul(number, extent), index)
    return digits(number, list(op.operands[0].type.shape))


def _in_slice(op: ir.Operation, at: Index) -> Index:
    """The indices before a slice."""
    offsets, strides = (
        list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))
        for name in ("offsets", "strides")
    )
    if len(op.operands) != 1 or len(offsets) != len(at):
        raise match_failure(
            op.opview,
            "expected a slice by constants that keeps every dimension, got another; drop "
            "dimensions with tensor.collapse_shape",
        )
    return tuple(
        simt.add(simt.mul(index, stride), offset)
        for index, offset, stride in zip(at, offsets, strides, strict=True)
    )
