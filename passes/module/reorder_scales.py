"""reorder-scales: adds a separate op that reorders row-major block scales for the tensor core."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.limits import TMA_STRIDE
from tcir.dialect.ops.block_scale import SCALE_ROWS
from tcir.dialect.ops.block_scaled import ZERO_PADDING, operand_scales_shape
from tcir.errors import InputError
from tcir.passes.emit.scaled_checks import loadable_k
from tcir.passes.emit.scaled_shape import ScaledShape
from tcir.passmanager.pipeline import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class ReorderScales(Pass):
    """Inserts ``tc.scales_to_blocked`` before every block-scaled product with row-major scales.

    in_place: "b" lets the scales of B stay row-major if TMA can load them. It can if they are one
        row, or up to 32 rows of a multiple of 16 bytes, unless repack-gemm pads K

    Before::

        %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {a_scale_layout = "row_major", …}

    After::

        %1 = "tc.scales_to_blocked"(%sa)
        %c = "tc.block_scaled_matmul"(%a, %1, %b, %sb)
            {a_scale_layout = "blocked_128x4", …, zero_padding}

    ``zero_padding`` states that the scales beyond K are zeros, in all blocks that the product
    reads. Preserves the value of every element.
    """

    name: ClassVar[str] = "reorder-scales"
    in_place: str = ""

    def __post_init__(self) -> None:
        if self.in_place not in ("", "b"):
            raise InputError(f'reorder-scales: expected in-place of "" or b, got {self.in_place}')

    def run(self, module: ir.Module) -> None:
        for function in module.body.operations:
            for op in list(function.regions[0].blocks[0]) if function.regions[0].blocks else []:
                if isinstance(op, tc.BlockScaledMatmulOp):
                    self._visit(op)

    def _visit(self, op: tc.BlockScaledMatmulOp) -> None:
        blocked = [side for side in "ab" if string(op, f"{side}_scale_layout") != "row_major"]
        shape = ScaledShape.of(op)
        loadable = loadable_k(shape) == shape.k
        for side in "ab":
            scales = getattr(op, f"{side}_scales").type
            stays = side in self.in_place and loadable and _tma_loads_rows(scales)
            if side not in blocked and not stays:
                _reorder(op, side)
                if not blocked:
                    op.operation.attributes[ZERO_PADDING] = ir.UnitAttr.get()


def _tma_loads_rows(scales: ir.RankedTensorType) -> bool:
    """Whether row-major scales are copied as they are, 32 rows of 16 bytes to four sets."""
    *outer, bytes_ = scales.shape
    rows = outer[-1] if outer else 1
    return prod(outer) == 1 or (rows <= SCALE_ROWS and bytes_ in TMA_STRIDE)


def _reorder(op: tc.BlockScaledMatmulOp, side: str) -> None:
    scales = getattr(op, f"{side}_scales")
    shape = operand_scales_shape(op, side, "blocked_128x4")
    kind = ir.RankedTensorType.get(shape, scales.type.element_type)
    with ir.InsertionPoint(op), op.location:
        blocked = tc.ScalesToBlockedOp(scales, out=kind).out
    op.operation.operands[{"a": 1, "b": 3}[side]] = blocked
    op.operation.attributes[f"{side}_scale_layout"] = ir.StringAttr.get("blocked_128x4")
