"""Converts the ops between sums and scores to the scale, the band and the body of a
``tc.attention``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tcir._mlir import arith, ir
from tcir.dialect import tc
from tcir.dialect.ops.attention import Band
from tcir.dialect.ops.epilogue import SCALAR_OPS
from tcir.dialect.upstream import names
from tcir.interp.types import Array, dense, dtype_of
from tcir.passes.analysis.digits import size_of
from tcir.passes.analysis.element_graph import NotRaised
from tcir.passes.emit.functions.f32 import constant
from tcir.passes.emit.reshape import reshape
from tcir.passes.emit.tensor_functions import tensor_bytes
from tcir.passes.raising.attention.elements import LEAF, NUMBER, Expression
from tcir.passes.raising.attention.lengths import KEY, Counted, Counts, KeyCount, keys_of, least_of
from tcir.passes.raising.attention.masks import (
    Kept,
    ScoreMask,
    is_fixed,
    kept_by,
    loops_of,
    rows_without_keys,
    values_of,
)
from tcir.passes.raising.attention.pattern import Pattern
from tcir.passes.raising.attention.roles import Roles, ScoreTensor
from tcir.passes.raising.attention.scores import INFINITY, Applied, Masked, Step, Times

ONE_BLOCK = 128
"""Keys that a kernel loads at a time: of no more a mask leaves none out."""
WIDE = ("index", "i64")
"""Types of numbers that are of i32 in the body, where they fit."""
CASTS = names(arith.IndexCastOp, arith.ExtSIOp, arith.TruncIOp)
"""Conversions between integers, which a body has of one type."""
READ = ("f32", "f16", "bf16", "i1", "i32")
"""Types of tensors that a body reads, and of its numbers."""
MOST = 1 << 24
"""Most values of a number of row and key that are computed."""
Change = Callable[[ir.Value], ir.Value]
"""Emits the ops that make the next number of a score."""


@dataclass(frozen=True)
class Make:
    """A number of the body that ops compute. emit: creates the ops and returns the number; read:
    tensors that the ops read, and their bytes"""

    emit: Callable[[], ir.Value]
    read: Mapping[object, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Number of bytes of the tensors that the ops read."""
        return sum(self.read.values())


@dataclass(frozen=True)
class Body:
    """Parts of an attention that follow from its mask and scale.

    scale: factor of all scores
    kept: keys that each row keeps
    without: number of rows without keys
    counted: the key counts of a batch, the smallest of which is the batch's number of keys; the
        number of batches; and the number of keys in the tensors
    changes: the functions that the body applies to a score, in order
    """

    scale: float
    kept: Kept
    without: int
    counted: Counts
    changes: Sequence[Change]

    @staticmethod
    def of(found: Pattern, roles: Roles) -> Body:
        """Derives the parts from a recognised attention; raises `NotRaised` if it cannot be
        expressed."""
        steps, kept, counts = _without_bands(found, roles)
        scale, steps = _scale(steps)
        usual = 1 / math.sqrt(size_of(found.depth))
        changes = [_change(step, roles, usual) for step in steps]
        b, _, m, n = map(size_of, roles.scores)
        without = rows_without_keys(kept.band, m, n)
        return Body(_near(scale, usual), kept, without, (tuple(counts), b, n), changes)

    def lengths(self, known: Counted) -> list[ir.Value]:
        """Emits the number of keys of each batch, unless all batches have all keys, or `known`
        already has the numbers."""
        if not self.counted[0]:
            return []
        if self.counted not in known:
            known[self.counted] = least_of(*self.counted)
        return [known[self.counted]]

    def write(self, op: tc.AttentionOp) -> None:
        """Adds the band and the body to an op. Tensors that the body reads are reshaped before the
        op."""
        self.kept.band.give(op)
        if not self.changes:
            return
        block = op.body.blocks.append(ir.F32Type.get(), arg_locs=[op.location])
        with ir.InsertionPoint(block):
            (score,) = block.arguments
            for change in self.changes:
                score = change(score)
            tc.YieldOp(score)


def _near(scale: float, usual: float) -> float:
    """Returns the program's scale, or `usual` = 1 / sqrt(d) if the scale differs from it by
    rounding only."""
    return usual if abs(scale - usual) <= 2.0**-22 * usual else scale


# --- bands ---------------------------------------------------------------------------------------


def _without_bands(found: Pattern, roles: Roles) -> tuple[list[Step], Kept, list[KeyCount]]:
    """Removes masks that are bands or lengths from the steps; returns the remaining steps, the keys
    that the bands keep, and the numbers of keys."""
    narrow = str(found.q.element.type) == "f16"
    steps: list[Step] = []
    kept, counts = Kept(Band()), list[KeyCount]()
    many = size_of(roles.scores[KEY]) > ONE_BLOCK
    for place, step in enumerate(found.steps):
        later = found.steps[place + 1 :]
        if not isinstance(step, Masked):
            steps.append(step)
            continue
        rest, problem = [], None
        last = all(map(_keeps_infinity, later))
        for mask in step.masks:
            count = keys_of(mask, roles) if last and mask.numbers.number == -INFINITY else None
            try:
                if not mask.fixed or not last:
                    words = "expected masks after other functions of scores, as kernels mask last"
                    raise NotRaised(mask.op.op, words)
                kept = kept.both(kept_by(mask, roles.scores, narrow=narrow))
            except NotRaised as why:
                if count is not None and (count.exact or many):
                    counts.append(count)
                if count is None or not count.exact:
                    rest.append(mask)
                    problem = why if mask.fixed else problem
        if rest:
            steps.append(_rest(step, tuple(rest), roles, problem))
    return steps, kept, counts


def _keeps_infinity(step: Step) -> bool:
    """Whether the step after a mask leaves -inf as it is."""
    if isinstance(step, Times):
        return step.factor > 0
    if isinstance(step, Masked) and all(m.numbers.number == -INFINITY for m in step.masks):
        return True
    applied = step.applied if isinstance(step, Masked) else step
    return applied.expression.name == "arith.addf"


def _rest(
    step: Masked, masks: tuple[ScoreMask, ...], roles: Roles, problem: NotRaised | None
) -> Step:
    """A step with the masks that are not bands, or the whole op if the body cannot compute these
    masks. problem: why one of them is not a band"""
    try:
        for mask in masks:
            if mask.condition is None or mask.numbers.number != -INFINITY:
                raise NotRaised(mask.op.op, "no condition")
            _make(mask.condition, roles)
        return Masked(step.applied, masks)
    except NotRaised:
        pass
    try:
        _change(step.applied, roles, 1.0)
    except NotRaised as why:
        raise problem or why from None
    return step.applied


def _scale(steps: list[Step]) -> tuple[float, list[Step]]:
    """Separates the factors after the last step that is neither a factor nor a mask; returns their
    product, and the other steps."""
    scale, rest = 1.0, list(steps)
    for place in reversed(range(len(steps))):
        step = steps[place]
        if isinstance(step, Applied):
            break
        if isinstance(step, Times):
            scale *= step.factor
            del rest[place]
    joined: list[Step] = []
    for step in rest:
        if isinstance(step, Times) and joined and isinstance(joined[-1], Times):
            step = Times(joined.pop().factor * step.factor)  # type: ignore[union-attr]
        joined.append(step)
    return scale, [each for each in joined if each != Times(1.0)]


# --- ops of the body -----------------------------------------------------------------------------


def _change(step: Step, roles: Roles, usual: float) -> Change:
    """Returns the function that emits the ops of a step; raises `NotRaised` if a kernel has no ops
    for it."""
    f32 = ir.F32Type.get()
    if isinstance(step, Times):
        factor = _near(step.factor, usual)
        return lambda score: arith.mulf(score, constant(f32, factor))
    if isinstance(step, Masked):
        made = [(_make(m.condition, roles), m.where) for m in step.masks if m.condition is not None]

        def masked(score: ir.Value) -> ir.Value:
            for condition, where in made:
                chosen = [score, constant(f32, -INFINITY)]
                score = arith.select(condition.emit(), *(reversed(chosen) if where else chosen))
            return score

        return masked
    op = step.expression
    if op.op is None or not _is_scalar(op.name):
        raise NotRaised(op.op, f"expected scores of elementwise ops, got {op.name}")
    source = op.op
    try:
        others = [
            None if n == step.hole else _make(each, roles, wide=True)
            for n, each in enumerate(op.operands)
        ]
    except NotRaised as why:
        raise NotRaised(why.op or source, why.words) from None

    def applied(score: ir.Value) -> ir.Value:
        operands = [score if other is None else other.emit() for other in others]
        return _created(source, op.name, f32, operands)

    return applied


def _make(element: Expression, roles: Roles, wide: bool = False) -> Make:
    """The ops of a number, computed or read; wide: floats are of f32."""
    kind = _kind_of(element)
    made, problem = _alone(element) or _of_one_dim(element, roles), None
    if made is None and kind in READ:
        try:
            made = _computed(element, roles)
        except NotRaised as why:
            problem = why
        read = None if str(element.type) in WIDE else _read(element, roles)
        if made is None or (read is not None and read.bytes < made.bytes):
            made = read
    if made is None:
        raise problem or NotRaised(
            element.op,
            "expected scores of numbers of tensors with an index for each batch, head, row and "
            f"key, or for some of these, of {', '.join(READ)}, got "
            f"{'one' if element.name == LEAF else element.name} of {kind}",
        )
    if not wide or kind not in ("f16", "bf16"):
        return made
    narrow = made
    return Make(lambda: arith.extf(ir.F32Type.get(), narrow.emit()), narrow.read)


def _alone(element: Expression) -> Make | None:
    """The constant that an element is, if it is one."""
    number, kind = element.number, element.type
    if str(kind) in WIDE and number is not None and _fits(np.asarray(number)):
        kind = ir.IntegerType.get_signless(32)
    if element.name != NUMBER or number is None or str(kind) not in READ:
        return None
    return Make(lambda: constant(kind, number))


def _kind_of(element: Expression) -> str:
    """The type of an element in the body: i32 for indices and i64."""
    kind = str(element.type)
    return "i32" if kind in WIDE else kind


def _of_one_dim(element: Expression, roles: Roles) -> Make | None:
    """A read of a constant of one dimension of the scores, if the element depends on that alone."""
    kind = _kind_of(element)
    loops = loops_of(element)
    dims = [d for d, index in enumerate(roles.scores) if loops & {digit.dim for digit in index}]
    if kind not in READ or len(dims) != 1 or (numbers := _values(element, roles)) is None:
        return None
    size = size_of(roles.scores[dims[0]])
    if numbers.size != size or (kind == "i32" and not _fits(numbers)):
        return None
    i32 = ir.IntegerType.get_signless(32)
    type_ = i32 if kind == "i32" else element.type
    shape = tuple(size if d == dims[0] else 1 for d in range(len(roles.scores)))
    array = numbers.astype(dtype_of(type_)).reshape(shape)

    def emit() -> ir.Value:
        tensor = ir.RankedTensorType.get(shape, type_)
        with ir.InsertionPoint(ir.InsertionPoint.current.block.owner):
            made = arith.ConstantOp(tensor, dense(array, tensor)).result
        return _element(ScoreTensor(made, shape, (dims[0],)))

    return Make(emit, {element: array.nbytes})


def _values(element: Expression, roles: Roles) -> Array | None:
    """The values of a fixed element, by the loops of the scores that it depends on, each of which
    is a dimension; None if there are others, or too many."""
    loops, whole = loops_of(element), [index for index in roles.scores if len(index) == 1]
    sizes = {i[0].dim: i[0].extent for i in whole if i[0].dim in loops and i[0].step == 1}
    if loops != set(sizes) or math.prod(sizes.values()) > MOST or not is_fixed(element):
        return None
    grid = np.indices(tuple(sizes.values()), np.int64, sparse=True)
    found = values_of(element, dict(zip(sizes, grid, strict=True)))
    return np.broadcast_to(found.reshape(found.shape[-len(sizes) :]), tuple(sizes.values()))


def _fits(numbers: Array) -> bool:
    """Whether integers are numbers of i32."""
    limits = np.iinfo(np.int32)
    return bool((numbers >= limits.min).all() and (numbers <= limits.max).all())


def _computed(element: Expression, roles: Roles) -> Make | None:
    """The op of an element, with all before; None if the body cannot have it."""
    if element.op is None or not element.operands:
        return None
    if element.name in CASTS and _kind_of(element.operands[0]) == _kind_of(element) == "i32":
        return _make(element.operands[0], roles)
    if not _is_scalar(element.name):
        return None
    operands = [_make(each, roles) for each in element.operands]
    op, name, kind = element.op, element.name, element.type
    if str(kind) in WIDE:
        numbers = _values(element, roles)
        if numbers is None or not _fits(numbers):
            return None
        kind = ir.IntegerType.get_signless(32)
    read = {tensor: size for each in operands for tensor, size in each.read.items()}
    return Make(lambda: _created(op, name, kind, [each.emit() for each in operands]), read)


def _read(element: Expression, roles: Roles) -> Make | None:
    """A read of the smallest tensor with an element; None if no index is one of scores."""
    found = [roles.beside(*place) for place in element.places]
    legal = [each for each in found if each is not None]
    if not legal:
        return None
    least = min(legal, key=lambda each: math.prod(each.shape))
    return Make(lambda: _element(least), {least.tensor: tensor_bytes(least.tensor.type)})


def _element(beside: ScoreTensor) -> ir.Value:
    attention = ir.InsertionPoint.current.block.owner
    with ir.InsertionPoint(attention):
        tensor = reshape(beside.tensor, beside.shape)
    dims = [
        ir.AffineExpr.get_dim(d) if d in beside.dims else ir.AffineExpr.get_constant(0)
        for d in range(len(beside.shape))
    ]
    map_ = ir.AffineMapAttr.get(ir.AffineMap.get(len(dims), 0, dims))
    return tc.ElementOp(tensor, map_, tensor.type.element_type).value


def _is_scalar(name: str) -> bool:
    return name in SCALAR_OPS or name.startswith("math.")


def _created(op: ir.Operation, name: str, kind: ir.Type, operands: Sequence[ir.Value]) -> ir.Value:
    attributes = {each: op.attributes[each] for each in op.attributes}
    with op.location:
        return ir.Operation.create(name, [kind], operands, attributes).result
