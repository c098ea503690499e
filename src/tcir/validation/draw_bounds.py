"""Bounds on the errors of the states after each pass, derived from the input program on tensors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tcir._mlir import arith, func, tensor
from tcir.dialect import tc
from tcir.dialect.arithmetic import Arithmetic
from tcir.dialect.upstream import names
from tcir.dialect.walk import walk
from tcir.errors import IncompleteError
from tcir.interp.types import Array, DType
from tcir.program.access import SumOfProducts, product_of
from tcir.program.constants import constant_arrays
from tcir.program.factors import factor_types
from tcir.program.programs import Program, find_program
from tcir.target import DEFAULT_TARGET
from tcir.threads import cached_property
from tcir.validation import bounds, propagation
from tcir.validation.against_f64 import has_numbers
from tcir.validation.attention_bounds import BY_EX2, BY_POLYNOMIAL, Powers
from tcir.validation.draws import OPEN, Bound, Draw, Draws
from tcir.validation.execution import Executions
from tcir.validation.raised import Raised, attentions, with_quantisation_raised
from tcir.validation.report import Line
from tcir.validation.rules import Known

if TYPE_CHECKING:
    from tcir._mlir import ir

# Programs made of these have no other arithmetic than sums of products (and one rounding), so that
# running them on magnitudes and on ones gives the sums and counts that the bound needs.
_SUM_OF_PRODUCTS = Arithmetic.of("products") | names(
    arith.AddFOp, arith.ConstantOp, arith.ExtFOp, arith.MulFOp, arith.TruncFOp, "builtin.module",
    func.FuncOp, func.ReturnOp, "linalg.batch_matmul", "linalg.batch_matmul_transpose_a",
    "linalg.batch_matmul_transpose_b", "linalg.conv_2d_nhwc_fhwc", "linalg.conv_2d_nhwc_hwcf",
    "linalg.fill", "linalg.generic", "linalg.matmul", "linalg.matmul_transpose_a",
    "linalg.matmul_transpose_b", "linalg.transpose", "linalg.yield", arith.ScalingExtFOp,
    tensor.CollapseShapeOp, tensor.EmptyOp, tensor.PadOp, tensor.YieldOp,
)  # fmt: skip


@dataclass(frozen=True)
class DrawBounds:
    """Computes the bounds for the draws (sets of inputs) of one input program.

    known:  whether the inputs are drawn so that all sums are exact
    raised: the program before and after the pass raise-attention, if it has attention
    past:   whether the states come after raise-attention
    powers: errors of the exponentials of attention in the states
    """

    runs: Executions
    module: ir.Module
    programs: Sequence[Program]
    known: bool
    raised: Raised | None = None
    past: bool = False
    powers: Powers = BY_EX2

    def of_state(self, module: ir.Module) -> DrawBounds:
        """Returns the bounds for a state and the states after it. A state that has more
        ``tc.attention`` ops than the input comes after raise-attention, and a kernel may then
        compute exponentials by a polynomial.
        """
        past = self.past or (
            self.raised is not None and attentions(module) > attentions(self.raised.before)
        )
        polynomial = any(
            isinstance(op, tc.RowExponentialsOp) and op.polynomial for op in walk(module.operation)
        )
        powers = BY_POLYNOMIAL if polynomial else self.powers
        if (past, powers) == (self.past, self.powers):
            return self
        return replace(self, past=past, powers=powers)

    def prepare_all(self, draws: Draws) -> None:
        """Sets the bounds of all draws, and drops the draws that show nothing without a bound. A
        main draw without a finite result gets no bound.
        """
        for draw in (*draws.more, draws.main):
            if draw is draws.main and not has_numbers(draw.reference):
                draw.no_bound = "whole numbers gave no finite result"
            elif not draw.exact:
                self.prepare(draw)
        draws.more[:] = [d for d in draws.more if d.exact or d.bound is not None or not d.rounded]

    def prepare(self, draw: Draw) -> None:
        """Sets the bound of a draw. The program is executed on the magnitudes of the inputs, for
        the sums of |a * b|, and on ones, for the numbers of products.
        """
        if self._foreign or len(self._products) != 1 or not self.known:
            self.carry(draw)
            return
        sizes = [np.abs(a) for a in draw.inputs]
        magnitudes = self._plain(sizes)
        numbers_ = [not spec.says_where for spec in self.runs.plan.signature.inputs]
        ones = [np.ones_like(a) if n else a for a, n in zip(draw.inputs, numbers_, strict=True)]
        counts = self._plain(ones)
        exponents = [bounds.encoded(a, a.dtype) if n else a for a, n in zip(sizes, numbers_)]
        largest = self._plain(exponents)
        factors = [a for a, n in zip(draw.inputs, numbers_, strict=True) if n]
        (product,) = self._products
        how, spread = self._sums(factor_types(product)), bounds.spread_of(factors)
        numbers = list(zip(magnitudes, largest, counts, draw.reference, strict=True))
        draw.bound = Bound.of(
            [
                bounds.fused_sum_bound(bounds.upper(s), bounds.upper(e), bounds.upper(k), r, how)
                for s, e, k, r in numbers
            ],
            [bounds.expected_squares(s, e, k, r, how, spread) for s, e, k, r in numbers],
            draw.reference,
        )
        if draw.bound is None:
            draw.no_bound = "the sums of magnitudes overflow the output type: no bound"

    @cached_property
    def _products(self) -> list[SumOfProducts]:
        """The sums of products of the first program, if it is on tensors."""
        program = self.programs[0]
        if program.level != "tensor":
            return []
        block = program.op.operation.regions[0].blocks[0]
        found = (product_of(each.operation) for each in block)
        return [product for product in found if product is not None]

    @cached_property
    def _foreign(self) -> list[str]:
        """Ops that are no part of sums of products."""
        ops = (each.operation for each in walk(self.module.operation))
        return sorted({op.name for op in ops if not _SUM_OF_PRODUCTS.has(op)})

    def carry(self, draw: Draw) -> None:
        """Sets the bound, element by element, of a program that has ops after its sums. After
        raise-attention, the bound is the distance of ``tc.attention`` from the original ops
        (`Raised`) plus that of a kernel from ``tc.attention``.
        """
        if not self.past or self.raised is None:
            self._set(draw, self._carried(with_quantisation_raised(self.module), draw))
            return
        before = self._carried(self.raised.before, draw, tf32=bounds.WHOLE)
        after = self._carried(self.raised.after, draw)
        both = None if before is None or after is None else map(_either, before, after)
        self._set(draw, None if both is None else list(both))

    def _set(self, draw: Draw, known: list[Known] | None) -> None:
        if known is None:
            what = ", ".join(self._foreign) or "several products"
            draw.no_bound = f"no bound is known for programs with {what}"
            return
        errors, squares = [each.error for each in known], [each.square for each in known]
        share = 1.0 if draw.partly else OPEN if self._inputs == "integers" else 0.0
        draw.bound = Bound.of(errors, squares, draw.reference, open_share=share)
        if draw.bound is None:
            draw.no_bound = "too many elements may be off by any amount: no bound"

    def _carried(
        self, module: ir.Module, draw: Draw, tf32: bounds.Sums | None = None
    ) -> list[Known] | None:
        """Results of a module equivalent to the program, with their errors; None without a
        bound."""
        program = find_program(module, self.programs[0].name)
        function, sums = program.op.operation, propagation.EXACT
        if self._inputs == "random":
            sums = propagation.ROUNDED
        elif draw.partly or not self.known:
            sums = propagation.UNKNOWN
        try:
            inputs = [*draw.inputs, *constant_arrays(self.module)]
            tf32 = tf32 or bounds.sums_of("float32", _target(self.module))
            return propagation.carried(
                function, inputs, self._sums, sums, tf32, self.powers, partly=draw.partly
            )
        except (propagation.NoBoundError, IncompleteError):
            return None

    def _sums(self, types: Collection[DType]) -> bounds.Sums:
        """How the target sums products of factors of these types. Factors of two types are
        multiplied as f32, except fp8."""
        mixed = len(types) > 1 and any(each.itemsize > 1 for each in types)
        name = "float32" if mixed else max(each.name for each in types)
        return bounds.sums_of(name, _target(self.module))

    def _plain(self, inputs: list[Array]) -> list[Array]:
        line = Line(0, "(bound)")
        found = self.runs.on_tensors(self.module, self.programs, inputs, line)
        if found is None:
            raise IncompleteError(f"cannot compute the bound: {line}")
        return found

    @property
    def _inputs(self) -> str:
        return self.runs.plan.settings.inputs


def _either(before: Known, after: Known) -> Known:
    """Sums of both errors; also in the mean square, because equal weights are rounded alike. Rows
    whose scores are all -inf are zero in the op, and 0 / 0 in a program without a test for them."""
    undefined = before.nan & (after.value == 0)
    error = before.error + after.error
    known = Known(before.value, error, before.error**2 + after.square)
    return known.opened(before.open | after.open | undefined)


def _target(module: ir.Module) -> str:
    """Target of a module."""
    attributes = module.operation.attributes
    return str(attributes["tc.target"].value if "tc.target" in attributes else DEFAULT_TARGET.name)
