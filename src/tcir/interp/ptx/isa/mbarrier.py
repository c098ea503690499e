"""mbarrier objects in shared memory (PTX ISA 9.7.13.15)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.memory import AccessTarget, addresses, split
from tcir.interp.ptx.isa.values.elementwise import elementwise
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import TRY_WAIT, Op
from tcir.interp.ptx.registers import U32, U64, unsigned_view, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Address, Operand, Pair, Site
from tcir.interp.ptx.threads import one_by_one
from tcir.interp.ptx.warp import Warp
from tcir.machine.order.mbarrier import MemoryOrder

_U32_TYPE = TYPES["u32"]

PerLane = Callable[[Warp, int], list[int]]
"""(warp, mask) → the value of an operand in each active lane."""

MULTICAST = ("multicast::cluster", "multicast::cluster::16b")
"""Signals to the CTAs of a 16-bit mask; `::16b` is of PTX ISA 9.4."""


def shared_addresses(w: Warp, place: AccessTarget, m: int, site: Site) -> list[int]:
    """Shared-memory addresses of the active lanes; generic addresses have to point to shared
    memory.
    """
    at = addresses(w, place, m, site)
    if place.space == "generic":
        parts = split(at)
        if len(parts) != 1 or parts[0][0] != "shared":
            raise w.error(
                "not-shared", f"expected a shared-memory address, got {int(at[0]):#x}", site
            )
        at = parts[0][2]
    return [int(a) for a in at]


def shared_operand(d: Decode, operand: Operand, spaced: bool) -> PerLane:
    """Returns a function (warp, mask) that computes the shared addresses of an address operand in
    the lanes of the mask.
    """
    place, site = AccessTarget.of(d, operand, "shared" if spaced else "generic"), d.site

    def at(w: Warp, m: int) -> list[int]:
        return shared_addresses(w, place, m, site)

    return at


def _space(d: Decode) -> bool:
    return d.take("shared", "shared::cta", "shared::cluster") is not None


def lanes_of(d: Decode, operand: Operand) -> PerLane:
    """Returns a function (warp, mask) that reads the 32-bit values of an operand in the lanes of
    the mask.
    """
    slot = d.src(operand, _U32_TYPE)
    site = d.site

    def values(w: Warp, m: int) -> list[int]:
        if w.undef[slot] & m:
            w.read_undefined(site, (slot,), m)
        return [int(x) for x in w.v[U32][slot][LANE_INDICES[m]]]

    return values


@instruction("mbarrier.init")
def init(d: Decode) -> Op:
    spaced = _space(d)
    d.require("b64")
    d.done(2)
    at, count = shared_operand(d, d.operands[0], spaced), lanes_of(d, d.operands[1])
    site = d.site

    def run(w: Warp, m: int) -> None:
        for address, n in one_by_one(w, m, zip(at(w, m), count(w, m), strict=True)):
            w.agent.mbarrier.init(address, n, site=site)

    return d.plain(run)


@instruction("mbarrier.inval")
def inval(d: Decode) -> Op:
    spaced = _space(d)
    d.require("b64")
    d.done(1)
    at = shared_operand(d, d.operands[0], spaced)
    site = d.site

    def run(w: Warp, m: int) -> None:
        for address in at(w, m):
            w.agent.mbarrier.inval(address, site=site)

    return d.plain(run)


def _order(d: Decode) -> MemoryOrder:
    """.sem and .scope, which are given together; without them an arrival releases and a wait
    acquires, with scope .cta."""
    relaxed = d.take("relaxed") is not None
    d.take("release", "acquire")
    scope = d.take("cta", "cluster")
    if relaxed and scope is None:
        raise d.malformed("expected .cta or .cluster with .relaxed")
    return MemoryOrder(relaxed, scope or "cta")


# The state of a phase, opaque to programs: pending arrivals in the low 20 bits, the phase above.
_PENDING_BITS = 20
_PENDING = np.uint64((1 << _PENDING_BITS) - 1)


@instruction("mbarrier.arrive", "mbarrier.arrive.expect_tx", "mbarrier.arrive_drop")
def arrive(d: Decode) -> Op:
    """`arrive {state,} [addr] {, count}` and `arrive.expect_tx {state,} [addr], bytes`."""
    drop = d.name == "mbarrier.arrive_drop"
    expect = d.name.endswith("expect_tx") or d.take("expect_tx") is not None
    completes = d.take("noComplete") is None
    spaced = _space(d)
    order = _order(d)
    d.require("b64")
    d.done((1, 2, 3))
    operands = list(d.operands)
    state = None
    if not isinstance(operands[0], Address):
        target = operands.pop(0)
        if getattr(target, "name", None) is not None:
            state = d.dst(target, TYPES["b64"])
    at = shared_operand(d, operands[0], spaced)
    amount = lanes_of(d, operands[1]) if len(operands) > 1 else None
    if (expect or not completes) and amount is None:
        raise d.malformed("expected a byte count" if expect else "expected a count")
    site = d.site

    def run(w: Warp, m: int) -> None:
        places = at(w, m)
        amounts = amount(w, m) if amount is not None else [1] * len(places)
        lanes = LANE_INDICES[m]
        rows = zip(lanes, places, amounts, strict=True)
        # What all lanes arrive at, all release; else each lane what it did.
        apart = len(set(places)) > 1
        left = Counter(places)
        for lane, address, n in one_by_one(w, m, rows) if apart else rows:
            if state is not None:
                phase, pending = w.agent.mbarrier.state(address, site=site)
                w.v[U64][state][lane] = phase << _PENDING_BITS | pending
            left[address] -= 1
            w.agent.mbarrier.arrive(
                address, 1 if expect else n, n if expect else None, drop=drop, completes=completes,
                more=left[address], order=order, site=site,
            )  # fmt: skip
        if state is not None:
            w.undef[state] &= ~m

    return d.plain(run)


@instruction("mbarrier.pending_count")
def pending_count(d: Decode) -> Op:
    """Number of arrivals that were still pending just before the arrival that returned this
    state.
    """
    d.require("b64")
    d.done(2)
    u64 = TYPES["u64"]
    dst, source = d.dst(d.operands[0], _U32_TYPE), d.src(d.operands[1], u64)
    return elementwise(d, lambda a: a & _PENDING, dst, view(_U32_TYPE), (source,), (view(u64),))


@instruction("mbarrier.complete_tx", "mbarrier.expect_tx")
def count_bytes(d: Decode) -> Op:
    """Decodes mbarrier.complete_tx and mbarrier.expect_tx, which change only the tx-count:
    complete_tx as if bytes had been delivered, expect_tx to announce more bytes.
    """
    complete = d.name.endswith("complete_tx")
    spaced = _space(d)
    _order(d)
    d.require("b64")
    d.done(2)
    at, amount = shared_operand(d, d.operands[0], spaced), lanes_of(d, d.operands[1])
    site = d.site

    def run(w: Warp, m: int) -> None:
        count = w.agent.mbarrier.complete_tx if complete else w.agent.mbarrier.expect_tx
        for address, n in zip(at(w, m), amount(w, m), strict=True):
            count(address, n, site=site)

    return d.plain(run)


@instruction("mbarrier.test_wait", "mbarrier.try_wait")
def wait(d: Decode) -> Op:
    """Whether the awaited phase is complete. `try_wait` may suspend the thread; `test_wait` never
    does. A program may poll with either instruction.
    """
    parity_form = d.take("parity") is not None
    spaced = _space(d)
    order = _order(d)
    d.require("b64")
    d.done((3, 4) if d.name.endswith("try_wait") else 3)
    target = d.operands[0]
    if isinstance(target, Pair):
        raise d.malformed("expected one destination predicate")
    dst = d.pred_dst(target)
    at = shared_operand(d, d.operands[1], spaced)
    site = d.site
    kind = TYPES["u32"] if parity_form else TYPES["b64"]
    slot = d.src(d.operands[2], kind)
    n = unsigned_view(kind.size)

    def run(w: Warp, m: int) -> list[tuple[int, int]]:
        if w.undef[slot] & m:
            w.read_undefined(site, (slot,), m)
        asked = w.v[n][slot][LANE_INDICES[m]]
        if parity_form and (asked > 1).any():
            raise w.error(
                "bad-parity", f"expected a parity of 0 or 1, got {int(np.max(asked))}", site
            )
        known: dict[tuple[int, int], bool | None] = {}  # None: refused, though it is complete
        done, mbarrier = 0, w.agent.mbarrier
        for lane, address, value in zip(LANE_INDICES[m], at(w, m), asked.tolist(), strict=True):
            key = (address, value if parity_form else _parity(w, address, value, site))
            if key not in known and mbarrier.refuses(*key, site=site):
                known[key] = None
            if key not in known:
                known[key] = mbarrier.test(*key, order=order, heeded=op.heeded, site=site)
            done |= int(known[key] is True) << int(lane)
        w.p[dst] = w.p[dst] & ~m | done
        w.undef[dst] &= ~m
        return [key for key, complete in known.items() if complete is False]

    op = d.op(TRY_WAIT, run)
    return op


def _parity(w: Warp, address: int, state: int, site: Site) -> int:
    """Parity of the phase of a state, which has to be the open one or the one before."""
    phase, _ = w.agent.mbarrier.state(address, site=site)
    asked = state >> _PENDING_BITS
    slept = (address, asked & 1) in w.agent.mbarrier.remembered
    if asked not in (phase, phase - 1) and not slept:
        place = w.launch.machine.shared_names.address(address)
        raise w.error(
            "mbarrier-stale-state",
            f"expected the state of phase {phase} or {phase - 1} of the mbarrier at {place}, "
            f"got {state:#x} (phase {asked}): other states are undefined (PTX ISA 9.7.13.15.16)",
            site,
        )
    return asked & 1
