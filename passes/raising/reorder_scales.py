"""reorder-scales: an op of its own reorders row-major block scales for the tensor core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.ops.block_scaled import operand_scales_shape
from tcir.errors import InputError
from tcir.passmanager.pipeline import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class ReorderScales(Pass):
    """Inserts ``tc.scales_to_blocked`` before every block-scaled product with row-major scales.

    operands: whose scales: ``ab``, ``a`` or ``b``

    Before::

        %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {a_scale_layout = "row_major", …}

    After::

        %1 = "tc.scales_to_blocked"(%sa)
        %c = "tc.block_scaled_matmul"(%a, %1, %b, %sb) {a_scale_layout = "blocked_128x4", …}

    Preserves the value of every element.
    """

    name: ClassVar[str] = "reorder-scales"
    operands: str = "ab"

    def run(self, module: ir.Module) -> None:
        if self.operands not in ("ab", "a", "b"):
            raise InputError(f"reorder-scales: expected operands ab, a or b, got {self.operands}")
        for function in module.body.operations:
            for op in list(function.regions[0].blocks[0]) if function.regions[0].blocks else []:
                if isinstance(op, tc.BlockScaledMatmulOp):
                    for side in self.operands:
                        _reorder(op, side)


def _reorder(op: ir.OpView, side: str) -> None:
    if string(op, f"{side}_scale_layout") != "row_major":
        return
    scales = getattr(op, f"{side}_scales")
    shape = operand_scales_shape(op, side, "blocked_128x4")
    kind = ir.RankedTensorType.get(shape, scales.type.element_type)
    with ir.InsertionPoint(op), op.location:
        blocked = tc.ScalesToBlockedOp(scales, out=kind).out
    op.operation.operands[{"a": 1, "b": 3}[side]] = blocked
    op.operation.attributes[f"{side}_scale_layout"] = ir.StringAttr.get("blocked_128x4")
