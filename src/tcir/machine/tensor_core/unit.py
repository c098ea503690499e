"""The tensor core of an agent: tcgen05.mma, cp, shift and commit (PTX ISA 9.7.16)."""

from __future__ import annotations

from tcir.machine.assumptions import Assumptions
from tcir.machine.errors import MachineError
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.memory.tensor_memory import LANES, POISON_WORD
from tcir.machine.memory.undefined import Undefined
from tcir.machine.order.clocks import PIPED, Access
from tcir.machine.refusal import Refusal
from tcir.machine.tensor_core.block_scale import BlockScale
from tcir.machine.tensor_core.copy_effects import CpEffect, ShiftEffect
from tcir.machine.tensor_core.descriptor import CP_SHAPES, decode_matrix, element_table
from tcir.machine.tensor_core.instruction_descriptor import (
    InstructionDescriptor,
    decode_instruction,
)
from tcir.machine.tensor_core.instruction_descriptor_scaled import ScaledDescriptor, decode_scaled
from tcir.machine.tensor_core.issued_mma import shift_lanes
from tcir.machine.tensor_core.mma import Mma
from tcir.machine.tensor_core.mma_operands import MmaOperands
from tcir.machine.tensor_core.mma_step import MmaStep
from tcir.machine.tensor_core.narrow import CP_FORMATS
from tcir.machine.tensor_core.operands import ElementAddresses, SharedDesc
from tcir.machine.tensor_core.pipe import Pipe
from tcir.machine.tmem.places import A_COLUMNS, cp_lanes, shift_source


class TensorCore:
    """The tcgen05 instructions of an agent. `mma` is described in `Mma`, `mma_block_scale` in
    `BlockScale`.
    """

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent, self.cta, self.machine = agent, agent.cta, agent.machine
        self.pipe = Pipe(agent)
        step = MmaStep(self.pipe, MmaOperands(self.pipe))
        self.mma = Mma(step).mma
        self.mma_block_scale = BlockScale(step).mma

    def instruction(
        self, bits: int, kind: str, *, cta_group: int = 1, ws: bool = False, site: object
    ) -> InstructionDescriptor:
        """Decodes an instruction's descriptor with `decode_instruction`; an error names the site of
        the instruction.
        """
        try:
            return decode_instruction(bits, kind, cta_group=cta_group, ws=ws)
        except Refusal as refusal:
            raise MachineError.of(refusal, site) from None

    def scaled_instruction(
        self, bits: int, kind: str, scales: int, *, cta_group: int = 1, site: object
    ) -> ScaledDescriptor:
        """Decodes an instruction's descriptor with `decode_scaled`; an error names the site of the
        instruction.
        """
        try:
            return decode_scaled(bits, kind, scales, cta_group=cta_group)
        except Refusal as refusal:
            raise MachineError.of(refusal, site) from None

    # --- cp --------------------------------------------------------------------------------------

    def cp(
        self,
        taddr: int,
        source: SharedDesc | ElementAddresses,
        shape: str = "128x256b",
        multicast: str | None = None,
        decompress: str | None = None,
        cta_group: int = 1,
        *,
        site: object,
    ) -> None:
        """tcgen05.cp: copies a matrix that is given by a descriptor or by the address of every
        byte, [rows, bytes].

        decompress: source format with padded units; the copy widens every element to one byte
        """
        if decompress is not None and decompress not in CP_FORMATS:
            allowed = ", ".join(CP_FORMATS)
            raise MachineError(
                "cp-format", f"expected a source format in {allowed}, got {decompress}", site=site
            )
        bits = None if decompress is None else CP_FORMATS[decompress]
        self.pipe.check_constant(source, site)
        try:
            if isinstance(source, SharedDesc):
                source = cp_source(source, shape, self.machine.assumptions)
            copies = cp_lanes(shape, multicast)
        except Refusal as refusal:
            raise MachineError.of(refusal, site) from None
        ctas = self.agent.peers.group(cta_group, site)
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
        effect = CpEffect(
            addresses, lanes, columns, bits, 0 if bits is None else self.pipe.holder_shift(bits)
        )
        if self.machine.effects is not None:
            self.machine.effects(effect if len(ctas) == 1 else None)

        def run() -> None:
            for cta, origin in zip(ctas, sources, strict=True):
                smem, tmem = origin.smem, cta.tmem
                unwritten = self.pipe.origin("shared memory", site)
                missing = smem.missing(addresses, unwritten)
                words = effect.words(smem.data)
                if missing is not None:
                    missing = _by_word(missing, *((4, 1) if bits is None else (2 * bits, 4)))
                    words[missing.where] = POISON_WORD
                for copy in lanes:
                    tmem.words[copy, columns] = words
                    tmem.written((copy, columns), missing, site)

        granules = footprint.granules + source.base // 4
        self.pipe.issue(
            "cp", site, shape, run, [(origin.smem.shadow, granules) for origin in sources],
            [(cta.tmem.shadow, (copy, columns)) for cta in ctas for copy in lanes], ctas,
        )  # fmt: skip

    # --- shift -----------------------------------------------------------------------------------

    def shift(self, taddr: int, cta_group: int = 1, *, site: object) -> None:
        """tcgen05.shift.down: moves 8 columns one lane toward lane 0 (PTX ISA 9.7.16.9)."""
        ctas = self.agent.peers.group(cta_group, site)
        lane, column = taddr >> 16, taddr & 0xFFFF
        if lane % 32 or lane >= LANES:
            raise MachineError(
                "tensor-memory-lane", f"expected a lane in 0, 32, 64, 96, got {lane}", site=site
            )
        columns = slice(column, column + A_COLUMNS)
        for cta in ctas:
            cta.tmem.check(columns.start, columns.stop, site)
            cta.tmem.read(slice(None), columns)
        self.machine.counters.shift += 1
        one = self.machine.assumptions.shift_quarters == "one"
        where = (slice(lane, lane + 32) if one else slice(None), columns)
        source = shift_source(lane // 32 if one else None)

        if self.machine.effects is not None:
            self.machine.effects(ShiftEffect(source, columns) if len(ctas) == 1 else None)

        def run() -> None:
            for cta in ctas:
                shift_lanes(cta.tmem, source, columns)

        # What it writes is what it reads, and the check of a write is the stricter one.
        writes = [(cta.tmem.shadow, where) for cta in ctas]
        self.pipe.issue("shift", site, None, run, writes=writes, ctas=ctas)

    # --- commit ----------------------------------------------------------------------------------

    def commit(
        self, mbar: int, cta_mask: int | None = None, cta_group: int = 1, *, site: object
    ) -> None:
        """tcgen05.commit: one arrival at an mbarrier once every earlier operation of this thread is
        complete.

        With ``cta_mask``, there is one arrival at the same offset in each CTA of the mask. A commit
        implies tcgen05.fence::before_thread_sync. At the arrival, operations of other threads that
        the pipe orders before this thread's operations, as PTX ISA 9.7.16.6 promises, are also
        complete.
        """
        ctas = self.agent.peers.group(cta_group, site)
        places = self.agent.peers.multicast(mbar, cta_mask, site)
        barriers = [self.agent.mbarrier.at(at, site, proxy="async") for at in places]
        self.machine.counters.commit += 1
        thread = self.agent.issue.thread
        self.agent.issue.mark_before([thread])
        clock = self.agent.release()
        number = clock[thread.component] = thread.issued + 1  # the commit itself
        commit = Access(thread.component, number, "commit", site, "async")
        for group, last in thread.listed.before(commit).items():
            if group[0] != thread.component:
                clock[(PIPED, group)] = last
        for at, barrier in zip(places, barriers, strict=True):
            barrier.users[thread.component] = (number, site)
            owner = self.agent.peers.cta_of(at, site)
            if owner is not self.cta:
                owner.remote_accesses[thread.component] = commit

        def run() -> None:
            for barrier in barriers:
                barrier.arrive(1, clock, site)

        self.pipe.issue("commit", site, None, run, ctas=ctas)


def _by_word(missing: Undefined, nbytes: int, words: int) -> Undefined:
    """Combines undefined bytes [lanes, bytes] into words [lanes, words]; each unit of `nbytes`
    bytes makes `words` words."""
    lanes = len(missing.where)
    units = missing.where.reshape(lanes, -1, nbytes).any(axis=2)
    return Undefined(units.repeat(words, axis=1), missing.origin)


def cp_source(source: SharedDesc, shape: str, assumptions: Assumptions) -> ElementAddresses:
    """Returns the address of every byte of a matrix that tcgen05.cp reads."""
    rows, width = CP_SHAPES.get(shape, (1, 1))
    step = 32 if shape == "4x256b" and assumptions.cp4x256b_rows == "every-32" else 1
    base, table = element_table(
        decode_matrix(source.bits),
        step * rows,
        width,
        8,
        "K",
        from_start=assumptions.cp_row_phase == "start",
    )
    return ElementAddresses(table if step == 1 else table[::step], base)
