"""wgmma.mma_async, fence, commit_group and wait_group (PTX ISA 9.7.15), for one warp."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.sync import uniform
from tcir.interp.ptx.isa.values.fragments import elements, fragment_a
from tcir.interp.ptx.isa.warpgroup.metadata import SparsityMetadata
from tcir.interp.ptx.isa.warpgroup.wgmma_form import example, form_of, is_sparse, with_immediates
from tcir.interp.ptx.lanes import FULL
from tcir.interp.ptx.op import Blocking, Op, PendingGroups
from tcir.interp.ptx.registers import U32, U64
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Vector
from tcir.interp.ptx.warp import Warp


@dataclass(frozen=True)
class WgmmaOperands:
    """Registers that a wgmma may use until a wait covers it. d: registers of D. a: registers of A
    and of its metadata
    """

    d: tuple[int, ...]
    a: tuple[int, ...]


def _d_places(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of every element of D that a lane holds: [n / 2, 32]."""
    lane, v = np.arange(32), np.arange(n // 2)[:, None]
    return lane // 4 + 8 * (v // 2 % 2), 2 * (lane % 4) + v % 2 + 8 * (v // 4)


@instruction("wgmma.mma_async", "wgmma.mma_async.sp")
def mma_async(d: Decode) -> Op:
    """`d, a, b {, metadata, selector}, scale-d {, imm-scale-a, -b {, imm-trans-a, -b}}`."""
    form = form_of(d)
    sparse = is_sparse(d)
    behind = 6 if sparse else 4
    if len(d.operands) < behind:
        of_a = ", metadata, selector" * sparse
        raise d.malformed(f"expected D, A, B{of_a} and scale-d, {example(d)}")
    d.done(range(behind, behind + 5))
    half = form.types.d_type == "f16"
    kind = TYPES["b32"]
    targets = d.vector(d.operands[0], form.n // (4 if half else 2))
    sources = tuple(d.src(o, kind) for o in targets)
    slots = tuple(d.dst(o, kind) for o in targets)
    registers = isinstance(d.operands[1], Vector)
    a_slots: tuple[int, ...] = ()
    if registers:
        a_slots = tuple(d.src(o, kind) for o in d.vector(d.operands[1], 4))
    meta = SparsityMetadata.of(d, form, d.operands[3:5]) if sparse else None
    held_a = a_slots if meta is None else (*a_slots, meta.slot)
    adesc = -1 if registers else d.src(d.operands[1], TYPES["b64"])
    bdesc = d.src(d.operands[2], TYPES["b64"])
    scale, flip = d.pred(d.operands[behind - 1])
    form = with_immediates(d, form, list(d.operands[behind:]), registers)
    site = d.site
    d_at = _d_places(form.n)
    a_at = fragment_a(form.bits, 16, form.stored)
    code = {32: np.uint32, 16: np.uint16}.get(form.bits, np.uint8)

    def held_d(w: Warp) -> np.ndarray:
        matrix = np.zeros((16, form.n), np.uint32)
        words = np.stack([w.v[U32][slot] for slot in sources])
        matrix[d_at] = elements(words, 16) if half else words
        return matrix

    def put(w: Warp, result: np.ndarray) -> None:
        words = result[d_at]
        if half:
            words = words[0::2] | words[1::2] << np.uint32(16)
        for slot, row in zip(slots, words, strict=True):
            w.v[U32][slot][:] = row
            w.define(slot, FULL, None)

    def run(w: Warp, m: int) -> None:
        if w.undef[scale] & m:
            w.read_undefined(site, (scale,), m)
        chosen = (w.p[scale] ^ flip) & m
        if chosen not in (0, m):
            raise w.error("not-uniform", "expected the same scale-d in all lanes", site)
        state = w.wgmma
        before = state.take(w, slots, held_a, site)
        read = a_slots if before is not None or not chosen else (*sources, *a_slots)
        if any(w.undef[slot] & m for slot in read):
            w.read_undefined(site, read, m)
        a: int | np.ndarray
        if registers:
            a = np.zeros((16, form.stored), code)
            a[a_at] = elements(np.stack([w.v[U32][slot] for slot in a_slots]), form.bits)
        else:
            a = uniform(w, adesc, m, site, "descriptor of A", U64)
        b = uniform(w, bdesc, m, site, "descriptor of B", U64)
        d_in = None if not chosen else before if before is not None else held_d(w)
        select = None if meta is None else meta.select(w)
        flight = w.agent.wgmma.issue(form, a, b, d_in, select, site=site)
        state.fly(w, slots, held_a, flight, partial(put, w))

    op = d.plain(run, aligned=True)
    op.form = WgmmaOperands(slots, held_a)
    return op


@instruction("wgmma.fence")
def fence(d: Decode) -> Op:
    d.require("sync")
    d.require("aligned")
    d.done(0)
    return d.plain(lambda w, m: w.wgmma.fence(), aligned=True)


@instruction("wgmma.commit_group")
def commit_group(d: Decode) -> Op:
    d.require("sync")
    d.require("aligned")
    d.done(0)
    site = d.site
    return d.plain(lambda w, m: w.agent.wgmma.commit(site=site), aligned=True)


@instruction("wgmma.wait_group")
def wait_group(d: Decode) -> Op:
    """`N`: waits for all groups except the last N."""
    d.require("sync")
    d.require("aligned")
    d.done(1)
    pending = d.immediate(d.operands[0])
    site = d.site

    def run(w: Warp, m: int) -> Blocking:
        yield from w.agent.wgmma.wait(pending, site=site)
        w.wgmma.land(w.agent.wgmma.complete)

    op = d.blocking(run, aligned=True)
    op.form = PendingGroups(pending)
    return op
