"""fuse-epilogue: fuses the elementwise ops after a contraction into one ``tc.epilogue``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from tcir._mlir import arith, func, ir, linalg
from tcir.dialect import tc
from tcir.dialect.ops.epilogue import SCALAR_OPS
from tcir.dialect.upstream import RESHAPES
from tcir.passes.analysis.contraction import (
    Conv,
    is_contraction,
    recognise,
    unaccepted,
    value,
)
from tcir.passes.analysis.stored_scale import check_stored_scales
from tcir.passes.analysis.wrappers import RESULT_TYPES, starts_from_zeros
from tcir.passes.emit.diagnostics import (
    SMALLEST_BLOCK_SCALED,
    SMALLEST_CONV,
    SMALLEST_MATMUL,
    match_failure,
)
from tcir.passes.emit.tensor_functions import functions_with_body, is_simt
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark


@dataclass(frozen=True)
class Alternate:
    """The index ``2 dim + first``, which selects every other column, starting at column `first`."""

    dim: int
    first: int

    def __str__(self) -> str:
        return f"{self.dim} ({'odd' if self.first else 'even'} columns)"


Dims: TypeAlias = "tuple[int | Alternate | None, ...]"
"""Result dimension that indexes each dimension of a tensor; None: index 0."""

PLAIN = (*RESULT_TYPES, "i32")
"""Types that a contraction stores without an epilogue."""


@register_pass
@dataclass(frozen=True)
class FuseEpilogue(Pass):
    """Fuses the ops between a contraction and the function's return into one ``tc.epilogue``.

    Before::

        %c = linalg.matmul ins(%a, %b) outs(%init)
        %d = linalg.generic ins(%c, %bias) { … arith.addf … arith.maximumf … }
        %e = linalg.generic ins(%d) { … arith.truncf … }
        return %e

    After::

        %c = linalg.matmul ins(%a, %b) outs(%zero)
        %e = "tc.epilogue"(%c) ({
        ^bb0(%sum: f32):
          %i = "tc.element"(%init) {map = (m, n) -> (m, n)}; arith.addf %i, %sum
          %b = "tc.element"(%bias) {map = (m, n) -> (n)}; arith.addf …; arith.maximumf …
          arith.truncf …; "tc.yield"
        })
        return %e

    A ``tc.quantise_blocks`` whose results are returned stays after it, as do reshapes and a
    ``tc.repack`` of the returned tensor. The pass fuses ``linalg`` ops without reductions
    (elementwise ops, broadcasts, and transposes of other operands) and ``arith`` and ``math`` ops
    on tensors. An accumulator that does not start at zero is added to the sum. A remark lists the
    fused ops and their operands. A ``tc.block_scaled_matmul`` with a result in f32 is also a
    contraction. If the only op after the contraction is a rounding to f16 or bf16, it is left to
    raise-to-tc. Block quantisation that divides by a scale before the scale is rounded for storing
    is rejected. Preserves the value of every element, up to the order of the f32 sums.
    """

    name: ClassVar[str] = "fuse-epilogue"

    def run(self, module: ir.Module) -> None:
        for function in functions_with_body(module):
            if len(function.regions[0].blocks) == 1 and not is_simt(function):
                check_stored_scales(function)
                _fuse(function)


def _fuse(function: func.FuncOp) -> None:
    ops = list(function.entry_block)
    if any(isinstance(op, tc.EpilogueOp) for op in ops):
        return  # the program came in with its epilogues
    contractions = [
        op for op in ops if is_contraction(op) or isinstance(op, tc.BlockScaledMatmulOp)
    ]
    end, returned = ops[-1], list(ops[-1].operands)
    quantise = ops[-2] if len(ops) > 1 else None
    if isinstance(quantise, tc.QuantiseBlocksOp) and returned == list(quantise.results):
        end, returned = quantise, [quantise.values]
    while len(returned) == 1 and isinstance(
        last := _owner_view(returned[0]), (tc.RepackOp, *RESHAPES)
    ):
        end, returned = last, [last.operands[0]]
    if len(contractions) != 1 or len(returned) != 1 or len(contractions[0].results) != 1:
        return  # raise-to-tc says what it expects
    (contraction,), (result,) = contractions, returned
    static = _is_static(contraction.results[0]) and _is_static(result)
    if not static or contraction.results[0].type.rank == 0:
        return
    raised = isinstance(contraction, tc.BlockScaledMatmulOp)
    if not _has_sums(contraction) if raised else unaccepted(contraction):
        return
    if isinstance(end, tc.QuantiseBlocksOp):
        remark(end, _quantised(end))
    with ir.InsertionPoint(end), result.owner.location if _owner(result) else end.location:
        body = _Body.create(contraction, result.type)
        try:
            fused = body.build(result)
        except _NotFused as problem:
            body.epilogue.operation.erase()
            smallest = (
                SMALLEST_BLOCK_SCALED
                if raised
                else SMALLEST_CONV
                if isinstance(recognise(contraction), Conv)
                else SMALLEST_MATMUL
            )
            raise match_failure(problem.op.opview, problem.words, smallest) from None
    if not fused:
        body.epilogue.operation.erase()
        return
    body.start_from_zeros()
    end.operation.operands[0] = body.epilogue.out
    _drop_dead(ops)
    remark(body.epilogue, body.summary())


def _has_sums(op: tc.BlockScaledMatmulOp) -> bool:
    """Whether a product that came in as an op gives sums in f32, rows outermost."""
    plain = not {"out_layout", "k_part"} & set(op.attributes)
    return plain and str(op.out.type.element_type) == "f32"


def _quantised(op: tc.QuantiseBlocksOp) -> str:
    """Describes a quantiser, for the remark."""
    form, codes, scales = op.format, op.codes.type, op.scales.type
    norm = "" if op.norm is None else f", times {_name(op.norm)}"
    up = ", rounded up where an element would saturate," if form.rounding == "rceil" else ""
    layout = "row-major" if op.row_major else "in blocks of 128 x 4"
    return (
        f"quantised to {form.name}{norm}: blocks of {form.block} {codes.element_type} of a row, "
        f"their scales {scales.element_type}{up} {layout}"
    )


def _is_static(tensor: ir.Value) -> bool:
    return isinstance(tensor.type, ir.RankedTensorType) and tensor.type.has_static_shape


def _owner(tensor: ir.Value) -> ir.Operation | None:
    """The op that defines `tensor`; None for an argument."""
    return None if isinstance(tensor, ir.BlockArgument) else tensor.owner


def _owner_view(tensor: ir.Value) -> ir.OpView | None:
    owner = _owner(tensor)
    return None if owner is None else owner.opview


def _drop_dead(ops: list[ir.OpView]) -> None:
    """Erases ops that the epilogue replaces."""
    for op in reversed(ops[:-1]):
        if not any(list(each.uses) for each in op.operation.results):
            op.operation.erase()


class _NotFused(Exception):
    """An op that no epilogue computes, and why."""

    def __init__(self, op: ir.Operation, words: str) -> None:
        super().__init__(words)
        self.op, self.words = op, words


@dataclass
class _Body:
    """A ``tc.epilogue`` while its body is built.

    known:  the numbers computed so far, by tensor and indices
    inputs: the tensors read, and how they are indexed
    names:  of the ops fused, in order
    starts: whether the contraction did not start from zeros
    """

    contraction: ir.OpView
    epilogue: tc.EpilogueOp
    block: ir.Block
    inputs: list[tuple[ir.Value, Dims]] = field(default_factory=list)
    known: dict[tuple[ir.Value, Dims], ir.Value] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    starts: bool = False

    @classmethod
    def create(cls, contraction: ir.OpView, out: ir.RankedTensorType) -> _Body:
        """Builds an epilogue op at the insertion point, whose body so far only has the sums of
        `contraction` as arguments."""
        sums = contraction.results[0]
        epilogue = tc.EpilogueOp(sums, out)
        *_, columns = out.shape
        gated = out.rank == sums.type.rank and sums.type.shape[-1] == 2 * columns
        elements = [sums.type.element_type] * (2 if gated else 1)
        block = epilogue.body.blocks.append(
            *elements, arg_locs=[contraction.location] * len(elements)
        )
        return cls(contraction, epilogue, block)

    def build(self, result: ir.Value) -> bool:
        """Builds the ops that compute the element of `result`; returns False if no op needs an
        epilogue."""
        sums = self.contraction.results[0]
        identity = tuple(range(sums.type.rank))
        start, total = self.contraction.operation.operands[-1], self.block.arguments[0]
        gated = len(self.block.arguments) == 2
        with ir.InsertionPoint(self.block):
            if gated:
                for first, argument in enumerate(self.block.arguments):
                    alternate = Alternate(identity[-1], first)
                    self.known[sums, (*identity[:-1], alternate)] = argument
            raised = isinstance(self.contraction, tc.BlockScaledMatmulOp)
            if not raised and not starts_from_zeros(start):
                if gated:
                    raise _NotFused(
                        self.contraction.operation,
                        "expected an accumulator that starts from zeros before a gated activation, "
                        "got another; add it by halves after the slices",
                    )
                with self.contraction.location:
                    first = self.element(start, identity)
                    add = arith.addf if isinstance(total.type, ir.FloatType) else arith.addi
                    total = add(first, total)
                self.starts = True
            if not gated:
                self.known[sums, identity] = total
            element = self.element(result, identity)
            plain = self.names in ([], ["arith.truncf"]) and str(element.type) in PLAIN
            if not self.starts and not self.inputs and plain:
                return False
            tc.YieldOp(element)
        if element not in self._computed():
            raise _NotFused(
                self.contraction.operation,
                "expected the function to return something made of the contraction, got a value "
                "that does not depend on it; return that from a function of its own",
            )
        return True

    def _computed(self) -> set[ir.Value]:
        """The values of the body that depend on the sums."""
        found = set(self.block.arguments)
        for op in self.block:
            if any(operand in found for operand in op.operation.operands):
                found.update(op.operation.results)
        return found

    def start_from_zeros(self) -> None:
        """Moves the addition of the contraction's initial value to the epilogue, so that its sums
        start from zeros."""
        if not self.starts:
            return
        kind = self.contraction.results[0].type
        floating = isinstance(kind.element_type, ir.FloatType)
        zero = (ir.FloatAttr if floating else ir.IntegerAttr).get(kind.element_type, 0)
        with ir.InsertionPoint(self.contraction), self.contraction.location:
            start = arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, zero)).result
        self.contraction.operation.operands[len(self.contraction.operands) - 1] = start

    def summary(self) -> str:
        """Describes the fused ops, for the remark."""
        first = ["the accumulator's start"] if self.starts else []
        words = "fused into the epilogue: " + ", ".join(first + self.names)
        reads = [f"{_name(tensor)} {_where(dims)}" for tensor, dims in self.inputs]
        return words + (f"; reads {', '.join(reads)}" if reads else "")

    # --- elements ------------------------------------------------------------------------------

    def element(self, tensor: ir.Value, dims: Dims) -> ir.Value:
        """The element of `tensor` at the indices `dims`, as a value of the body."""
        if (tensor, dims) not in self.known:
            self.known[tensor, dims] = self._new_element(tensor, dims)
        return self.known[tensor, dims]

    def _new_element(self, tensor: ir.Value, dims: Dims) -> ir.Value:
        op = _owner(tensor)
        if op is None:
            return self._input(tensor, dims)
        if op == self.contraction.operation:
            raise _NotFused(
                op,
                f"expected the sums in the order of the result, got them {_where(dims)}: a lane "
                "holds a row of them; store the result as it is and transpose it in a function of "
                "its own",
            )
        if op.name == "arith.constant":
            return self._constant(op)
        if op.name == "linalg.fill":
            return self.element(op.operands[0], ())
        if op.name == "tensor.extract_slice":
            return self.element(op.operands[0], _every_other(op, dims))
        if isinstance(op.opview, RESHAPES):
            if _is_argument(tensor) and not _only_units(op):
                return self._input(tensor, dims)
            return self.element(op.operands[0], _through_view(op, dims))
        if op.name.startswith("linalg.") and linalg.get_indexing_maps(op) is not None:
            return self._structured(op, dims)
        if op.name in SCALAR_OPS or op.name.startswith("math."):
            with op.location:
                return self._clone(op, [self.element(each, dims) for each in op.operands])
        raise _NotFused(
            op,
            f"expected ops on single elements between the contraction and the return, got {op.name}"
            "; put it into a function of its own",
        )

    def _input(self, tensor: ir.Value, dims: Dims) -> ir.Value:
        if any(isinstance(each, Alternate) for each in dims):
            raise _NotFused(
                self.contraction.operation,
                f"expected another tensor to be read whole, got {_name(tensor)} {_where(dims)} (a "
                "thread reads neighbouring columns); pass its even and odd columns as two tensors",
            )
        self.inputs.append((tensor, dims))
        rank = self.epilogue.out.type.rank
        return tc.ElementOp(tensor, _map(dims, rank), tensor.type.element_type).value

    def _constant(self, op: ir.Operation) -> ir.Value:
        attribute, kind = op.attributes["value"], op.results[0].type
        if isinstance(kind, ir.ShapedType):
            if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
                raise _NotFused(
                    op,
                    f"expected a constant of one number, got one of {kind}: weights are read from "
                    "memory; make it an argument, or run constants-to-arguments first",
                )
            kind, attribute = kind.element_type, attribute.get_splat_value()
        with op.location:
            return arith.ConstantOp(kind, attribute).result

    def _structured(self, op: ir.Operation, dims: Dims) -> ir.Value:
        """The body of a ``linalg`` op at one point of its loops."""
        maps = [value(each) for each in linalg.get_indexing_maps(op)]
        loops = _loops(op, maps[-1], dims)
        block = op.regions[0].blocks[0]
        inner: dict[ir.Value, ir.Value] = {}
        for argument, operand, affine_map in zip(block.arguments, op.operands, maps):
            if list(argument.uses):
                inner[argument] = self.element(operand, _indices(op, affine_map, loops))
        *ops, last = block.operations
        for each in ops:
            name = each.operation.name
            if name not in SCALAR_OPS and not name.startswith("math."):
                raise _NotFused(
                    each.operation,
                    f"expected arith and math ops in an elementwise op, got {name}; put it into a "
                    "function of its own",
                )
            operands = [
                inner[o] if o in inner else self.element(o, ()) for o in each.operation.operands
            ]
            with each.location:
                inner[each.operation.results[0]] = self._clone(each.operation, operands)
        (yielded,) = last.operation.operands
        return inner[yielded] if yielded in inner else self.element(yielded, ())

    def _clone(self, op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Value:
        """The op on numbers."""
        kind = op.results[0].type
        if isinstance(kind, ir.ShapedType):
            kind = kind.element_type
        if op.name == "arith.constant":
            return self._constant(op)
        self.names.append(op.name)
        attributes = {name: op.attributes[name] for name in op.attributes}
        return ir.Operation.create(op.name, [kind], operands, attributes).result


def _loops(op: ir.Operation, out: ir.AffineMap, dims: Dims) -> dict[int, int | None]:
    """Maps each loop of an elementwise op to the result dimension it iterates."""
    loops = [e.position for e in out.results if isinstance(e, ir.AffineDimExpr)]
    if len(op.results) != 1 or sorted(loops) != list(range(out.n_dims)):
        raise _NotFused(
            op,
            f"expected one result and a loop for each of its dimensions, got {op.name} with the "
            f"map {out}: an epilogue has no sums over other elements; put it into a function of "
            "its own",
        )
    return dict(zip(loops, dims, strict=True))


def _indices(op: ir.Operation, read: ir.AffineMap, loops: dict[int, int | None]) -> Dims:
    """The indices of an operand, from those of the result."""
    found: list[int | None] = []
    for each in read.results:
        if isinstance(each, ir.AffineDimExpr):
            found.append(loops[each.position])
        elif isinstance(each, ir.AffineConstantExpr) and each.value == 0:
            found.append(None)
        else:
            raise _NotFused(
                op, f"expected operands indexed by single loops, got the map {read} of {op.name}"
            )
    return tuple(found)


def _every_other(op: ir.Operation, dims: Dims) -> Dims:
    """The indices before a slice that takes the even or the odd columns."""
    view = op.opview
    offsets, sizes, strides = (
        list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))
        for name in ("offsets", "sizes", "strides")
    )
    shape, result = list(view.source.type.shape), list(view.result.type.shape)
    *rows, last = shape
    first = offsets[-1]
    whole = offsets[:-1] == [0] * len(rows) and sizes[:-1] == rows
    even = last % 2 == 0 and first in (0, 1) and sizes[-1] * 2 == last
    steps = strides == [1] * len(rows) + [2]
    dim = dims[-1]
    if not (whole and even and steps and result == sizes and isinstance(dim, int)):
        raise _NotFused(
            op,
            "expected a slice of the even or the odd columns (offset 0 or 1, stride 2), as of gate "
            f"and value, got offsets {offsets}, sizes {sizes}, strides {strides} of {shape}; let "
            "the columns of the two weights alternate",
        )
    return (*dims[:-1], Alternate(dim, first))


def _through_view(op: ir.Operation, dims: Dims) -> Dims:
    """The indices before a reshape that adds or drops dimensions of extent 1 only."""
    source, result = op.operands[0].type, op.results[0].type
    kept = [d for d, n in zip(dims, result.shape, strict=True) if n != 1]
    if not _only_units(op):
        raise _NotFused(
            op,
            f"expected a reshape of dimensions of extent 1, got {source} to {result}: an element's "
            "place must follow from one index a dimension; reshape the function's arguments",
        )
    rest = iter(kept)
    return tuple(next(rest) if n != 1 else None for n in source.shape)


def _only_units(view: ir.Operation) -> bool:
    """Whether a reshape adds or drops dimensions of extent 1 only."""
    source, result = view.operands[0].type, view.results[0].type
    return [n for n in source.shape if n != 1] == [n for n in result.shape if n != 1]


def _is_argument(tensor: ir.Value) -> bool:
    """Whether `tensor` is an argument, or the bytes of one in another shape."""
    while (owner := _owner_view(tensor)) is not None and isinstance(owner, RESHAPES):
        tensor = owner.operands[0]
    return owner is None


def _map(dims: Dims, rank: int) -> ir.Attribute:
    zero = ir.AffineConstantExpr.get(0)
    results = [ir.AffineDimExpr.get(d) if isinstance(d, int) else zero for d in dims]
    return ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, results))


def _where(dims: Dims) -> str:
    """The words for how a tensor is indexed."""
    named = [str(d) for d in dims if d is not None]
    return f"along dimension{'s'[: len(named) > 1]} {', '.join(named)}" if named else "as a scalar"


def _name(tensor: ir.Value) -> str:
    while (owner := _owner(tensor)) is not None:
        tensor = owner.operands[0]
    return f"argument {ir.BlockArgument(tensor).arg_number}"
