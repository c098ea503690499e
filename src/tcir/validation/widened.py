"""The input program in f64, against which the program's own roundings are measured.

In a copy of the program, all f16, bf16 and f32 types become f64, conversions between them are
dropped, and constants are converted to f64; integers and types of 8 bits or fewer stay. The
reference interpreter executes the copy like the program. A second copy has the program's own types,
but drops the bits of f32 factors that tensor cores do not read (tf32).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tcir.dialect.walk import walk
from tcir.errors import IncompleteError
from tcir.interp.tensor import run
from tcir.interp.types import Array, constant, dense, dtype_of
from tcir.program.access import product_of
from tcir.program.constants import constant_arrays
from tcir.program.programs import Program, find_program
from tcir.program.signature import Signature, signature_of
from tcir.validation.against_f64 import Precise, has_numbers
from tcir.validation.draws import Draw, Draws
from tcir.validation.execution import Executions
from tcir.validation.large_scores import large_scores
from tcir.validation.moderate import WORDS, moderate_inputs
from tcir.validation.plan import Plan
from tcir.validation.raised import copied
from tcir.validation.report import Line

if TYPE_CHECKING:
    from tcir._mlir import ir

WIDENED = ("f16", "bf16", "f32")
_DIALECTS = ("arith.", "builtin.", "cf.", "func.", "linalg.", "math.", "scf.", "tensor.")
"""Dialects whose ops mean the same in f64, but for `_BITS`."""
_BITS = ("arith.bitcast", "tensor.bitcast")
"""Ops that read the bits of floats."""
_CASTS = ("arith.extf", "arith.truncf")
_READ_BY_TF32 = -(2**13)
"""Mask of the 19 bits of an f32 that tf32 has."""


def judged(
    runs: Executions, module: ir.Module, programs: Sequence[Program], draws: Draws, *, rounded: bool
) -> Draws:
    """Returns the draws of a program on tensors. If the main draw has no bound, it will be judged
    against f64.

    rounded: whether no inputs make the program's results exact. Moderate numbers then show more
    than whole numbers, which saturate exponentials
    """
    main, plan = draws.main, runs.plan
    if main.bound is not None:
        return draws
    made = replace(main)
    try:
        if rounded or not has_numbers(main.reference):
            seed = plan.settings.seed
            inputs = moderate_inputs(module, plan.signature, main.inputs, seed)
            results = runs.on_tensors(module, programs, inputs, Line(0, "(f64)"))
            made = Draw(inputs, f"{WORDS}, seed {seed}", results or [], no_bound=main.no_bound)
        made.precise = precise(module, plan.signature, made.inputs, made.reference)
    except IncompleteError as error:
        main.no_bound += f"; not compared with f64: {error}"
        return draws
    more = [d for d in draws.more if d.exact or d.bound is not None]
    large = _with_large_scores(module, plan, main.inputs)
    if isinstance(large, Draw):
        more.append(large)
        made.words += f"; and on {large.words}"
    elif large:
        made.no_bound += f"; {large}"
    return replace(draws, main=made, more=more)


def _with_large_scores(module: ir.Module, plan: Plan, inputs: Sequence[Array]) -> Draw | str | None:
    """`large_scores` of a program on tensors."""
    signature = plan.signature

    def run(copy: ir.Module, given: Sequence[Array]) -> list[Array]:
        return _results(copy, signature, given)

    def made(gain: float) -> list[Array]:
        return moderate_inputs(module, signature, inputs, plan.settings.seed, gain)

    return large_scores(module, run, made)


def precise(
    module: ir.Module, signature: Signature, inputs: Sequence[Array], results: Sequence[Array]
) -> Precise:
    """Computes the results of a program on tensors in f64. Raises IncompleteError if that is not
    possible.

    results: the program's own results for `inputs`
    """
    if not results or not has_numbers(results):
        raise IncompleteError(f"a result for {WORDS} has no finite element")
    right = _results(widened(module), signature, inputs)
    cut = with_tf32_factors(module)
    own = [results] if cut is None else [results, _results(cut, signature, inputs)]
    return Precise(right, own)


def _results(module: ir.Module, signature: Signature, inputs: Sequence[Array]) -> list[Array]:
    of, given = signature_of(module), [*inputs, *constant_arrays(module)]
    arguments = [a.astype(dtype_of(kind)) for a, kind in zip(given, _types(module, signature))]
    outcome = run(module, signature.name, arguments, of.outputs, unread=signature.unread)
    if outcome.incomplete:
        raise IncompleteError("; ".join(outcome.incomplete))
    return outcome.outputs


def _types(module: ir.Module, signature: Signature) -> list[ir.Type]:
    """Types of the arguments that are inputs."""
    block = find_program(module, signature.name).op.operation.regions[0].blocks[0]
    every = enumerate(block.arguments)
    return [argument.type for number, argument in every if number not in signature.unread]


def widened(module: ir.Module) -> ir.Module:
    """Returns a copy of a program on tensors in f64. Raises IncompleteError that names an op
    without an f64 form.
    """
    from tcir._mlir import ir

    copy = copied(module)
    ops = [each.operation for each in walk(copy.operation)]
    foreign = sorted({o.name for o in ops if not o.name.startswith(_DIALECTS) or o.name in _BITS})
    if foreign:
        raise IncompleteError(f"no copy in f64 of {', '.join(foreign)}")
    with copy.context, ir.Location.unknown():
        for op in ops:
            _widen(op)
        for op in ops:
            if op.name in _CASTS and op.operands[0].type == op.results[0].type:
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()
    return copy


def _widen(op: ir.Operation) -> None:
    """Gives an op's values, and its constant or its signature, f64 for each float type."""
    from tcir._mlir import ir

    if op.name == "arith.constant" and (kind := op.results[0].type) != (wide := _wide(kind)):
        value = constant(op.attributes["value"], kind)
        shaped = isinstance(kind, ir.ShapedType)
        numbers = np.asarray(value).astype(np.float64)
        op.attributes["value"] = dense(numbers, wide) if shaped else ir.FloatAttr.get(wide, value)
    if op.name == "func.func":
        of = op.attributes["function_type"].value
        sides = ([_wide(each) for each in types] for types in (of.inputs, of.results))
        op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*sides))
    blocks = [block for region in op.regions for block in region]
    for value in (*op.results, *(argument for block in blocks for argument in block.arguments)):
        value.set_type(_wide(value.type))


def _wide(kind: ir.Type) -> ir.Type:
    from tcir._mlir import ir

    if isinstance(kind, ir.RankedTensorType):
        element = _wide(kind.element_type)
        return (
            kind if element == kind.element_type else ir.RankedTensorType.get(kind.shape, element)
        )
    return ir.F64Type.get(kind.context) if str(kind) in WIDENED else kind


def with_tf32_factors(module: ir.Module) -> ir.Module | None:
    """Returns a copy of a program in which products of f32 tensors read only the bits that tf32
    has; None if the program has no such products.
    """
    from tcir._mlir import arith, ir

    copy = copied(module)
    single = ir.F32Type.get(module.context)
    found = False
    for op in [each.operation for each in walk(copy.operation)]:
        product = product_of(op) if op.results else None
        values = {value for value, _ in product.factors} if product is not None else set()
        if len(values) != 2 or not values <= set(op.operands):
            continue
        for value in values:
            if value.type.element_type != single:
                continue
            found = True
            with ir.InsertionPoint(op), op.location:
                bits = ir.RankedTensorType.get(
                    value.type.shape, ir.IntegerType.get_signless(32, module.context)
                )
                mask = ir.IntegerAttr.get(bits.element_type, _READ_BY_TF32)
                kept = arith.ConstantOp(bits, ir.DenseElementsAttr.get_splat(bits, mask))
                read = arith.AndIOp(arith.BitcastOp(bits, value).result, kept.result).result
                op.replace_uses_of_with(value, arith.BitcastOp(value.type, read).result)
    return copy if found else None
