"""Tensor memory and the tcgen05 tensor core (PTX ISA 9.7.16).

mma (see tcgen05_mma.py), cp, shift and commit act once per active thread, as in hardware: executing
one with more than one lane is reported as `double-issue`. alloc, dealloc, ld, st and wait are
warp-collective.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from tcir.interp.ptx.decode import Decode, Op, rule
from tcir.interp.ptx.isa.mbarrier import MULTICAST, shared_operand
from tcir.interp.ptx.isa.sync import uniform
from tcir.interp.ptx.isa.tcgen05_operands import LaneOperand, TmemAddress, cta_group, per_thread
from tcir.interp.ptx.syntax import TYPES
from tcir.interp.ptx.warp import BOOLS, Warp
from tcir.machine import SharedDesc

_U32 = TYPES["u32"]
_SHAPES = ("32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2")
_COUNTS = ("x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128")


def _collective(d: Decode) -> None:
    d.require("sync")
    d.require("aligned")


# --- allocation --------------------------------------------------------------------------------


@rule("tcgen05.alloc")
def alloc(d: Decode) -> Op:
    group = cta_group(d)
    _collective(d)
    exclusive = d.take("exclusive") is not None
    spaced = d.take("shared", "shared::cta") is not None
    d.require("b32")
    d.done(2)
    at = shared_operand(d, d.operands[0], spaced)
    columns = d.src(d.operands[1], _U32)
    site = d.site

    def run(w: Warp, m: int) -> Generator[Any, Any, None]:
        count = uniform(w, columns, m, site, "column count")
        where = at(w, m)[0]
        yield from w.agent.tmem.alloc(where, count, cta_group=group, exclusive=exclusive, site=site)

    return d.blocking(run, converge="aligned")


@rule("tcgen05.dealloc")
def dealloc(d: Decode) -> Op:
    group = cta_group(d)
    _collective(d)
    exclusive = d.take("exclusive") is not None
    d.require("b32")
    d.done(2)
    base, columns = d.src(d.operands[0], _U32), d.src(d.operands[1], _U32)
    site = d.site

    def run(w: Warp, m: int) -> None:
        address = uniform(w, base, m, site, "tensor-memory address")
        count = uniform(w, columns, m, site, "column count")
        w.agent.tmem.dealloc(address, count, cta_group=1, exclusive=exclusive, site=site)

    def of_pair(w: Warp, m: int) -> Generator[Any, Any, None]:
        address = uniform(w, base, m, site, "tensor-memory address")
        count = uniform(w, columns, m, site, "column count")
        yield from w.agent.tmem.pair_dealloc(address, count, exclusive, site=site)

    if group == 2:
        return d.blocking(of_pair, converge="aligned")
    return d.plain(run, converge="aligned")


@rule("tcgen05.relinquish_alloc_permit")
def relinquish(d: Decode) -> Op:
    group = cta_group(d)
    _collective(d)
    d.done(0)
    site = d.site

    def run(w: Warp, m: int) -> None:
        w.agent.tmem.relinquish(cta_group=group, site=site)

    return d.plain(run, converge="aligned")


# --- ld, st, wait ------------------------------------------------------------------------------


def _access(d: Decode, packing: str) -> tuple[str, int, bool]:
    _collective(d)
    shape, count = d.require(*_SHAPES), d.require(*_COUNTS)
    packed = d.take(packing) is not None
    d.require("b32")
    return shape, int(count[1:]), packed


_REGISTERS_PER_NUM = {"16x128b": 2, "16x256b": 4}


@rule("tcgen05.ld")
def ld(d: Decode) -> Op:
    if d.take("red"):
        raise d.incomplete("tcgen05.ld.red is not an instruction of sm_100a")
    shape, count, packed = _access(d, "pack::16b")
    d.done(3 if shape == "16x32bx2" else 2)
    registers = count * _REGISTERS_PER_NUM.get(shape, 1)
    targets = [d.dst(o, _U32) for o in d.vector(d.operands[0], registers)]
    address = TmemAddress(d, d.operands[1])
    split = d.immediate(d.operands[2]) if shape == "16x32bx2" else None
    site = d.site
    pending = dict.fromkeys(targets, site)

    def run(w: Warp, m: int) -> None:
        values = w.agent.tmem.ld(
            address.uniform(w, m), shape=shape, num=count, pack=packed, half_split=split, site=site
        )
        v, undef, where = w.v[5], w.undef, BOOLS[m]
        for target, row in zip(targets, values, strict=True):
            np.copyto(v[target], row, where=where)
        if w.agent.machine.checking:
            w.pending.update(pending)
            for target in targets:
                undef[target] |= m
        else:
            for target in targets:
                undef[target] &= ~m

    return d.plain(run, converge="aligned")


@rule("tcgen05.st")
def st(d: Decode) -> Op:
    shape, count, packed = _access(d, "unpack::16b")
    d.done(3 if shape == "16x32bx2" else 2)
    registers = count * _REGISTERS_PER_NUM.get(shape, 1)
    address = TmemAddress(d, d.operands[0])
    split = d.immediate(d.operands[1]) if shape == "16x32bx2" else None
    sources = tuple(d.src(o, _U32) for o in d.vector(d.operands[-1], registers))
    site = d.site

    def run(w: Warp, m: int) -> None:
        for source in sources:
            if w.undef[source] & m:
                w.read_undefined(site, (source,), m)
        data = np.stack([w.v[5][source] for source in sources])
        more = {} if split is None else {"half_split": split}
        w.agent.tmem.st(
            address.uniform(w, m), shape=shape, num=count, data=data, unpack=packed, site=site,
            **more,
        )  # fmt: skip

    return d.plain(run, converge="aligned")


@rule("tcgen05.wait::ld", "tcgen05.wait::st")
def wait(d: Decode) -> Op:
    _collective(d)
    d.done(0)
    which, site = d.name[-2:], d.site

    def run(w: Warp, m: int) -> None:
        w.agent.tmem.wait(which, site=site)
        if which == "ld" and w.pending:
            w.awaited()

    return d.plain(run, converge="aligned")


# --- cp, shift, commit, fence ------------------------------------------------------------------


@rule("tcgen05.cp")
def cp(d: Decode) -> Op:
    group = cta_group(d)
    shape = d.require("128x256b", "4x256b", "128x128b", "64x128b", "32x128b")
    multicast = d.take("warpx2::02_13", "warpx2::01_23", "warpx4")
    source_format = d.take("b4x16_p64", "b6x16_p32")
    if (d.take("b8x16") is None) != (source_format is None):
        raise d.malformed("expected .b8x16 and one of .b4x16_p64, .b6x16_p32, or neither")
    d.done(2)
    address = TmemAddress(d, d.operands[0])
    descriptor = LaneOperand(d, d.operands[1], wide=True)
    site = d.site

    def issue(w: Warp, lane: int) -> None:
        w.agent.tensor_core.cp(
            address(w, lane), SharedDesc(descriptor(w, lane)), shape=shape, multicast=multicast,
            decompress=source_format, cta_group=group, site=site,
        )  # fmt: skip

    return per_thread(d, issue)


@rule("tcgen05.shift")
def shift(d: Decode) -> Op:
    group = cta_group(d)
    d.require("down")
    d.done(1)
    address = TmemAddress(d, d.operands[0])
    site = d.site

    def issue(w: Warp, lane: int) -> None:
        w.agent.tensor_core.shift(address(w, lane), cta_group=group, site=site)

    return per_thread(d, issue)


@rule("tcgen05.commit")
def commit(d: Decode) -> Op:
    group = cta_group(d)
    d.require("mbarrier::arrive::one")
    spaced = d.take("shared::cluster") is not None
    multicast = d.take(*MULTICAST) is not None
    d.require("b64")
    d.done(2 if multicast else 1)
    at = shared_operand(d, d.operands[0], spaced)
    mask = d.src(d.operands[1], TYPES["u16"]) if multicast else None
    site = d.site

    def issue(w: Warp, lane: int) -> None:
        if mask is not None and w.undef[mask] & 1 << lane:
            w.read_undefined(site, (mask,), 1 << lane)
        w.agent.tensor_core.commit(
            at(w, 1 << lane)[0],
            cta_mask=None if mask is None else int(w.v[2][mask][lane]),
            cta_group=group,
            site=site,
        )

    return per_thread(d, issue)


@rule("tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync")
def fence(d: Decode) -> Op:
    d.done(0)
    kind = "tcgen05.before" if "before" in d.name else "tcgen05.after"
    site = d.site

    def run(w: Warp, m: int) -> None:
        w.agent.fence(kind, site=site)

    return d.plain(run)
