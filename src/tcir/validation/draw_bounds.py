"""Bounds on the results of a program on tensors: how far later states may be off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcir.errors import IncompleteError
from tcir.interp.types import Array
from tcir.program.access import product_of
from tcir.program.constants import constant_arrays
from tcir.program.factors import Contraction
from tcir.program.programs import Program, find_program
from tcir.target import DEFAULT_TARGET
from tcir.validation import bounds, propagation
from tcir.validation.draws import OPEN, Bound, Draw
from tcir.validation.execution import Executions
from tcir.validation.raised import with_quantisation_raised
from tcir.validation.report import Line
from tcir.validation.rules import Known

if TYPE_CHECKING:
    from tcir._mlir import ir

# Programs made of these have no other arithmetic than sums of products (and one rounding), so that
# running them on magnitudes and on ones gives the sums and counts that the bound needs.
_SUM_OF_PRODUCTS = {
    "arith.addf", "arith.constant", "arith.extf", "arith.mulf", "arith.truncf", "builtin.module",
    "func.func", "func.return", "linalg.batch_matmul", "linalg.batch_matmul_transpose_a",
    "linalg.batch_matmul_transpose_b", "linalg.conv_2d_nhwc_fhwc", "linalg.conv_2d_nhwc_hwcf",
    "linalg.fill", "linalg.generic", "linalg.matmul", "linalg.matmul_transpose_a",
    "linalg.matmul_transpose_b", "linalg.transpose",
    "linalg.yield", "arith.scaling_extf", "tc.block_scaled_matmul",
    "tc.conv2d", "tc.grouped_matmul", "tc.matmul", "tensor.collapse_shape", "tensor.empty",
    "tensor.pad", "tensor.yield",
}  # fmt: skip


@dataclass(frozen=True)
class DrawBounds:
    """Bounds of the draws of one input program.

    known: whether the inputs are made so that all sums are exact
    """

    runs: Executions
    module: ir.Module
    programs: Sequence[Program]
    contraction: Contraction | None
    known: bool

    def prepare(self, draw: Draw) -> None:
        """Runs the program on magnitudes and on ones: sums of |a * b|, and numbers of products."""
        if self._foreign or _has_several_products(self.programs[0]) or not self.known:
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
        how, spread = self._sums(draw), bounds.spread_of(factors)
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

    @property
    def _foreign(self) -> list[str]:
        """Ops that are no part of sums of products."""
        return sorted(op_names(self.module) - _SUM_OF_PRODUCTS)

    def carry(self, draw: Draw) -> None:
        """Sets the bound of a program that continues after its sums, element by element."""
        raised = with_quantisation_raised(self.module)
        known = self._carried(find_program(raised, self.programs[0].name), draw)
        if known is None:
            what = ", ".join(self._foreign) or "several products"
            draw.no_bound = f"no bound is known for programs with {what}"
            return
        errors, squares = [each.error for each in known], [each.square for each in known]
        share = 1.0 if draw.partly else OPEN if self._inputs == "integers" else 0.0
        draw.bound = Bound.of(errors, squares, draw.reference, open_share=share)
        if draw.bound is None:
            draw.no_bound = "too many elements may be off by any amount: no bound"

    def _carried(self, program: Program, draw: Draw) -> list[Known] | None:
        """The results of `program`, which computes what the module does; None without a bound."""
        function, sums = program.op.operation, propagation.EXACT
        if self._inputs == "random":
            sums = propagation.ROUNDED
        elif draw.partly or not self.known:
            sums = propagation.UNKNOWN
        try:
            inputs = [*draw.inputs, *constant_arrays(self.module)]
            how = self._sums(draw)
            tf32 = bounds.sums_of("float32", _target(self.module))
            return propagation.carried(function, inputs, how, sums, tf32)
        except (propagation.NoBoundError, IncompleteError):
            return None

    def _sums(self, draw: Draw) -> bounds.Sums:
        """How the factors are summed; those of two types are multiplied as f32, but for fp8."""
        factors = self.contraction.factors if self.contraction else ()
        types = {factor.dtype for factor in factors if not factor.scale}
        mixed = len(types) > 1 and any(each.itemsize > 1 for each in types)
        first = draw.inputs[0].dtype.name if draw.inputs else "float32"
        return bounds.sums_of("float32" if mixed else first, _target(self.module))

    def _plain(self, inputs: list[Array]) -> list[Array]:
        line = Line(0, "(bound)")
        found = self.runs.on_tensors(self.module, self.programs, inputs, line)
        if found is None:
            raise IncompleteError(f"cannot compute the bound: {line}")
        return found

    @property
    def _inputs(self) -> str:
        return self.runs.plan.settings.inputs


def _target(module: ir.Module) -> str:
    """What a module is compiled for."""
    attributes = module.operation.attributes
    return str(attributes["tc.target"].value if "tc.target" in attributes else DEFAULT_TARGET.name)


def _has_several_products(program: Program) -> bool:
    if program.level != "tensor":
        return False
    block = program.op.operation.regions[0].blocks[0]
    return sum(product_of(each.operation) is not None for each in block) > 1


def op_names(module: Any) -> set[str]:
    """Names of the ops of a module."""
    from tcir._mlir import ir

    names: set[str] = set()

    def visit(operation: Any) -> Any:
        names.add(operation.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return names
