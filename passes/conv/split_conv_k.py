"""split-conv-k: divides the sums of a convolution into parts, which several CTAs compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.ops.highlevel import k_part
from tcir.passes.conv.im2col import gathered
from tcir.passes.conv.offset_walk import fastest_walk
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.wgmma import check_product, choose, cycles, fastest_parts
from tcir.passes.emit.cluster import ALONE, ClusterShape
from tcir.passes.emit.diagnostics import SMALLEST_CONV, match_failure
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.parts import check_number, product_in_parts
from tcir.passes.emit.tensor_functions import tensor_ops
from tcir.passes.kernels import legal
from tcir.passes.kernels.cores.wgmma import N_TILES
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.target import TARGETS


@register_pass
@dataclass(frozen=True)
class SplitConvK(Pass):
    """Divides the taps and channels of a ``tc.conv2d`` into equal ranges of steps, and sums up the
    partial results.

    splits: number of ranges; 1: no split; 0: the fastest number, for targets with wgmma
    n_tile: output channels per CTA that the choice of `splits` assumes; 0: any number
    cluster: the cluster that the choice of `splits` assumes, as in tile-gemm
    shifted: whether the schedule conv-smem-offset may follow; if it is faster, nothing is split
    rows: parts are whole filter rows, as conv-smem-offset requires; splits=0 then means 1

    Before::

        %y = "tc.conv2d"(%x, %w) {…}
            : (tensor<8x7x7x512xf16>, tensor<3x3x512x512xf16>) -> tensor<8x7x7x512xf16>

    After::

        %p = "tc.conv2d"(%x, %w) {…, k_part = 576} : (…) -> tensor<8x8x7x7x512xf32>
        %y = "tc.sum_parts"(%p) : (tensor<8x8x7x7x512xf32>) -> tensor<8x7x7x512xf16>

    The parts are stored in a workspace between two kernels and summed in a fixed order, so the
    result does not depend on timing. A ``tc.epilogue`` follows the sum. Preserves the value of
    every element up to the order of the sums.
    """

    name: ClassVar[str] = "split-conv-k"
    splits: int = 0
    n_tile: int = 0
    cluster: str = str(ALONE)
    shifted: bool = False
    rows: bool = False

    def __post_init__(self) -> None:
        check_number(self.splits)

    def run(self, module: ir.Module) -> None:
        for op in tensor_ops(module):
            if isinstance(op, tc.Conv2dOp) and k_part(op) is None:
                splits = self._splits(op, target_of(module))
                if splits > 1:
                    _split(op, splits, *self._steps(ConvShape.of(op)))

    def _steps(self, shape: ConvShape) -> tuple[int, int]:
        """Number of steps that parts divide, and the elements of K of each."""
        if self.rows:
            return shape.r, shape.s * shape.c
        return gathered(shape).steps, gathered(shape).kc

    def _splits(self, op: tc.Conv2dOp, target: str) -> int:
        """Parts of this convolution."""
        shape = gathered(ConvShape.of(op))
        facts, reason = {"results": legal.results_of(op.out)}, ""
        legal.check({**facts, "split_k": self.splits or 1}, op, SMALLEST_CONV)
        if legal.find({**facts, "split_k": 2}) is not None:
            return 1
        steps, _ = self._steps(ConvShape.of(op))
        if shape.c % shape.kc and not self.rows:
            reason = (
                f"for {shape.c} channels (a step has {shape.kc} channels of one tap, and "
                "these do not divide into whole steps)"
            )
        if self.splits == 0:
            chooses = TARGETS[target].wgmma and not reason and not self.rows
            cluster = ClusterShape.parse(self.cluster)
            parts = fastest_parts(op, shape, self.n_tile, target, cluster) if chooses else 1
            return 1 if parts > 1 and self._shifts(op, parts, target) else parts
        if self.splits > 1 and not reason and steps % self.splits:
            whole = [n for n in range(2, steps + 1) if steps % n == 0]
            what = "filter rows" if self.rows else "steps"
            reason = (
                f"or one of {', '.join(map(str, whole))} (all parts must have the same number of "
                f"the {steps} {what})"
            )
        if self.splits > 1 and reason:
            raise match_failure(
                op, f"expected split-k=1 {reason}, got {self.splits}; leave it out", SMALLEST_CONV
            )
        return self.splits

    def _shifts(self, op: tc.Conv2dOp, parts: int, target: str) -> bool:
        """Whether the shifted tile is there and modelled as faster than `parts`."""
        shape, sms = ConvShape.of(op), TARGETS[target].sms
        if not self.shifted or shape.rows_are_windows or shape.r * shape.s == 1:
            return False
        option = check_product(op, shape, self.n_tile)
        walk = fastest_walk(shape, [option] if option else N_TILES, sms)
        part = gathered(shape).in_parts(parts)
        best = cycles(part, choose(op, part, self.n_tile, target), sms)
        return walk is not None and walk.cycles(sms) <= best


def _split(op: tc.Conv2dOp, splits: int, steps: int, k: int) -> None:
    with ir.InsertionPoint(op), op.location:
        parts = product_in_parts(op, (steps, steps // splits), k, "taps and channels")
        op.out.replace_all_uses_with(tc.SumPartsOp(parts, op.out.type).out)
    op.operation.erase()
