"""cp.async: asynchronous copies that single threads issue, in groups (PTX ISA 9.7.9.25.3
"cp.async").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.mbarrier import shared_operand
from tcir.interp.ptx.isa.memory import HINTS, AccessTarget, addresses, check_aligned
from tcir.interp.ptx.lanes import LANE_INDICES, LANE_MASK
from tcir.interp.ptx.op import Blocking, Op, PendingGroups
from tcir.interp.ptx.registers import U32
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Imm, Not, Reg
from tcir.interp.ptx.warp import Warp

_U32_TYPE = TYPES["u32"]


@dataclass(frozen=True)
class AsyncCopy:
    """A cp.async of `nbytes` bytes.

    count:  slot of the operand src-size; -1 without it
    ignore: slot of the predicate ignore-src; -1 without it
    flip:   mask that negates the predicate, for `!%p`
    """

    shared: AccessTarget
    source: AccessTarget
    nbytes: int
    count: int
    ignore: int
    flip: int


@instruction(
    "cp.async.ca.shared.global",
    "cp.async.cg.shared.global",
    "cp.async.ca.shared::cta.global",
    "cp.async.cg.shared::cta.global",
)
def copy(d: Decode) -> Op:
    """`[dst], [src], size {, src-size | ignore-src predicate} {, policy}`"""
    policy = d.take("L2::cache_hint") is not None
    d.skip(*HINTS)
    d.done((3, 4, 5))
    at = shared_operand(d, d.operands[0], True)
    shared, source = (
        AccessTarget.of(d, d.operands[0], "shared"),
        AccessTarget.of(d, d.operands[1], "global"),
    )
    nbytes = d.immediate(d.operands[2])
    allowed = (16,) if ".cg." in d.name else (4, 8, 16)
    if nbytes not in allowed:
        raise d.malformed(f"expected a size of {' or '.join(map(str, allowed))}, got {nbytes}")
    rest = list(d.operands[3 : -1 if policy else None])
    ignore, flip, count = -1, 0, -1
    if rest:
        operand = rest[0]
        if isinstance(operand, Not) or isinstance(operand, Reg) and operand.type.kind == "pred":
            ignore, flip = d.pred(operand)
        elif isinstance(operand, Imm | Reg):
            count = d.src(operand, _U32_TYPE)
        else:
            raise d.malformed("expected a source size or a predicate")
    site = d.site

    def run(w: Warp, m: int) -> None:
        targets = np.array(at(w, m), np.int64)
        sources = addresses(w, source, m, site)
        check_aligned(w, targets, nbytes, site)
        check_aligned(w, sources, nbytes, site)
        lanes = LANE_INDICES[m]
        read = np.full(len(lanes), nbytes, np.int64)
        if count >= 0:
            if w.undef[count] & m:
                w.read_undefined(site, (count,), m)
            read = w.v[U32][count][lanes].astype(np.int64)
            if (read > nbytes).any():
                raise w.error(
                    "copy-size",
                    f"expected a source size of at most {nbytes}, got {read.max()}",
                    site,
                )
        elif ignore >= 0:
            if w.undef[ignore] & m:
                w.read_undefined(site, (ignore,), m)
            read[LANE_MASK[(w.p[ignore] ^ flip) & 0xFFFFFFFF][lanes]] = 0
        w.agent.cp_async.copy(m, targets, sources, nbytes, read, site=site)

    op = d.plain(run)
    op.form = AsyncCopy(shared, source, nbytes, count, ignore, flip)
    return op


@instruction("cp.async.commit_group")
def commit_group(d: Decode) -> Op:
    d.done(0)
    return d.plain(lambda w, m: w.agent.cp_async.commit(m))


@instruction("cp.async.wait_group", "cp.async.wait_all")
def wait_group(d: Decode) -> Op:
    every = d.name.endswith("wait_all")
    d.done(0 if every else 1)
    pending = None if every else d.immediate(d.operands[0])
    site = d.site

    def run(w: Warp, m: int) -> Blocking:
        yield from w.agent.cp_async.wait(m, pending, site=site)

    op = d.blocking(run)
    op.form = PendingGroups(pending)
    return op


@instruction("cp.async.mbarrier.arrive")
def arrive(d: Decode) -> Op:
    """Arrives at the mbarrier once the thread's earlier copies are done. Without .noinc the pending
    count is first increased, so that the arrival does not use up an expected one.
    """
    increment = d.take("noinc") is None
    spaced = d.take("shared", "shared::cta") is not None
    d.require("b64")
    d.done(1)
    at = shared_operand(d, d.operands[0], spaced)
    site = d.site

    def run(w: Warp, m: int) -> None:
        w.agent.cp_async.arrive(m, at(w, m), increment, site=site)

    return d.plain(run)
