"""tcgen05.cp, shift, mma and commit of an agent: the in-order pipe of the tensor core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.assumptions import Assumptions
from tcir.machine.descriptor import cp_addresses, decode_matrix, element_addresses
from tcir.machine.errors import MachineError, NotModelled
from tcir.machine.formats_decode import ELEMENT_BITS
from tcir.machine.hazards import BEFORE, Access, mark
from tcir.machine.instruction_descriptor import decode_instruction, legal_m, legal_n
from tcir.machine.memory import COLUMNS, LANES
from tcir.machine.numerics import fast_mma, fused_mma, integer_mma
from tcir.machine.operation import Operation
from tcir.machine.refusal import Refusal
from tcir.machine.time_table import mma_cycles, operand_bytes
from tcir.machine.tmem import a_lanes, cp_lanes, d_layout, shift_source

if TYPE_CHECKING:
    from tcir.machine.agent import Agent

SLAB = 8
"""Columns of one K step of A in tensor memory: 32 bytes."""


@dataclass(frozen=True)
class SharedDesc:
    """An operand named by a 64-bit shared-memory matrix descriptor."""

    bits: int


@dataclass(frozen=True)
class TmemAddr:
    """An A operand in tensor memory."""

    address: int


@dataclass(frozen=True, eq=False)
class ElementAddresses:
    """An operand in shared memory by the byte address of every element, int64 [rows, K]."""

    addresses: NDArray[np.int64]


def pipe_order(first: Access, second: Access, assumptions: Assumptions) -> tuple[bool, str]:
    """Whether two operations of one thread are ordered by the pipe itself (PTX ISA 9.7.16.6.2)."""
    pair = (first.kind, second.kind)
    if pair == ("mma", "mma"):
        if first.target == second.target:
            return True, ""
        return False, (
            "two mma on different accumulators are not ordered, and one of them shifts A: a "
            "shifting slab belongs to one accumulator"
        )
    if pair in (("cp", "mma"), ("shift", "mma"), ("mma", "shift")):
        return True, ""
    if pair == ("shift", "cp") and second.target == "4x256b":
        return True, ""
    if pair == ("mma", "cp") and second.target == "4x256b":
        return assumptions.ashift_then_cp == "ordered", "tcgen05.commit and a wait on its mbarrier"
    return False, "tcgen05.commit and a wait on its mbarrier between them"


def missing_edge(first: Access, second: Access) -> str:
    """What would order two accesses of different components, in words."""
    match first.kind:
        case "mma" | "cp" | "shift":
            return f"tcgen05.commit after the {first.kind}, and a wait on its mbarrier"
        case "TMA load":
            return "a wait on the mbarrier that the TMA load signals"
        case "TMA store":
            return "cp.async.bulk.commit_group and wait_group"
        case "tcgen05.ld":
            return "tcgen05.wait::ld, then a barrier or an arrival that the other side waits for"
        case "tcgen05.st":
            return "tcgen05.wait::st, then a barrier or an arrival that the other side waits for"
    return "a barrier, or an mbarrier arrival and wait, between the two warps"


def _issue(
    agent: Agent, kind: str, site: Any, target: Any, run: Any, after: Any
) -> tuple[Access, Operation]:
    """A new operation of the pipe; `after(tag)` says which earlier ones it follows."""
    agent._at(site)
    agent.tc_issued += 1
    access = Access(agent.tc, agent.tc_issued, kind, site, "async", target)
    agent.pipe = [o for o in agent.pipe if not o.done]
    earlier = tuple(o for o in agent.pipe if after(o.tag))
    operation = Operation(site, run, earlier, (kind, target))
    agent.pipe.append(operation)
    return access, operation


def _note(agent: Agent, access: Access, reads: Any, writes: Any) -> None:
    """Happens-before of one operation: (shadow, where) pairs it reads and writes."""
    if not agent.machine.checking:
        return
    for shadow, where in reads:
        agent._check(shadow, where, access, agent.clock, write=False)
    for shadow, where in writes:
        agent._check(shadow, where, access, agent.clock, write=True)
    for shadow, where in reads:
        shadow.record_read(where, access, agent.clock)
    for shadow, where in writes:
        shadow.record_write(where, access)


def _slab(column: int, lanes: Any = None, columns: int = SLAB) -> NDArray[np.int64]:
    lanes = np.arange(LANES) if lanes is None else np.asarray(lanes)
    return (lanes.reshape(-1, 1) * COLUMNS + column + np.arange(columns)).ravel()


# --- cp and shift --------------------------------------------------------------------------------


def cp(
    self: Agent,
    taddr: int,
    sdesc: int,
    shape: str = "128x256b",
    multicast: str | None = None,
    decompress: str | None = None,
    cta_group: int = 1,
    *,
    site: Any,
) -> None:
    """tcgen05.cp by descriptor."""
    if cta_group != 1:
        raise NotModelled("cta_group::2", site=site)
    if decompress is not None:
        raise NotModelled(f"tcgen05.cp decompression {decompress}", site=site)
    try:
        addresses = cp_addresses(decode_matrix(sdesc), shape)
    except Refusal as refusal:
        raise MachineError(refusal.code, str(refusal), site=site) from None
    cp_bytes(self, taddr, addresses, shape, multicast, site=site)


def cp_bytes(
    self: Agent,
    taddr: int,
    addresses: NDArray[np.int64],
    shape: str = "128x256b",
    multicast: str | None = None,
    *,
    site: Any,
) -> None:
    """tcgen05.cp with the shared byte address of every source byte, int64 [rows, bytes]."""
    try:
        copies = cp_lanes(shape, multicast)
    except Refusal as refusal:
        raise MachineError(refusal.code, str(refusal), site=site) from None
    lane, column = taddr >> 16, taddr & 0xFFFF
    if lane and shape != "4x256b":
        raise MachineError("tensor-memory-lane", f"expected lane 0, got {lane}", site=site)
    lanes, columns = copies + lane, addresses.shape[1] // 4
    smem, tmem = self.cta.smem, self.cta.tmem
    tmem.check(column, column + columns, site)
    smem.check(int(addresses.min()), int(addresses.max()) + 1, site)
    counters = self.machine.counters
    counters.cp += 1
    counters.shared_to_tmem += addresses.size

    def run() -> None:
        _defined(self, smem.defined[addresses], "shared memory", site)
        words = np.ascontiguousarray(smem.data[addresses]).view(np.uint32)
        for copy in lanes:
            tmem.words[copy, column : column + columns] = words
            tmem.defined[copy, column : column + columns] = True

    access, operation = _issue(
        self, "cp", site, shape, run, lambda o: o[0] == "shift" and shape == "4x256b"
    )
    if self.machine.checking:
        _note(
            self,
            access,
            [(smem.shadow, np.unique(addresses // 4))],
            [(tmem.shadow, _slab(column, lanes, columns))],
        )
    self.cta.launch(operation)


def shift(self: Agent, taddr: int, *, site: Any) -> None:
    """tcgen05.shift.down: 8 columns move one lane toward lane 0 (PTX ISA 9.7.16.9)."""
    lane, column = taddr >> 16, taddr & 0xFFFF
    if lane % 32:
        raise MachineError(
            "tensor-memory-lane", f"expected a lane, multiple of 32, got {lane}", site=site
        )
    tmem = self.cta.tmem
    tmem.check(column, column + SLAB, site)
    self.machine.counters.shift += 1
    quarter = lane // 32 if self.machine.assumptions.shift_quarters == "one" else None
    source = shift_source(quarter)

    def run() -> None:
        _shift(tmem, source, column)

    access, operation = _issue(self, "shift", site, None, run, lambda o: o[0] in ("mma", "shift"))
    if self.machine.checking:
        where = [(tmem.shadow, _slab(column))]
        _note(self, access, where, where)
    self.cta.launch(operation)


def _shift(tmem: Any, source: Any, column: int) -> None:
    where = slice(column, column + SLAB)
    tmem.words[:, where] = tmem.words[source, where]
    tmem.defined[:, where] = tmem.defined[source, where]


def _defined(agent: Agent, defined: NDArray[np.bool_], place: str, site: Any) -> None:
    if not defined.all():
        agent.cta.report("error", "undefined-read", site, place, "nothing wrote it before")


# --- mma -----------------------------------------------------------------------------------------


def mma(
    self: Agent,
    d_taddr: int,
    a: SharedDesc | TmemAddr,
    b_desc: int,
    idesc: int,
    kind: str = "f16",
    *,
    enable_input_d: bool,
    disable_lanes: tuple[int, ...] | None = None,
    scale_input_d: int | None = None,
    ashift: bool = False,
    collector: str | None = None,
    cta_group: int = 1,
    site: Any,
) -> None:
    """tcgen05.mma by descriptors."""
    if cta_group != 1:
        raise NotModelled("cta_group::2", site=site)
    try:
        i = decode_instruction(idesc, kind, cta_group=cta_group)
        if i.sparse:
            raise NotModelled("sparse tcgen05.mma", site=site)
        bits = _container_bits(i.b_type)
        b = element_addresses(decode_matrix(b_desc), i.n, i.k, bits, i.b_major)
        if isinstance(a, SharedDesc):
            bits = _container_bits(i.a_type)
            at: Any = ElementAddresses(
                element_addresses(decode_matrix(a.bits), i.m, i.k, bits, i.a_major)
            )
        else:
            at = a
    except Refusal as refusal:
        raise MachineError(refusal.code, str(refusal), site=site) from None
    mma_elements(
        self, d_taddr, at, ElementAddresses(b), i.m, i.n, i.a_type, i.b_type, i.d_type,
        enable_input_d=enable_input_d, disable_lanes=disable_lanes, scale_input_d=scale_input_d,
        ashift=ashift, collector=collector, negate_a=i.negate_a, negate_b=i.negate_b,
        saturate=i.saturate, kind=kind, site=site,
    )  # fmt: skip


def _container_bits(element: str) -> int:
    """Bits of one element in memory: 4- and 6-bit types of f8f6f4 lie in bytes."""
    return max(8, ELEMENT_BITS[element])


def mma_elements(
    self: Agent,
    d_taddr: int,
    a: ElementAddresses | TmemAddr,
    b: ElementAddresses,
    m: int,
    n: int,
    a_type: str,
    b_type: str,
    d_type: str = "f32",
    *,
    kind: str = "f16",
    enable_input_d: bool,
    disable_lanes: tuple[int, ...] | None = None,
    scale_input_d: int | None = None,
    ashift: bool = False,
    collector: str | None = None,
    negate_a: bool = False,
    negate_b: bool = False,
    saturate: bool = False,
    site: Any,
) -> None:
    """One K step (32 bytes a row): D = A B^T (+ D), with the address of every shared element."""
    if m not in legal_m(kind, 1, False) or n not in legal_n(kind, 1, False):
        raise MachineError(
            "mma-shape", f"expected a legal M x N of kind::{kind}, got {m} x {n}", site=site
        )
    if ELEMENT_BITS[a_type] < 8 or ELEMENT_BITS[b_type] < 8:
        raise NotModelled("4- and 6-bit operands of tcgen05.mma", site=site)
    in_tmem = isinstance(a, TmemAddr)
    if ashift and not in_tmem:
        raise MachineError(
            "ashift-operand",
            "expected A in tensor memory with .ashift, got a descriptor",
            site=site,
        )
    if ashift and m != 128:
        raise MachineError("ashift-rows", f"expected M = 128 with .ashift, got {m}", site=site)
    if ashift and collector in ("fill", "use"):
        raise MachineError("ashift-collector", f"expected no .{collector} with .ashift", site=site)
    path = d_layout(m, n)
    d_lane, d_column = d_taddr >> 16, d_taddr & 0xFFFF
    half = path.half_lanes and d_lane == 16
    if d_lane and not half:
        raise MachineError("tensor-memory-lane", f"expected D at lane 0, got {d_lane}", site=site)
    smem, tmem = self.cta.smem, self.cta.tmem
    tmem.check(d_column, d_column + path.columns, site)
    lanes, columns = path.lane + d_lane, path.column + d_column
    written = _enabled(disable_lanes, lanes, site)
    if in_tmem:
        assert isinstance(a, TmemAddr)
        a_column, a_lane = a.address & 0xFFFF, a.address >> 16
        if a_lane != d_lane:
            raise MachineError(
                "tensor-memory-lane", f"expected A at D's lane {d_lane}, got {a_lane}", site=site
            )
        tmem.check(a_column, a_column + SLAB, site)
        rows = a_lanes(m)[1][0] + a_lane
    else:
        assert isinstance(a, ElementAddresses)
        smem.check(int(a.addresses.min()), int(a.addresses.max()) + 1, site)
    smem.check(int(b.addresses.min()), int(b.addresses.max()) + 1, site)
    counters = self.machine.counters
    counters.mma += 1
    counters.tensor_cycles += mma_cycles(m, n, a_in_tmem=in_tmem)
    counters.shared_to_tensor += operand_bytes(m, n, a_in_tmem=in_tmem)

    def run() -> None:
        dtype = f"u{_container_bits(a_type) // 8}"
        if in_tmem:
            where = slice(a_column, a_column + SLAB)
            _defined(self, tmem.defined[rows, where], "A in tensor memory", site)
            av = np.ascontiguousarray(tmem.words[rows, where]).view(dtype)
        else:
            av = _gather(self, a.addresses, dtype, site)  # type: ignore[union-attr]
        bv = _gather(self, b.addresses, f"u{_container_bits(b_type) // 8}", site)
        d = None
        if enable_input_d:
            ok = tmem.defined[lanes, columns]
            _defined(self, ok if written is None else ok[written], "accumulator", site)
            d = tmem.words[lanes, columns]
        result = _multiply(
            self.machine.numerics, av, bv, d, a_type, b_type, d_type, negate_a, negate_b,
            scale_input_d or 0, saturate,
        )  # fmt: skip
        if written is None:
            tmem.words[lanes, columns] = result
            tmem.defined[lanes, columns] = True
        else:
            tmem.words[lanes[written], columns[written]] = result[written]
            tmem.defined[lanes[written], columns[written]] = True
            if not enable_input_d:
                # PTX leaves open what a masked lane holds after a first accumulation.
                tmem.defined[lanes[~written], columns[~written]] = False
        if ashift:
            _shift(tmem, shift_source(), a_column)

    target = (d_taddr, m, n)
    access, operation = _issue(
        self, "mma", site, target, run, lambda o: o[0] in ("cp", "shift") or o[1] == target
    )
    if self.machine.checking:
        d_words = (lanes * COLUMNS + columns).ravel()
        reads = [(smem.shadow, np.unique(b.addresses // 4))]
        writes = [(tmem.shadow, d_words)]
        if in_tmem:
            slab = _slab(a_column, rows)
            (writes if ashift else reads).append((tmem.shadow, slab))
        else:
            reads.append((smem.shadow, np.unique(a.addresses // 4)))  # type: ignore[union-attr]
        _note(self, access, reads, writes)
    self.cta.launch(operation)


def _enabled(
    masks: tuple[int, ...] | None, lanes: NDArray[np.int64], site: Any
) -> NDArray[np.bool_] | None:
    """Which elements of D are written (None: all). Bit i of mask v set: lane 32 v + i is not."""
    if masks is None or not any(masks):
        return None
    if len(masks) != 4:
        raise MachineError("lane-mask", f"expected 4 mask words, got {len(masks)}", site=site)
    off = np.array([masks[lane // 32] >> (lane % 32) & 1 for lane in range(LANES)], bool)
    return ~off[lanes]


def _gather(agent: Agent, addresses: NDArray[np.int64], dtype: str, site: Any) -> NDArray[Any]:
    smem = agent.cta.smem
    width = np.dtype(dtype).itemsize
    _defined(agent, smem.defined[addresses], "shared memory", site)
    return smem.data[: smem.size // width * width].view(dtype)[addresses // width]


def _multiply(
    numerics: str, a: Any, b: Any, d: Any, a_type: str, b_type: str, d_type: str,
    negate_a: bool, negate_b: bool, scale: int, saturate: bool,
) -> NDArray[np.uint32]:  # fmt: skip
    if d_type == "s32":
        return integer_mma(a, b, d, a_type=a_type, b_type=b_type, saturate=saturate)
    run = fused_mma if numerics == "exact" else fast_mma
    return run(
        a, b, d, a_type=a_type, b_type=b_type, d_type=d_type, negate_a=negate_a,
        negate_b=negate_b, scale_input_d=scale,
    )  # fmt: skip


# --- commit --------------------------------------------------------------------------------------


def commit(
    self: Agent, mbar: int, cta_mask: int | None = None, cta_group: int = 1, *, site: Any
) -> None:
    """tcgen05.commit: one arrival once every earlier operation of this thread is complete."""
    if cta_group != 1:
        raise NotModelled("cta_group::2", site=site)
    if cta_mask not in (None, 1):
        raise NotModelled("commit to other CTAs", site=site)
    barrier = self._mbarrier(mbar, site, proxy="async")
    self.machine.counters.commit += 1
    self._mark_before()  # commit implies tcgen05.fence::before_thread_sync
    clock = self._release()
    clock[self.tc] = self.tc_issued
    mark(clock, BEFORE, [c for c in clock if c[0] in ("ld", "st")])

    def run() -> None:
        barrier.arrive(1, clock, site)

    # A commit is no access of its own: it only waits for all that came before.
    _, operation = _issue(self, "commit", site, None, run, lambda o: True)
    self.cta.launch(operation)
