"""Operands of tcgen05 instructions: some are read for one lane at a time, others must be equal in
all lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.sync import uniform
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U32, U64, unsigned_view
from tcir.interp.ptx.syntax import TYPES, Address, Operand
from tcir.interp.ptx.threads import one_by_one
from tcir.interp.ptx.warp import Warp
from tcir.machine import SharedDesc, TmemAddr

_U32_TYPE, _U64_TYPE = TYPES["u32"], TYPES["u64"]
USES = ("fill", "use", "lastuse", "discard")
"""Values of `.collector::BUFFER::…`. They change no result if used as allowed."""


def collective(d: Decode) -> None:
    """Removes the modifiers `.sync.aligned`."""
    d.require("sync")
    d.require("aligned")


def cta_group(d: Decode) -> int:
    """Removes the modifier `.cta_group::N` and returns N."""
    return int(d.require("cta_group::1", "cta_group::2")[-1])


class LaneOperand:
    """A 32- or 64-bit operand, read for one lane at a time."""

    def __init__(self, d: Decode, operand: Operand, wide: bool = False) -> None:
        self.slot = d.src(operand, _U64_TYPE if wide else _U32_TYPE)
        self.view = U64 if wide else U32
        self.site = d.site

    def __call__(self, w: Warp, lane: int) -> int:
        if w.undef[self.slot] & 1 << lane:
            w.read_undefined(self.site, (self.slot,), 1 << lane)
        return int(w.v[self.view][self.slot][lane])


class TmemAddress:
    """The operand `[taddr + offset]`; the offset counts columns of tensor memory."""

    def __init__(self, d: Decode, operand: Operand) -> None:
        self.slot, size, self.offset, space = d.address(operand)
        if space is not None or size != 4 and d.slots.constants.get(self.slot) is None:
            raise d.malformed("expected a 32-bit tensor-memory address")
        self.view = unsigned_view(size)
        self.site = d.site

    def __call__(self, w: Warp, lane: int) -> int:
        if w.undef[self.slot] & 1 << lane:
            w.read_undefined(self.site, (self.slot,), 1 << lane)
        return (int(w.v[self.view][self.slot][lane]) + self.offset) & 0xFFFFFFFF

    def uniform(self, w: Warp, m: int) -> int:
        """The address, which must be equal in all lanes."""
        value = uniform(w, self.slot, m, self.site, "tensor-memory address", self.view)
        return (value + self.offset) & 0xFFFFFFFF


def per_thread(d: Decode, issue: Callable[[Warp, int], None]) -> Op:
    """Creates an op that calls `issue` once for each active lane; more than one active lane is
    reported as `double-issue`.
    """
    site = d.site

    def run(w: Warp, m: int) -> None:
        if m & (m - 1):
            w.double_issue(site, m.bit_count())
        for lane in one_by_one(w, m, LANE_INDICES[m].tolist()):
            w.agent.issue.by_lane(lane)
            issue(w, lane)

    return d.plain(run)


def collector(d: Decode, *buffers: str) -> tuple[str, str]:
    """Removes the modifier `.collector::BUFFER::OP` and returns BUFFER and OP. Without the
    modifier, returns the first of `buffers` and `discard`.
    """
    word = d.take(*(f"collector::{buffer}::{use}" for buffer in buffers for use in USES))
    _, buffer, use = (word or f"collector::{buffers[0]}::discard").split("::")
    return buffer, use


class DecodedMmaOperands:
    """The operands `[d], adesc|[a], bdesc, {[metadata],} idesc`, with which every form of
    tcgen05.mma begins.
    """

    def __init__(self, d: Decode, *, sparse: bool) -> None:
        first = iter(d.operands[: 4 + sparse])
        self.target = TmemAddress(d, next(first))
        a = next(first)
        self.in_tmem = isinstance(a, Address)
        self.a: TmemAddress | LaneOperand = (
            TmemAddress(d, a) if self.in_tmem else LaneOperand(d, a, wide=True)
        )
        self.b = LaneOperand(d, next(first), wide=True)
        self.metadata = TmemAddress(d, next(first)) if sparse else None
        self.idesc = LaneOperand(d, next(first))
        self.rest = list(d.operands[4 + sparse :])

    def read(self, w: Warp, lane: int) -> tuple[int, SharedDesc | TmemAddr, SharedDesc, int]:
        """Returns the values of (d, a, b, idesc), in the form that the simulated machine takes."""
        a = self.a(w, lane)
        operand = TmemAddr(a) if self.in_tmem else SharedDesc(a)
        return self.target(w, lane), operand, SharedDesc(self.b(w, lane)), self.idesc(w, lane)

    def selectors(self, w: Warp, lane: int) -> int | None:
        """Address of the metadata of a sparse A."""
        return None if self.metadata is None else self.metadata(w, lane)


class Predicate:
    """The operand enable-input-d, a predicate."""

    def __init__(self, d: Decode, operand: Operand) -> None:
        self.slot, self.flip = d.pred(operand)
        self.site = d.site

    def __call__(self, w: Warp, lane: int) -> bool:
        if w.undef[self.slot] & 1 << lane:
            w.read_undefined(self.site, (self.slot,), 1 << lane)
        return bool((w.p[self.slot] ^ self.flip) >> lane & 1)
