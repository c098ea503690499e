"""Chooses executions on inputs at the boundaries of a program's ops
(`tcir.program.boundary.targets`).

One execution has sums at ties and limits; in programs without sums, the inputs are at ties and
limits. Further executions have groups of special sizes, windows without a finite number, and
subnormal global scales. Attention has its own inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tcir._mlir import arith
from tcir.dialect.arithmetic import Arithmetic
from tcir.dialect.upstream import FLOAT_TO_INTEGER, names
from tcir.interp.types import Array, DType, ends_of_integers, is_integer
from tcir.program.access import product_of
from tcir.program.boundary.added import added_at_boundaries
from tcir.program.boundary.attention import attention_alone, attention_inputs
from tcir.program.boundary.block_amax import BlockTypes, block_format_of, rows_of_blocks
from tcir.program.boundary.placed_sums import Wanted, factors_with_sums
from tcir.program.boundary.targets import boundaries_of, drawn_of
from tcir.program.factors import ROUNDED, Contraction, consists_of, is_parallel
from tcir.program.group_sizes import special_ends, special_sizes
from tcir.program.programs import find_program
from tcir.program.signature import Signature
from tcir.program.spans import info_of

if TYPE_CHECKING:
    from tcir._mlir import ir

TIES = "ties and limits"
MODERATE = 16.0
"""Largest magnitude of sums before a function such as exp, so that its error is bounded."""
SUBNORMAL_SCALE = 2.0**-127
"""A global scale below the normal numbers of f32."""
FACING_SCALE = 2.0**100
"""Value of the other global scales in that case, so that results stay normal."""
SELDOM = 7
"""Number of largest finite numbers per infinity."""


_ALONE = ROUNDED | FLOAT_TO_INTEGER | {"linalg.index"}
"""Ops that round each result independently."""
_EXACT_REDUCTIONS = Arithmetic() | names(
    arith.AndIOp, arith.CmpFOp, arith.CmpIOp, arith.ConstantOp, arith.IndexCastOp,
    arith.MaximumFOp, arith.MaxNumFOp, arith.MaxSIOp, arith.MaxUIOp, arith.MinimumFOp,
    arith.MinNumFOp, arith.MinSIOp, arith.MinUIOp, arith.OrIOp, arith.SelectOp, "linalg.index",
    "linalg.yield", "math.absf",
)  # fmt: skip
"""Ops of a reduction that keeps one of its elements."""


@dataclass(frozen=True)
class PlacedInputs:
    """Inputs of an execution that are chosen rather than drawn.

    words:   description of the inputs
    factors: factors of the contraction, by number of the input; None: they are drawn, without
             special values
    numbers: by number of the input: a value for all its elements
    arrays:  by number of the input: its array
    exact:   whether results must agree bit for bit, even if the program's sums may round
    """

    words: str
    factors: Mapping[int, Array] | None = None
    numbers: Mapping[int, float] = field(default_factory=dict)
    arrays: Mapping[int, Array] = field(default_factory=dict)
    exact: bool = False

    def put_into(self, drawn: list[Array]) -> list[Array]:
        """Returns all inputs: those in `drawn`, with the inputs in `numbers` and `arrays`
        replaced.
        """
        full = {n: np.full_like(drawn[n], value) for n, value in self.numbers.items()}
        given = full | dict(self.arrays)
        return [given.get(n, array) for n, array in enumerate(drawn)]


def boundary_inputs(
    module: ir.Module, signature: Signature, contraction: Contraction | None, seed: int
) -> Iterator[PlacedInputs]:
    """Yields the boundary inputs of a program. contraction: the program's contraction, if it has
    exactly one
    """
    for number, spec in enumerate(signature.inputs):
        if spec.groups is not None:
            for words, sizes in special_sizes(spec):
                yield PlacedInputs(words, arrays={number: sizes})
        if spec.ends is not None:
            for words, ends in special_ends(spec):
                yield PlacedInputs(words, arrays={number: ends})
    if signature.level != "tensor":
        return
    block = find_program(module, signature.name).op.operation.regions[0].blocks[0]
    generator = np.random.default_rng(seed)
    *ops, _ = block
    if attention := attention_alone(ops):
        arguments = drawn_of(block, signature)
        for words, arrays, exact in attention_inputs(attention, arguments, generator):
            yield PlacedInputs(words, arrays=arrays, exact=exact)
    elif contraction is not None:
        placed = list(_of_sums(block, signature, contraction, generator))
        yield from placed
        if not placed or len(contraction.pairs) > 1:  # whose digits are few
            yield from _of_added(block, signature, generator)
        yield from _of_scales(signature, contraction)
    elif all(_is_exact(each.operation) for each in block):
        yield from _of_inputs(block, signature, generator)
        if not all(is_parallel(each.operation) for each in block):
            yield _without_a_number(signature, generator)
    else:
        yield from _of_added(block, signature, generator)


def _is_exact(op: ir.Operation) -> bool:
    """Whether an op rounds each result independently, or reduces without rounding."""
    return consists_of(op, _ALONE if is_parallel(op) else _EXACT_REDUCTIONS)


def _is_rounded(op: ir.Operation) -> bool:
    """Whether an op's results are correctly rounded, or a sum of products: it is no function with
    only a bounded error."""
    return product_of(op) is not None or consists_of(op, _ALONE)


def _of_sums(
    block: ir.Block,
    signature: Signature,
    contraction: Contraction,
    generator: np.random.Generator,
) -> Iterator[PlacedInputs]:
    """Yields inputs that place the sums of a contraction at boundaries."""
    root = next(
        each.operation.results[0] for each in block if product_of(each.operation) is not None
    )
    found = boundaries_of(block, drawn_of(block, signature), root)
    form = block_format_of(signature.outputs) if contraction.blocks else None
    functions = not all(_is_rounded(each.operation) for each in block)
    sums = [x for x in found.sums if not functions or abs(x) <= MODERATE]
    if functions if form is not None else not sums:
        return
    wanted = _wanted(form, sums, generator)
    factors = factors_with_sums(contraction, wanted, form.block if form else 0)
    if factors is None:
        return
    neutral = {n: value for n, value in found.neutral.items() if n not in factors}
    if contraction.start is not None:
        neutral[contraction.start.argument] = 0.0
    yield PlacedInputs(TIES, factors, neutral)


def _of_added(
    block: ir.Block, signature: Signature, generator: np.random.Generator
) -> Iterator[PlacedInputs]:
    """Yields inputs with sums 0 and the addends of the sums at boundaries."""
    if not all(_is_rounded(each.operation) for each in block):
        return
    for sums, number, numbers, matrices in added_at_boundaries(block, signature):
        spec = signature.inputs[number]
        added = _wanted(None, sums, generator)(1, math.prod(spec.shape)).reshape(spec.shape)
        given = {n: each.astype(signature.inputs[n].dtype) for n, each in matrices.items()}
        arrays = given | {number: added.astype(spec.dtype)}
        others = {n: value for n, value in numbers.items() if n not in arrays}
        yield PlacedInputs(TIES, numbers=others, arrays=arrays, exact=True)


def _wanted(
    form: BlockTypes | None, sums: Sequence[float], generator: np.random.Generator
) -> Wanted:
    """Returns a function that fills rows and columns with the numbers: all of them, as far as there
    is room, each at several places."""

    def numbers(rows: int, columns: int) -> Array:
        if form is not None:
            return rows_of_blocks(form, rows, columns, generator)
        filled = np.resize(np.array(sums), rows * columns)
        return generator.permutation(filled).reshape(rows, columns)

    return numbers


def _of_scales(signature: Signature, contraction: Contraction) -> Iterator[PlacedInputs]:
    """Yields inputs with a subnormal global scale."""
    scales = [n for n, s in enumerate(signature.inputs) if s.unsigned and not s.shape]
    if len(contraction.pairs) == 1 or contraction.blocks or not scales:
        return
    numbers = dict.fromkeys(scales, FACING_SCALE) | {scales[0]: SUBNORMAL_SCALE}
    yield PlacedInputs("a subnormal global scale", numbers=numbers)


def _of_inputs(
    block: ir.Block, signature: Signature, generator: np.random.Generator
) -> Iterator[PlacedInputs]:
    """Yields inputs at boundaries for a program without sums: each input in turn, the others
    neutral."""
    form = block_format_of(signature.outputs)
    for number, value in enumerate(drawn_of(block, signature)):
        spec = signature.inputs[number]
        if not spec.shape or spec.dtype.kind == "b":
            continue
        found = boundaries_of(block, drawn_of(block, signature), value)
        if form is not None and spec.shape[-1] % form.block == 0:
            count = math.prod(spec.shape) // form.block
            rows = rows_of_blocks(form, count, form.block, generator, beside=0)
            array = rows.reshape(spec.shape)
        elif found.sums:
            array = _wanted(None, found.sums, generator)(1, math.prod(spec.shape))
        else:
            continue
        array = array.reshape(spec.shape).astype(spec.dtype)
        yield PlacedInputs(TIES, numbers=found.neutral, arrays={number: array}, exact=True)


def _without_a_number(signature: Signature, generator: np.random.Generator) -> PlacedInputs:
    """Returns inputs with whole windows, or rows, of -inf and of inf: the first and the last of
    each dimension. Between them are the numbers next to these, and a few more infinities."""
    arrays = {}
    for number, spec in enumerate(signature.inputs):
        if spec.dtype.kind == "b" or not spec.shape:
            continue
        low, high = _ends(spec.dtype)
        array = generator.choice(_beside_ends(spec.dtype), spec.shape)
        axes = [np.moveaxis(array, axis, 0) for axis in range(len(spec.shape))]
        for rows in axes:
            rows[2:][-1:] = high
        for rows in axes:
            rows[: len(rows) > 1] = low
        arrays[number] = array
    return PlacedInputs("windows of -inf only", arrays=arrays, exact=True)


def _beside_ends(dtype: DType) -> Array:
    """Returns the least and the largest finite number several times, and the infinite ones of
    `_ends`; for integers the numbers next to the ends."""
    ends = _ends(dtype)
    if is_integer(dtype):
        return ends + np.array([1, -1], dtype)
    largest = float(info_of(dtype).max)
    numbers = np.array([-largest, largest]).astype(dtype)
    return np.concatenate([*[numbers] * SELDOM, ends[np.isinf(ends.astype(float))]])


def _ends(dtype: DType) -> Array:
    """Returns the neutral elements of a maximum and of a minimum."""
    if is_integer(dtype):
        return np.array(ends_of_integers(dtype), dtype)
    return np.array([-np.inf, np.inf]).astype(dtype)
