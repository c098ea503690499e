"""split-kv: divides the keys of an attention of few rows and many keys into parts, which several
CTAs compute."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.errors import InputError
from tcir.passes.attention.tcgen05 import ROWS
from tcir.passes.attention.tiles import HeadShape
from tcir.passes.attention.wgmma import choose_rows
from tcir.passes.emit.builders import i64
from tcir.passes.emit.clone import clone
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import ceil_div, no_kernel, round_up
from tcir.passes.emit.tensor_functions import tensor_ops
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark
from tcir.target import TARGETS, Target
from tcir.time.constants import Constants
from tcir.time.warpgroups import SUMMED_BYTES, SUMMING

UNIT = 128
"""Keys that a part is a multiple of: whole blocks of any size that is chosen."""
MOST_PARTS = 64
"""Most parts that are chosen: the second launch reads a logarithm of each in every thread."""
START, BLOCK = 4000, 2000
"""Cycles of a CTA besides its blocks, and of a block whose keys are there in time, modelled."""
GAIN = 0.9
"""Largest share of the time without parts that parts may take."""


@register_pass
@dataclass(frozen=True)
class SplitKv(Pass):
    """Divides the keys of a ``tc.attention`` into parts, and combines their results.

    parts: number of parts; 1: no division; 0: the fastest number
    keys:  keys of a block, as in tile-attention

    Before::

        %o, %lse = "tc.attention"(%q, %k, %v) ({}) {…}
            : (tensor<1x32x1x128xf16>, tensor<1x8x16384x128xf16>, …)
            -> (tensor<1x32x1x128xf16>, tensor<1x32x1xf32>)

    After::

        %p, %s = "tc.attention"(%q, %k, %v) ({}) {…, key_part = 1024}
            : (…) -> (tensor<16x1x32x1x128xf32>, tensor<16x1x32x1xf32>)
        %o, %lse = "tc.combine_parts"(%p, %s)

    A decoding step has few rows and therefore few CTAs; with the keys in parts there is a CTA for
    each SM. The results of the parts are stored in a workspace between the two kernels and combined
    in a fixed order, so the result does not depend on timing. Preserves the value of every element
    up to the order of the sums.
    """

    name: ClassVar[str] = "split-kv"
    parts: int = 0
    keys: int = 0

    def __post_init__(self) -> None:
        if self.parts < 0:
            raise InputError(
                "split-kv, the number of parts of the keys, must be at least 1, or 0 to choose "
                f"it, got {self.parts}; leave it out"
            )

    def run(self, module: ir.Module) -> None:
        if self.parts == 1:
            return
        target = target_of(module)
        for op in list(tensor_ops(module)):
            if not isinstance(op, tc.AttentionOp) or op.key_part or no_kernel(op, target):
                continue
            if op.sequences:
                if self.parts:
                    raise match_failure(
                        op,
                        "split-kv is not available for sequences of different lengths, got "
                        f"{self.parts}: a part would end at a different key in each sequence; "
                        "leave it out",
                    )
                continue
            unit = self.keys or UNIT
            part = _part(op, self.parts or _fastest(op, TARGETS[target], unit), unit)
            if part < op.extents()["n"]:
                _split(op, part)


def _part(op: tc.AttentionOp, parts: int, unit: int) -> int:
    """Number of keys of each of `parts` parts, rounded up to whole blocks of `unit` keys."""
    return round_up(ceil_div(op.extents()["n"], parts), unit)


def _fastest(op: tc.AttentionOp, target: Target, unit: int) -> int:
    """Parts with which both launches take least: CTAs visit their blocks at the same time, as many
    as there are SMs, and no faster than memory is read."""
    of = HeadShape.of(op).together(op.elements)
    rows = choose_rows(of, target.sms) if target.wgmma else ROWS
    tiles = of["b"] * of["h"] * ceil_div(of["m"], rows)
    bytes_ = unit * (of["d"] + of["e"]) * tc.element_bytes(op.v.type.element_type)
    results = 4 * of["b"] * of["h"] * of["m"] * of["e"]
    constants = Constants(target.name)
    rate = constants["hbm"] / constants["clock"]

    def cycles(parts: int) -> float:
        blocks = ceil_div(_part(op, parts, unit), unit)
        ctas = tiles * parts
        block = max(BLOCK, bytes_ * min(ctas, target.sms) / rate)
        found = ceil_div(ctas, target.sms) * (START + blocks * block)
        return found + (SUMMING + parts * results / SUMMED_BYTES if parts > 1 else 0)

    most = max(min(MOST_PARTS, ceil_div(of.keys, unit), target.sms // tiles), 1)
    best = min(range(1, most + 1), key=lambda parts: (cycles(parts), -parts))
    return best if cycles(best) < GAIN * cycles(1) else 1


def _split(op: tc.AttentionOp, part: int) -> None:
    """Replaces an attention by that of all parts of `part` keys."""
    parts, attributes = (
        ceil_div(op.extents()["n"], part),
        {n: op.attributes[n] for n in op.attributes},
    )
    with ir.InsertionPoint(op), op.location:
        kinds = [
            ir.RankedTensorType.get([parts, *each.type.shape], ir.F32Type.get())
            for each in op.operation.results
        ]
        made = ir.Operation.create(
            op.operation.name,
            kinds,
            list(op.operands),
            {**attributes, "key_part": i64(part)},
            regions=1,
        )
        if op.modified:
            _copy_body(op, made.opview)
        combined = tc.CombinePartsOp(
            *made.results, op.attributes["out_layout"], op.out.type, op.lse.type
        )
    remark(
        made.opview,
        f"the keys are divided into {parts} parts of {part}: {parts} times as many CTAs, and a "
        f"workspace of {4 * sum(prod(kind.shape) for kind in kinds)} bytes that is written and "
        "read once",
    )
    op.out.replace_all_uses_with(combined.out)
    op.lse.replace_all_uses_with(combined.lse)
    op.operation.erase()


def _copy_body(source: tc.AttentionOp, made: tc.AttentionOp) -> None:
    """Gives an op the body of another."""
    (body,) = source.body.blocks
    kinds = [each.type for each in body.arguments]
    block = made.body.blocks.append(*kinds, arg_locs=[source.location] * len(kinds))
    known = dict(zip(body.arguments, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for op in body.operations:
            clone(op, known)
