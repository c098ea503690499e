"""Rules of wgmma. An agent that is the whole CTA computes all rows, an agent that is a warp of a
role 16 rows.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tcir.dialect import tc
from tcir.dialect.attributes import integer, integers, unsigned_operands
from tcir.dialect.fragments import PTX_TYPE
from tcir.dialect.limits import MMA_K_BYTES, WARP, WARPGROUP, WGMMA_M
from tcir.interp.tile.compiler import Blocking, Compiler, Frame, Step, execute
from tcir.interp.tile.movement import segments
from tcir.interp.tile.operands import slice_of
from tcir.machine.numerics.types import MmaTypes
from tcir.machine.wgmma.unit import Flight, WgmmaForm


@execute(tc.WgmmaOp)
def wgmma(compiler: Compiler, op: tc.WgmmaOp) -> Step:
    """Issues a group of wgmma, one instruction for every 32 bytes of K."""
    a, b, c = compiler.operands(op)
    return _group(compiler, op, [(a, b, 0)], c, (op.a.type, op.b.type))


@execute(tc.WgmmaProductOp)
def wgmma_product(compiler: Compiler, op: tc.WgmmaProductOp) -> Step:
    """Issues the group of `wgmma`; in the first instruction scale-d is false, so that it overwrites
    D.
    """
    a, b = compiler.operands(op)
    return _group(compiler, op, [(a, b, 0)], None, (op.a.type, op.b.type))


@execute(tc.WgmmaTapsOp)
def wgmma_taps(compiler: Compiler, op: tc.WgmmaTapsOp) -> Step:
    """Issues one group of wgmma, with the instructions for each pair of tiles. A is read from the
    row on that the pair gives.
    """
    a, b, (c,) = segments(compiler, op)
    pairs = list(zip(a, b, integers(op, "rows"), strict=True))
    return _group(compiler, op, pairs, c, (op.a[0].type, op.b[0].type))


@execute(tc.WgmmaFragmentOp, tc.WgmmaFragmentProductOp)
def wgmma_fragment(compiler: Compiler, op: tc.WgmmaFragmentOp | tc.WgmmaFragmentProductOp) -> Step:
    """Issues a group of wgmma with A in registers, one instruction for every 32 bytes of a row of
    A. Without an accumulator to add to, scale-d is false in the first instruction.
    """
    a_, b_, *c = compiler.operands(op)
    result, site = compiler.result(op), compiler.site(op)
    n, k = op.b.type.shape
    first, second = (PTX_TYPE[str(each.type.element)] for each in (op.a, op.b))
    bytes_ = tc.element_bytes(op.b.type.element)
    step, major = MMA_K_BYTES // bytes_, ("K", op.b.type.major)
    form = WgmmaForm(n, step, 8 * bytes_, MmaTypes(first, second, "f32"), major)

    def multiply(frame: Frame) -> None:
        v, unit = frame.values, frame.agent.wgmma
        issue = unit.whole if frame.whole else unit.issue
        total = v[c[0]] if c else None
        for number in range(k // step):
            codes = np.ascontiguousarray(v[a_][:, step * number : step * (number + 1)])
            total = issue(form, codes, slice_of(frame, v[b_], number), total, site=site)
        if not frame.whole:
            unit.commit(site=site)
        v[result] = total

    return multiply


_Wgmma: TypeAlias = tc.WgmmaOp | tc.WgmmaTapsOp | tc.WgmmaProductOp


def _group(
    compiler: Compiler,
    op: _Wgmma,
    pairs: list[tuple[int, int, int]],
    c: int | None,
    types: tuple[tc.SmemType, tc.SmemType],
) -> Step:
    """Issues the products of `pairs` as one group. pairs: slots of the tiles of A and B, and the
    first row of A; c: slot of the accumulator, None without one."""
    result, site = compiler.result(op), compiler.site(op)
    form, slices = _form(op, *types)
    all_rows = op.d.type.shape[0]

    def multiply(frame: Frame) -> None:
        v, unit = frame.values, frame.agent.wgmma
        group = frame.warp // (WARPGROUP // WARP)
        count = all_rows if frame.whole else WGMMA_M
        total = None if c is None else v[c]
        for a, b, row in pairs:
            first = row if frame.whole else row + WGMMA_M * group
            for number in range(slices):
                rows = slice_of(frame, v[a], number, rows=(first, first + count))
                columns = slice_of(frame, v[b], number)
                issue = unit.whole if frame.whole else unit.issue
                total = issue(form, rows, columns, total, site=site)
        if not frame.whole:
            unit.commit(site=site)
        v[result] = total

    return multiply


def _form(op: _Wgmma, a: tc.SmemType, b: tc.SmemType) -> tuple[WgmmaForm, int]:
    """Returns the instruction, and how many of them cover K."""
    size = tc.element_bytes(a.element)
    first, second = (
        "u8" if plain else PTX_TYPE[str(each.element)]
        for each, plain in zip((a, b), unsigned_operands(op), strict=True)
    )
    d = "s32" if str(op.d.type.element) == "i32" else "f32"
    n, k = b.shape
    step = MMA_K_BYTES // size
    return WgmmaForm(n, step, 8 * size, MmaTypes(first, second, d), (a.major, b.major)), k // step


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
    """Returns the registers of an accumulator; reports an error if a wgmma that uses them is not
    covered by a wait.
    """
    total = frame.values[fragment]
    if isinstance(total, Flight):
        frame.cta.report(
            "error",
            "registers-before-wait",
            total.site,
            site,
            "tc.wgmma_wait with pending = 0 between the product and the first use of its registers",
        )
        frame.agent.drain()
        total = total.result
    assert isinstance(total, np.ndarray)
    return total
