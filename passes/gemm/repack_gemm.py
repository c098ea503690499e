"""repack-gemm: copies operands that TMA cannot read, so that K is innermost and padded with
zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import COPY_BYTES, TMA_STRIDE
from tcir.dialect.ops.block_scaled import ZERO_PADDING
from tcir.errors import InputError
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import round_up
from tcir.passes.emit.repack import repacked
from tcir.passes.emit.scaled_checks import loadable_k
from tcir.passes.emit.scaled_shape import ScaledShape
from tcir.passes.emit.tensor_functions import tensor_ops
from tcir.passes.gemm.dense import operands_of
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark
from tcir.target import TARGETS


@register_pass
@dataclass(frozen=True)
class RepackGemm(Pass):
    """Inserts ``tc.repack`` before a ``tc.matmul`` whose operands cannot be loaded in place. These
    are operands whose rows are not a multiple of `row_bytes` and, for wgmma, operands of 8 or 32
    bits in which K is not innermost. K is padded with zeros in both operands. The operands of a
    ``tc.block_scaled_matmul`` are repacked in the same way, also if TMA loads their packed elements
    128 at a time. This requires that their scales are in blocks padded with zeros
    (``zero_padding``), because these blocks then also serve the longer rows. The tiling pass
    rejects all other operands.

    row_bytes: 16, of which strides of a tensor map are multiples, or 4, the smallest copy of
        cp.async

    Before::

        %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
            : (tensor<128x64xf16>, tensor<64x37xf16>) -> …

    After::

        %1 = "tc.repack"(%b) {permutation = array<i64: 1, 0>}
        %c = "tc.matmul"(%a, %1) {a_layout = "mk", b_layout = "nk"}

    Preserves the value of every element.
    """

    name: ClassVar[str] = "repack-gemm"
    row_bytes: int = TMA_STRIDE.values[0]

    def __post_init__(self) -> None:
        if self.row_bytes not in _NEEDS:
            raise InputError(f"expected row-bytes of 16 or 4, got {self.row_bytes}")

    def run(self, module: ir.Module) -> None:
        for op in tensor_ops(module):
            if isinstance(op, tc.MatmulOp | tc.GroupedMatmulOp):
                by_wgmma = TARGETS[target_of(module)].wgmma and self.row_bytes != COPY_BYTES[0]
                _repack(op, self.row_bytes, by_wgmma)
            elif isinstance(op, tc.BlockScaledMatmulOp) and ZERO_PADDING in op.attributes:
                _pad(op)


_NEEDS = {
    TMA_STRIDE.values[0]: f"tensor maps need strides of {TMA_STRIDE} bytes ({TMA_STRIDE.source})",
    COPY_BYTES[0]: f"cp.async copies {COPY_BYTES} bytes (PTX ISA 9.7.9.25.3.1)",
}


_ACROSS = "wgmma transposes elements of 16 bits only (PTX ISA 9.7.15.5.1.2)"


def _repack(op: tc.MatmulOp | tc.GroupedMatmulOp, row_bytes: int, by_wgmma: bool) -> None:
    operands = operands_of(op)
    bytes_ = tc.element_bytes(op.a.type.element_type)
    unit = max(1, row_bytes // bytes_)
    unaligned = [value.type.shape[-1] % unit != 0 for value, _ in operands]
    across = [by_wgmma and bytes_ != 2 and not layout.endswith("k") for _, layout in operands]
    if not any(unaligned + across):
        return
    a, layout = operands[0]
    k = a.type.shape[layout.index("k") - 2]
    padded = round_up(k, unit)
    for number, (value, layout) in enumerate(operands):
        if unaligned[number] or across[number] or padded != k:
            _repack_operand(op, number, value, layout, padded)
    why = _NEEDS[row_bytes] if any(unaligned) else _ACROSS
    remark(op, f"{why}: kernels of their own repack the operands, K = {padded} last")


def _pad(op: tc.BlockScaledMatmulOp) -> None:
    """Pads the rows of both block-scaled operands."""
    shape = ScaledShape.of(op)
    k = loadable_k(shape)
    if k == shape.k or "row_major" in (shape.a.layout, shape.b.layout):
        return
    with ir.InsertionPoint(op), op.location:
        for place, operand in ((0, op.a), (2, op.b)):
            op.operation.operands[place] = repacked(operand, range(operand.type.rank), k)
    remark(
        op,
        f"TMA cannot load rows of {shape.k} {shape.a.element} and {shape.b.element}: kernels of "
        f"their own copy both operands, K = {k}",
    )


def _repack_operand(
    op: tc.MatmulOp | tc.GroupedMatmulOp, number: int, value: ir.Value, layout: str, padded: int
) -> None:
    row_major = layout.replace("k", "") + "k"
    batch = list(range(value.type.rank - 2))
    order = [*batch, *(len(batch) + layout.index(name) for name in row_major)]
    shape = [value.type.shape[d] for d in order[:-1]] + [padded]
    kind = ir.RankedTensorType.get(shape, value.type.element_type)
    with ir.InsertionPoint(op), op.location:
        repacked = tc.RepackOp(value, i64s(order), kind).out
    op.operation.operands[number] = repacked
    op.operation.attributes["ab"[number] + "_layout"] = ir.StringAttr.get(row_major)
