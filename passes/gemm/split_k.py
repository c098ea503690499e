"""split-k: divides the sums of a product into parts, which several CTAs compute."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar, TypeAlias

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.ops.highlevel import k_part
from tcir.passes.analysis.few_rows import has_few_rows
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.operand_tiles import k_step
from tcir.passes.emit.parts import check_number, product_in_parts
from tcir.passes.emit.scaled_shape import ScaledShape
from tcir.passes.emit.tensor_functions import tensor_bytes, tensor_ops
from tcir.passes.gemm.block_scaled import stage_of
from tcir.passes.gemm.dense import k_of
from tcir.passes.gemm.global_scales import scaled_sums
from tcir.passes.kernels import legal
from tcir.passes.kernels.cores.wgmma import N_TILES, rows_of
from tcir.passes.kernels.cores.wgmma_cost import matrix_cycles
from tcir.passes.kernels.product import Tile
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.target import TARGETS
from tcir.time.warpgroups import FROM_MEMORY, SUMMED_BYTES, SUMMING

Product: TypeAlias = "tc.MatmulOp | tc.GroupedMatmulOp | tc.BlockScaledMatmulOp"
PARTS = (1, 2, 3, 4, 6, 8)
LEAST_STEPS = 4
"""Steps of a part, below which a CTA only fills its ring."""
GAIN = 0.9
"""Largest share of the time without parts that parts may take."""


@register_pass
@dataclass(frozen=True)
class SplitK(Pass):
    """Divides K of a ``tc.matmul``, ``tc.grouped_matmul`` or ``tc.block_scaled_matmul`` into equal
    ranges of steps, and sums up the partial results.

    splits: number of ranges; 1: no division; 0: the fastest number, for dense products on targets
            with wgmma

    Before::

        %c = "tc.matmul"(%a, %b) {…}
            : (tensor<8x8192xf16>, tensor<8192x256xf16>) -> tensor<8x256xf16>

    After::

        %p = "tc.matmul"(%a, %b) {…, k_part = 2048} : (…) -> tensor<4x8x256xf32>
        %c = "tc.sum_parts"(%p) : (tensor<4x8x256xf32>) -> tensor<8x256xf16>

    The parts are stored in a workspace between two kernels and summed in the order of k, so the
    result does not depend on timing. A ``tc.epilogue`` follows the sum; it begins with the global
    scales of block-scaled operands, which multiply complete sums. If the rows are in groups,
    neither kernel writes rows that belong to no group. Preserves the value of every element up to
    the order of the sums.
    """

    name: ClassVar[str] = "split-k"
    splits: int = 1

    def __post_init__(self) -> None:
        check_number(self.splits)

    def run(self, module: ir.Module) -> None:
        if self.splits == 1:
            return
        for op in tensor_ops(module):
            if self.splits:
                self._visit(op)
            elif isinstance(op, tc.MatmulOp) and TARGETS[target_of(module)].wgmma:
                self._split_fastest(op, TARGETS[target_of(module)].sms)

    def _split_fastest(self, op: tc.MatmulOp, sms: int) -> None:
        facts = {"split_k": 2, "results": legal.results_of(op.out)}
        given = all(isinstance(each, ir.BlockArgument) for each in (op.a, op.b))
        if k_part(op) is not None or has_few_rows(op) or not given or legal.find(facts) is not None:
            return
        parts = _fastest(op, sms)
        if parts > 1:
            _split(op, parts)

    def _visit(self, op: ir.OpView) -> None:
        if isinstance(op, tc.MatmulOp | tc.GroupedMatmulOp | tc.BlockScaledMatmulOp):
            legal.check({"split_k": self.splits, "results": legal.results_of(op.out)}, op)
            if k_part(op) is None:
                _split(op, self.splits)


def _split(op: Product, splits: int) -> None:
    """Replaces a product by the sum of its parts."""
    k, step = _steps(op)
    steps = ceil_div(k, step)
    if splits > steps:
        raise match_failure(
            op,
            f"split-k must be in [1, {steps}], got {splits}: K={k} has {steps} steps of {step} "
            "elements (a span of the swizzle), and each CTA multiplies at least one step",
        )
    operands, attributes, factors = list(op.operands), {}, list[ir.Value]()
    if isinstance(op, tc.BlockScaledMatmulOp):
        operands, factors = operands[:4], operands[4:]
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 1, 1, 1, 0, 0])
    out, each = op.out.type, ceil_div(steps, splits)
    with ir.InsertionPoint(op), op.location:
        parts = product_in_parts(op, (steps, each), step, "K", operands, attributes)
        if factors:
            whole = ir.RankedTensorType.get(out.shape, parts.type.element_type)
            scaled_sums(op, tc.SumPartsOp(parts, whole).out, factors)
        else:
            sizes = op.sizes if isinstance(op, tc.GroupedMatmulOp) else None
            op.out.replace_all_uses_with(tc.SumPartsOp(parts, out, sizes=sizes).out)
    op.operation.erase()


def _steps(op: Product) -> tuple[int, int]:
    """Elements of K, and elements of K in a step of the main loop."""
    if isinstance(op, tc.BlockScaledMatmulOp):
        shape = ScaledShape.of(op)
        return shape.k, stage_of(shape).k
    return k_of(op), k_step(k_of(op), tc.element_bytes(op.a.type.element_type))


def _fastest(op: tc.MatmulOp, sms: int) -> int:
    """Parts of K with which tiles of warpgroups, and the launch that sums up, take least."""
    *batch, m, n = op.out.type.shape
    k, step = _steps(op)
    steps = ceil_div(k, step)
    loading = sum(tensor_bytes(each.type) for each in op.operands) / FROM_MEMORY
    found = {}
    for parts in (n for n in PARTS if n == 1 or steps // n >= LEAST_STEPS):
        tiles = [Tile(rows, width) for rows in rows_of(m, op) for width in N_TILES]
        cycles = min(
            matrix_cycles(each, ceil_div(steps, parts), parts * prod(batch) * each.count(m, n), sms)
            for each in tiles
        )
        summed = SUMMING + 4 * parts * prod(op.out.type.shape) / SUMMED_BYTES
        found[parts] = max(cycles, loading) + (summed if parts > 1 else 0)
    best = min(found, key=found.__getitem__)
    return best if found[best] < GAIN * found[1] else 1
