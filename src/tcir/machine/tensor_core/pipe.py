"""The tensor core of an agent: tcgen05.cp, shift, mma and commit, and the pipe they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.engine.operation import Operation
from tcir.machine.errors import MachineError
from tcir.machine.memory.memories import LANES, POISON_WORD, TensorMemory
from tcir.machine.order.hazards import Access
from tcir.machine.order.ordering import class_of
from tcir.machine.order.shadow import Shadow
from tcir.machine.refusal import Refusal
from tcir.machine.sync.barriers import Barriers
from tcir.machine.tensor_core.descriptor import CP_SHAPES, decode_matrix, element_table
from tcir.machine.tensor_core.narrow import CP_FORMATS, HOLDER_SHIFT, decompressed
from tcir.machine.tensor_core.operands import ElementAddresses
from tcir.machine.tmem.places import A_COLUMNS, cp_lanes, shift_source

if TYPE_CHECKING:
    from tcir.machine.engine.machine import Cta

Places = Sequence[tuple[Shadow | None, Any]]
Missing = NDArray[np.bool_] | None
"""Rows that hold anything nothing wrote; None: no row."""


class TensorPipe(Barriers):
    """What goes through the in-order pipe of the tensor core, except mma."""

    def issue(
        self,
        kind: str,
        site: Any,
        target: Any,
        run: Callable[[], None],
        reads: Places = (),
        writes: Places = (),
        ctas: tuple[Cta, ...] = (),
    ) -> None:
        """Issues one operation; (shadow, granules) pairs say what it reads and writes.

        ctas: the pair that it acts on; none: this CTA.

        It may complete once the earlier operations that the pipe keeps before it have.
        """
        self._at(site)
        thread = self.tensor
        thread.issued += 1
        access = Access(thread.component, thread.issued, kind, site, "async", target)
        agents = self.cta.agents
        if len(ctas) > 1:
            agents = [agent for cta in ctas for agent in cta.agents]
        self.pipe_reach = reach = self.pipe_before(access, agents)
        earlier = tuple(
            o
            for agent in agents
            for t in agent.tensor_threads
            for o in t.in_flight
            if not o.done and reach.get(class_of(o.access), 0) >= o.access.number
        )
        operation = Operation(site, run, earlier, access)
        for shadow, where in writes:
            self.note_write(shadow, where, access)
        for shadow, where in reads:
            self.note_read(shadow, where, access)
        thread.order.add(access, reach)
        self.cta.launch(operation)
        thread.in_flight = [o for o in thread.in_flight if not o.done]
        if not operation.done:
            thread.in_flight.append(operation)

    def must_be_defined(self, defined: NDArray[np.bool_], place: str, site: Any) -> Missing:
        """A finding unless all words an operation reads were written."""
        if np.count_nonzero(defined) == defined.size:  # several times as fast as `all`
            return None
        self.cta.report("error", "undefined-read", site, place, "nothing wrote it before")
        whole: Any = defined.reshape(len(defined), -1).all(axis=1)
        return ~whole

    # --- cp --------------------------------------------------------------------------------------

    def cp(
        self,
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
        if decompress is not None and decompress not in CP_FORMATS:
            allowed = ", ".join(CP_FORMATS)
            raise MachineError(
                "cp-format", f"expected a source format in {allowed}, got {decompress}", site=site
            )
        try:
            rows, width = CP_SHAPES.get(shape, (1, 1))
            assumed = self.machine.assumptions
            step = 32 if shape == "4x256b" and assumed.cp4x256b_rows == "every-32" else 1
            base, table = element_table(
                decode_matrix(sdesc), step * rows, width, 8, "K", assumed.cp_row_phase == "start"
            )
            table = table if step == 1 else table[::step]  # remembered by identity
        except Refusal as refusal:
            raise MachineError(refusal.code, str(refusal), site=site) from None
        bits = None if decompress is None else CP_FORMATS[decompress]
        ctas = self.group(cta_group, site)
        self._cp(taddr, ElementAddresses(table, base), shape, multicast, bits, ctas, site)

    def cp_bytes(
        self,
        taddr: int,
        addresses: NDArray[np.int64],
        shape: str = "128x256b",
        multicast: str | None = None,
        *,
        site: Any,
    ) -> None:
        """tcgen05.cp with the shared byte address of every source byte, int64 [rows, bytes]."""
        source = ElementAddresses(addresses)
        self._cp(taddr, source, shape, multicast, None, self.group(1, site), site)

    def _cp(
        self,
        taddr: int,
        source: ElementAddresses,
        shape: str,
        multicast: str | None,
        bits: int | None,
        ctas: tuple[Cta, ...],
        site: Any,
    ) -> None:
        """`bits`: of the elements of padded units that become holders; None copies bytes."""
        try:
            copies = cp_lanes(shape, multicast)
        except Refusal as refusal:
            raise MachineError(refusal.code, str(refusal), site=site) from None
        if source.addresses.shape != CP_SHAPES[shape]:
            raise MachineError(
                "cp-source",
                f"expected {CP_SHAPES[shape]} rows x bytes for .{shape}, got "
                f"{source.addresses.shape}",
                site=site,
            )
        lane, column = taddr >> 16, taddr & 0xFFFF
        if lane and (shape != "4x256b" or lane >= 32):
            allowed = "0..31 (it is repeated in every quarter)" if shape == "4x256b" else "0"
            raise MachineError(
                "tensor-memory-lane", f"expected lane {allowed}, got {lane}", site=site
            )
        if shape == "4x256b" and self.machine.assumptions.cp4x256b_lane == "last":
            lane = 31
        issuer = self.machine.assumptions.cp_pair_source == "issuer"
        sources = [self.cta if issuer else cta for cta in ctas]  # the same offsets in each
        columns = slice(column, column + source.addresses.shape[1] // 4)
        counters = self.machine.counters
        counters.cp += 1
        counters.shared_to_tmem += source.addresses.size * len(ctas)
        if bits is not None:
            source = source.data_only(bits)
        footprint = source.footprint(1)
        for cta, origin in zip(ctas, sources, strict=True):
            cta.tmem.check(columns.start, columns.stop, site)
            origin.smem.check(source.base + footprint.low, source.base + footprint.high, site)
        addresses = source.addresses + source.base
        lanes = [slice(None)] if shape.startswith("128") else list(copies + lane)

        def run() -> None:
            for cta, origin in zip(ctas, sources, strict=True):
                smem, tmem = origin.smem, cta.tmem
                missing = self.must_be_defined(smem.defined[addresses], "shared memory", site)
                data = smem.data[addresses]
                if bits is not None:
                    data = decompressed(data, bits, self.holder_shift(bits))
                words = np.ascontiguousarray(data).view(np.uint32)
                if missing is not None:
                    words[missing] = POISON_WORD
                for copy in lanes:
                    tmem.words[copy, columns] = words
                    tmem.defined[copy, columns] = True

        granules = footprint.granules + source.base // 4
        self.issue(
            "cp", site, shape, run, [(origin.smem.shadow, granules) for origin in sources],
            [(cta.tmem.shadow, (copy, columns)) for cta in ctas for copy in lanes], ctas,
        )  # fmt: skip

    def holder_shift(self, bits: int) -> int:
        """Lowest bit of a narrow element in its byte of tensor memory."""
        if bits == 6 and self.machine.assumptions.fp6_holder == "5..0":
            return 0
        return HOLDER_SHIFT[bits]

    # --- shift -----------------------------------------------------------------------------------

    def shift(self, taddr: int, cta_group: int = 1, *, site: Any) -> None:
        """tcgen05.shift.down: 8 columns move one lane toward lane 0 (PTX ISA 9.7.16.9)."""
        ctas = self.group(cta_group, site)
        lane, column = taddr >> 16, taddr & 0xFFFF
        if lane % 32 or lane >= LANES:
            raise MachineError(
                "tensor-memory-lane", f"expected a lane in 0, 32, 64, 96, got {lane}", site=site
            )
        columns = slice(column, column + A_COLUMNS)
        for cta in ctas:
            cta.tmem.check(columns.start, columns.stop, site)
        self.machine.counters.shift += 1
        one = self.machine.assumptions.shift_quarters == "one"
        where = (slice(lane, lane + 32) if one else slice(None), columns)
        source = shift_source(lane // 32 if one else None)

        def run() -> None:
            for cta in ctas:
                shift_lanes(cta.tmem, source, columns)

        # What it writes is what it reads, and the check of a write is the stricter one.
        writes = [(cta.tmem.shadow, where) for cta in ctas]
        self.issue("shift", site, None, run, writes=writes, ctas=ctas)

    # --- commit ----------------------------------------------------------------------------------

    def commit(
        self, mbar: int, cta_mask: int | None = None, cta_group: int = 1, *, site: Any
    ) -> None:
        """tcgen05.commit: one arrival once every earlier operation of this thread is complete.

        With ``cta_mask`` one at the same offset in each CTA of the mask. It implies
        tcgen05.fence::before_thread_sync.
        """
        ctas = self.group(cta_group, site)
        places = self.multicast(mbar, cta_mask, site)
        barriers = [self._mbarrier(at, site, proxy="async") for at in places]
        self.machine.counters.commit += 1
        thread = self.tensor
        self._mark_before([thread])
        clock = self.release()
        number = clock[thread.component] = thread.issued + 1  # the commit itself
        for at, barrier in zip(places, barriers, strict=True):
            barrier.users[thread.component] = (number, site)
            owner = self.cta_of(at, site)
            if owner is not self.cta:
                commit = Access(thread.component, number, "commit", site, "async")
                owner.visitors[thread.component] = commit

        def run() -> None:
            for barrier in barriers:
                barrier.arrive(1, clock, site)

        self.issue("commit", site, None, run, ctas=ctas)


def shift_lanes(tmem: TensorMemory, source: NDArray[np.int64], columns: slice) -> None:
    """Lane l of the columns gets what lane ``source[l]`` held."""
    tmem.words[:, columns] = tmem.words[source, columns]
    tmem.defined[:, columns] = tmem.defined[source, columns]
