"""Issue of one tcgen05.mma: its reads and writes, and its time (PTX ISA 9.7.16.10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.assumptions import Assumptions
from tcir.machine.errors import MachineError
from tcir.machine.memory.tensor_memory import LANES, Lanes
from tcir.machine.order.ordering import PipeProduct
from tcir.machine.refusal import Refusal
from tcir.machine.tensor_core.collector import Collectors, matrix
from tcir.machine.tensor_core.d_lanes import enabled_lanes
from tcir.machine.tensor_core.instruction_descriptor import InstructionDescriptor
from tcir.machine.tensor_core.issued_mma import AccumulatorPlace, IssuedMma, MmaPart
from tcir.machine.tensor_core.mma_effect import Accumulator, MmaArithmetic, MmaEffect
from tcir.machine.tensor_core.mma_operands import Descriptor, MmaOperands, addresses
from tcir.machine.tensor_core.operands import ElementAddresses, SharedDesc, TmemAddr
from tcir.machine.tensor_core.pipe import Pipe
from tcir.machine.tensor_core.time_table import K_BYTES, mma_cycles, operand_bytes
from tcir.machine.tensor_core.zero_columns import ZeroColumns, decode_zero_columns
from tcir.machine.tmem.places import A_COLUMNS, d_layout, shift_source

EVERY_LANE = np.arange(LANES)


@dataclass(frozen=True)
class MmaOptions:
    """Operands and qualifiers of one tcgen05.mma, except its matrices.

    enable_input_d: whether D is added
    disable_lanes: mask of the lanes that are not written
    metadata: address, in tensor memory, of the selectors of a sparse A
    zero_columns: the zero-column mask descriptor (see `zero_columns`), with .ws
    ashift: whether the 8 columns of A move one lane toward lane 0 afterwards
    collector, collector_buffer: `.collector::BUFFER::OP`, see `collector`
    """

    enable_input_d: bool
    disable_lanes: tuple[int, ...] | None = None
    scale_input_d: int | None = None
    ashift: bool = False
    collector: str = "discard"
    collector_buffer: str = "a"
    metadata: int | None = None
    zero_columns: int | None = None


class MmaStep:
    """Issues an mma whose arithmetic is a parameter."""

    def __init__(self, pipe: Pipe, operands: MmaOperands) -> None:
        self.pipe, self.operands, self.collectors = pipe, operands, Collectors(pipe)
        self.agent, self.machine = pipe.agent, pipe.machine

    def issue(
        self,
        d_taddr: int,
        a: SharedDesc | TmemAddr | ElementAddresses,
        b: SharedDesc | ElementAddresses,
        i: Descriptor,
        options: MmaOptions,
        arithmetic: MmaArithmetic,
        *,
        site: object,
    ) -> None:
        """Issues an mma: it reads the codes of A [m, K], B [n, K] and D, and writes the result of
        `arithmetic` to D.

        In a pair, each CTA computes with its own half of A's rows and with all of B; half of B is
        in each CTA.
        """
        m, n, cta_group, d_type, ashift = i.m, i.n, i.cta_group, i.d_type, options.ashift
        ctas = self.agent.peers.group(cta_group, site)
        a, b, zeros = self._matrices(a, b, i, options, site)
        path = d_layout(m, n, cta_group=cta_group, ws=i.ws, sparse=i.sparse)
        d_lane, d_column = d_taddr >> 16, d_taddr & 0xFFFF
        if d_lane and not (path.half_lanes and d_lane == 16):
            allowed = "0 or 16" if path.half_lanes else "0"
            raise MachineError(
                "tensor-memory-lane", f"expected D at lane {allowed}, got {d_lane}", site=site
            )
        rows = m // cta_group
        parts = 1 if path.half_lanes else LANES // rows
        columns = slice(d_column, d_column + n // parts)
        own = path.lane[:rows, 0] + d_lane if path.half_lanes else EVERY_LANE
        every: Lanes = own if path.half_lanes else slice(None)
        masks = enabled_lanes(options.disable_lanes, own, cta_group, site)
        in_tmem = isinstance(a, TmemAddr)
        a_column = a.address & 0xFFFF if isinstance(a, TmemAddr) else 0
        moved = slice(a_column, a_column + A_COLUMNS)
        shifted, shifted_lanes = ashift_source(
            self.machine.assumptions, m, cta_group, own if path.half_lanes else None
        )
        reads: list[Any] = [*arithmetic.reads]
        writes: list[Any] = []
        sources, found = [], []
        for cta, on in zip(ctas, masks, strict=True):
            cta.tmem.check(columns.start, columns.stop, site)
            lanes: Lanes = every if on is None else own[on]
            b_from = self.operands.shared(b, i.kind, i.b_type, cta, site)
            a_from = (
                self.operands.tmem(a.address, i, parts, d_lane, cta, site)
                if isinstance(a, TmemAddr)
                else self.operands.shared(a, i.kind, i.a_type, cta, site)
            )
            reads.append((cta.smem.shadow, b_from.where))
            writes.append((cta.tmem.shadow, (lanes, columns)))
            if ashift:
                writes.append((a_from.shadow, (shifted_lanes, moved)))
            else:
                reads.append((a_from.shadow, a_from.where))
            sources.append((a_from, b_from))
            found.append(MmaPart(cta.tmem, a_from.elements, b_from.elements, lanes, on))
        counters = self.machine.counters
        counters.mma += 1
        counters.products += m * n * i.k
        if i.ws or i.sparse:
            counters.mma_untimed += 1
        else:
            cycles = mma_cycles(m, n, a_in_tmem=in_tmem, cta_group=cta_group)
            counters.tensor_cycles += cycles * cta_group
        loaded = operand_bytes(m, n, a_in_tmem=in_tmem, cta_group=cta_group)
        counters.shared_to_tensor += loaded * cta_group + (K_BYTES * n if i.sparse else 0)

        if self.agent.events is not None:
            self.agent.events.note(
                m=m,
                n=n,
                k=i.k,
                kind=i.kind,
                cta_group=cta_group,
                a_in="tmem" if in_tmem else "smem",
            )
        d = AccumulatorPlace(rows, n, parts, every, columns, d_type, zeros)
        issued = IssuedMma(self.pipe, d, found, sources, arithmetic.checked, site)
        issued.add_d = options.enable_input_d
        issued.shift = (shifted, moved) if ashift else None
        if self.machine.effects is not None:
            at = Accumulator(every, found[0].lanes, columns, parts, found[0].on, d_type)
            known = MmaEffect(*sources[0], at, arithmetic, issued.add_d, issued.shift)
            self.machine.effects(known.of_one_cta(cta_group, zeros is not None))
        target = PipeProduct((d_taddr, m, n), ashift)
        collected = None
        if self.machine.checking and options.collector != "discard":
            collected = matrix(b if i.ws else a, i, [b if i.ws else a for a, b in sources])
        access = self.pipe.issue("mma", site, target, issued.run, reads, writes, ctas, issued)
        self.collectors.note(
            (options.collector_buffer, options.collector), collected, access, ctas[0]
        )

    def _matrices(
        self,
        a: SharedDesc | TmemAddr | ElementAddresses,
        b: SharedDesc | ElementAddresses,
        i: Descriptor,
        options: MmaOptions,
        site: object,
    ) -> tuple[TmemAddr | ElementAddresses, ElementAddresses, ZeroColumns | None]:
        """Returns A and B of each CTA with the address of every element, and the zero columns of
        B."""
        zeros, assumptions = None, self.machine.assumptions
        for operand in (a, b):
            self.pipe.check_constant(operand, site)
        try:
            if options.zero_columns is not None and isinstance(i, InstructionDescriptor):
                spans = assumptions.zero_column_spans
                zeros = decode_zero_columns(options.zero_columns, i.m, i.n, i.max_shift, spans)
            columns = i.n // i.cta_group + (zeros.shift if zeros else 0)
            b = addresses(b, (columns, i.k), i.kind, i.b_type, i.b_major, assumptions)
            if not isinstance(a, TmemAddr):
                stored = i.k // 2 if i.sparse else i.k
                shape = (i.m // i.cta_group, stored)
                a = addresses(a, shape, i.kind, i.a_type, i.a_major, assumptions)
        except Refusal as refusal:
            raise MachineError.of(refusal, site) from None
        return a, b if zeros is None else zeros.of(b), zeros


def ashift_source(
    assumptions: Assumptions, m: int, cta_group: int, rows: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], Any]:
    """Returns, for .ashift, the lane from which each lane receives its words (as `shift_source`
    does), and the lanes that are written.

    `rows`: the lanes of A's rows, if they are half of all lanes (a sparse A, M = 128 of a pair).
    """
    source = shift_source()
    if rows is not None and assumptions.ashift_half_lanes == "rows":
        moves = np.isin(EVERY_LANE, rows) & np.isin(EVERY_LANE + 1, rows)
        return np.where(moves, source, EVERY_LANE), rows
    if rows is None and (m, cta_group) == (LANES, 2) and assumptions.ashift_copies == "first":
        return np.where(EVERY_LANE < LANES // 2, source, EVERY_LANE), slice(None)
    return source, slice(None)
