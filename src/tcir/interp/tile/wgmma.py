"""Rules of wgmma: all rows by the agent that is the CTA, 16 rows by a warp of a role."""

from __future__ import annotations

import numpy as np

from tcir.dialect import tc
from tcir.dialect.attributes import integer, unsigned_operands
from tcir.dialect.fragments import PTX_TYPE
from tcir.dialect.limits import MMA_K_BYTES, WARP, WARPGROUP, WGMMA_M
from tcir.interp.tile.compiler import Blocking, Compiler, Frame, Step, execute
from tcir.interp.tile.operands import slice_of
from tcir.interp.tile.values import SmemTile
from tcir.machine import ElementAddresses
from tcir.machine.numerics.types import MmaTypes
from tcir.machine.wgmma.unit import Flight, WgmmaForm


@execute(tc.WgmmaOp)
def wgmma(compiler: Compiler, op: tc.WgmmaOp) -> Step:
    """A group of one instruction for every 32 bytes of K."""
    a_, b_, c_ = compiler.operands(op)
    result, site = compiler.result(op), compiler.site(op)
    form, slices = _form(op)

    def multiply(frame: Frame) -> None:
        v, unit = frame.values, frame.agent.wgmma
        a: SmemTile = v[a_]
        total = v[c_]
        for number in range(slices):
            rows, columns = slice_of(frame, a, number), slice_of(frame, v[b_], number)
            if frame.whole:
                total = unit.whole(form, rows, columns, total, site=site)
            else:
                group = frame.warp // (WARPGROUP // WARP)
                ours = rows.addresses[WGMMA_M * group : WGMMA_M * (group + 1)]
                of_group = ElementAddresses(ours, rows.base)
                total = unit.issue(form, of_group, columns, total, site=site)
        if not frame.whole:
            unit.commit(site=site)
        v[result] = total

    return multiply


def _form(op: tc.WgmmaOp) -> tuple[WgmmaForm, int]:
    """The instruction, and how many of them cover K."""
    size = tc.element_bytes(op.a.type.element)
    a, b = (
        "u8" if plain else PTX_TYPE[str(v.type.element)]
        for v, plain in zip((op.a, op.b), unsigned_operands(op), strict=True)
    )
    d = "s32" if str(op.c.type.element) == "i32" else "f32"
    n, k = op.b.type.shape
    step = MMA_K_BYTES // size
    majors = op.a.type.major, op.b.type.major
    return WgmmaForm(n, step, 8 * size, MmaTypes(a, b, d), majors), k // step


@execute(tc.WgmmaWaitOp)
def wgmma_wait(compiler: Compiler, op: tc.WgmmaWaitOp) -> Step:
    (fragment_,), result = compiler.operands(op), compiler.result(op)
    pending, site = integer(op, "pending"), compiler.site(op)

    def wait(frame: Frame) -> Blocking:
        total = frame.values[fragment_]
        if not frame.whole:
            yield from frame.agent.wgmma.wait(pending, site=site)
            if isinstance(total, Flight) and total.number <= frame.agent.wgmma.complete:
                total = total.result
        frame.values[result] = total

    return wait


def settled(frame: Frame, fragment: int, site: object) -> np.ndarray:
    """The registers of an accumulator; those of a wgmma that no wait has covered are a finding."""
    total = frame.values[fragment]
    if isinstance(total, Flight):
        frame.cta.report(
            "error", "registers-before-wait", total.site, site,
            "tc.wgmma_wait with pending = 0 between the product and the first use of its registers",
        )  # fmt: skip
        frame.agent.drain()
        total = total.result
    assert isinstance(total, np.ndarray)
    return total
