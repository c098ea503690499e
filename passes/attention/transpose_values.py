"""transpose-values: copies values of 8 bits so that their keys are innermost in memory, as wgmma
requires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir, tensor
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.limits import FP8, TMA_STRIDE
from tcir.passes.analysis.head_maps import no_map
from tcir.passes.analysis.moves import inverse, transpose
from tcir.passes.analysis.strided import strided
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import no_kernel, round_up
from tcir.passes.emit.tensor_functions import tensor_bytes, tensor_ops
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark
from tcir.target import TARGETS


@register_pass
@dataclass(frozen=True)
class TransposeValues(Pass):
    """Copies 8-bit values of a ``tc.attention``, with keys innermost, by a separate launch.

    Before::

        %o, %lse = "tc.attention"(%q, %k, %v) ({}) {kv_layout = "bhnd", …}
            : (…, tensor<1x8x500x128xf8E4M3FN>) -> …

    After::

        %t = "tc.repack"(%v) {permutation = array<i64: 0, 1, 3, 2>}
            : (tensor<1x8x500x128xf8E4M3FN>) -> tensor<1x8x128x512xf8E4M3FN>
        %s = tensor.extract_slice %t [0, 0, 0, 0] [1, 8, 128, 500] [1, 1, 1, 1]
        %w = linalg.transpose %s permutation = [0, 1, 3, 2]
        %o, %lse = "tc.attention"(%q, %k, %w) ({}) {…}

    wgmma sums over the keys, and requires that dimension to be innermost in operands of 8 bits
    (PTX ISA 9.7.15.5.1.2). The attention reads the copy in place. Values whose keys are already
    innermost in memory, such as a view that transposes a cache, are not copied. On targets whose
    tensor core reads both dimension orders the pass does nothing. Preserves every value, bit for
    bit.
    """

    name: ClassVar[str] = "transpose-values"

    def run(self, module: ir.Module) -> None:
        target = target_of(module)
        for op in list(tensor_ops(module)):
            if not isinstance(op, tc.AttentionOp) or op.powers not in FP8:
                continue
            if not TARGETS[target].wgmma or no_kernel(op, target):
                continue
            if no_map(strided(op.v), string(op, "kv_layout"), inner="n"):
                _transpose(op)


def _transpose(op: tc.AttentionOp) -> None:
    """Replaces the values of an attention by a copy of them, keys last."""
    layout, kind = string(op, "kv_layout"), op.v.type
    order = [layout.index(letter) for letter in "bhdn"]
    *outer, keys = (kind.shape[d] for d in order)
    element = kind.element_type
    step = TMA_STRIDE.values[0] // tc.element_bytes(element)
    with ir.InsertionPoint(op), op.location:
        stored = ir.RankedTensorType.get([*outer, round_up(keys, step)], element)
        copy = tc.RepackOp(op.v, i64s(order), stored).out
        if stored.shape[-1] != keys:
            part = ir.RankedTensorType.get([*outer, keys], element)
            places = [0] * kind.rank, [*outer, keys], [1] * kind.rank
            copy = tensor.ExtractSliceOp(part, copy, [], [], [], *places).result
        view = transpose(copy, inverse(order))
    remark(
        op,
        "the values, of 8 bits, are copied with keys innermost by a separate launch, which writes "
        f"{tensor_bytes(stored)} bytes that are read once (wgmma sums over adjacent bytes only)",
    )
    op.operands[2] = view
