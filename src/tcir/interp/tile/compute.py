"""Rules of the tensor-core ops."""

from __future__ import annotations

from typing import Any

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import flag, integer, integers, optional_integer
from tcir.dialect.cta_pair import columns_of, cta_group_of
from tcir.dialect.limits import MMA_K_BYTES, SLICE_COLUMNS
from tcir.dialect.ops.compute import collector_of, scale_of
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute, of_pair
from tcir.interp.tile.values import SmemTile, TmemTile
from tcir.machine import ElementAddresses, InstructionDescriptor, MmaOptions, TmemAddr

KINDS = {
    "f16": ("f16", "f16"), "bf16": ("f16", "bf16"), "f32": ("tf32", "tf32"),
    "f8E4M3FN": ("f8f6f4", "e4m3"), "f8E5M2": ("f8f6f4", "e5m2"), "i8": ("i8", "s8"),
}  # fmt: skip
"""Element type of an operand -> kind of tcgen05.mma and the machine's name of the type (PTX ISA
9.7.16.10.9.1)."""
RESULTS = {"f32": "f32", "i32": "s32"}


def instruction_of(op: ir.OpView, m: int, **more: Any) -> InstructionDescriptor:
    """Returns the instruction descriptor of an mma without block scales; `m`: rows of A in a
    CTA."""
    kind, b_name = KINDS[str(op.b.type.element)]
    a_name, result = KINDS[str(op.a.type.element)][1], RESULTS[str(op.d.type.element)]
    if "unsigned" in op.operation.attributes:
        a_name, b_name = ("u8" if u else "s8" for u in integers(op, "unsigned"))
    group = cta_group_of(op)
    return InstructionDescriptor(
        kind, m * group, columns_of(op), a_name, b_name, result, cta_group=group, **more
    )


@execute(tc.MmaOp)
def mma(compiler: Compiler, op: tc.MmaOp) -> Step:
    d_, a_, b_, accumulate_ = compiler.operands(op)
    a_slice, b_slice = integer(op, "a_slice"), integer(op, "b_slice")
    ashift, site = flag(op, "ashift"), compiler.site(op)
    a_row = optional_integer(op, "a_row")
    m, n = op.d.type.shape
    instruction = instruction_of(op, m)
    scale, collector = scale_of(op), collector_of(op)
    sequential = compiler.sequential

    def multiply(frame: Frame) -> None:
        if not frame.elected():
            return
        v = frame.values
        d: TmemTile = v[d_]
        b: SmemTile = v[b_]
        source = v[a_]
        step = MMA_K_BYTES // b.layout.element_bytes
        if b.layout.mn * instruction.cta_group != n:
            raise frame.cta_run.error(
                "bad-mma-shape", f"expected B with {n} rows like D's columns, got {b.layout}", site
            )
        if isinstance(source, TmemTile):
            if SLICE_COLUMNS * (a_slice + 1) > source.columns:
                raise frame.cta_run.error(
                    "slice-outside-tile",
                    f"expected a slice of A's {source.columns} columns, got slice {a_slice}",
                    site,
                )
            a: TmemAddr | ElementAddresses = frame.cta_run.tmem_operand(
                source.origin(frame) + source.column + SLICE_COLUMNS * a_slice
            )
        else:
            at = source.base, step * a_slice, step
            rows = source.layout.elements
            where = rows(*at) if a_row is None else source.layout.elements_from(a_row, *at)
            a = frame.cta_run.element_operand(where)
        options = MmaOptions(
            enable_input_d=bool(v[accumulate_]),
            disable_lanes=d.disabled,
            ashift=ashift,
            scale_input_d=scale,
            collector=collector,
        )
        frame.agent.tensor_core.mma(
            d.origin(frame) + d.column,
            a,
            frame.cta_run.element_operand(b.layout.elements(b.base, step * b_slice, step)),
            instruction,
            options,
            site=site,
        )
        if sequential:
            frame.agent.drain()

    return of_pair(multiply, site) if sequential and instruction.cta_group > 1 else multiply
