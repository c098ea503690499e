"""One tcgen05.mma: what it reads and writes, and when (PTX ISA 9.7.16.10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.assumptions import Assumptions
from tcir.machine.errors import MachineError
from tcir.machine.memory.tensor_memory import LANES, POISON_WORD, UNSPECIFIED_HALF, TensorMemory
from tcir.machine.memory.undefined import Origin, Undefined
from tcir.machine.order.ordering import Product
from tcir.machine.refusal import Refusal
from tcir.machine.tensor_core.collector import Collectors, matrix
from tcir.machine.tensor_core.d_lanes import Words, enabled_lanes, join_columns, stack_columns
from tcir.machine.tensor_core.instruction_descriptor import InstructionDescriptor
from tcir.machine.tensor_core.mma_operands import Codes, Descriptor, MmaOperands, addresses
from tcir.machine.tensor_core.operands import ElementAddresses, SharedDesc, TmemAddr
from tcir.machine.tensor_core.pipe import Missing, Pipe, Places
from tcir.machine.tensor_core.time_table import K_BYTES, mma_cycles, operand_bytes
from tcir.machine.tensor_core.zero_columns import ZeroColumns, decode_zero_columns
from tcir.machine.tmem.places import A_COLUMNS, d_layout, shift_source

EVERY_LANE = np.arange(LANES)


def poison(d_type: str) -> np.uint32:
    """What D gets of operands that nothing wrote: a NaN where D has one."""
    return np.uint32(0x7FFF if d_type == "f16" else POISON_WORD)


@dataclass(frozen=True)
class MmaOptions:
    """Operands and qualifiers of one issue of tcgen05.mma, besides its matrices.

    enable_input_d: whether D is added. disable_lanes: the lane mask. metadata: address in tensor
    memory of a sparse A's selectors. zero_columns: the descriptor of `zero_columns`, with .ws.
    ashift: the 8 columns of A move one lane toward lane 0 afterwards. collector, collector_buffer:
    `.collector::BUFFER::OP`, see `collector`.
    """

    enable_input_d: bool
    disable_lanes: tuple[int, ...] | None = None
    scale_input_d: int | None = None
    ashift: bool = False
    collector: str = "discard"
    collector_buffer: str = "a"
    metadata: int | None = None
    zero_columns: int | None = None


class LostWords:
    """Which words of D [rows, columns] depend on anything undefined."""

    def __init__(self, rows: int, columns: int) -> None:
        self.where = np.zeros((rows, columns), bool)
        self.origin: Origin | None = None

    def rows(self, missing: Missing) -> None:
        """Rows of an operand, and of D."""
        if missing is not None:
            self.where[missing.where], self.origin = True, missing.origin

    def columns(self, missing: Missing) -> None:
        """Rows of B, columns of D."""
        if missing is not None:
            self.where[:, missing.where], self.origin = True, missing.origin

    def words(self, missing: Undefined | None) -> None:
        """Words of the accumulator."""
        if missing is not None:
            self.where |= missing.where
            self.origin = missing.origin


class MmaStep:
    """mma with the arithmetic as a parameter."""

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
        multiply: Callable[[Codes, Codes, Words | None, int, LostWords], Words],
        more_reads: Places = (),
        *,
        site: object,
    ) -> None:
        """Reads the codes of A [m, K], B [n, K] and D, and writes ``multiply(A, B, D, cta, lost)``.

        In a pair each CTA does that with its half of A's rows and all of B, of which each holds
        half; `cta` is 0 or 1. `lost` takes what is undefined of further operands. `more_reads`:
        what else the operation reads, for the order of operations.
        """
        m, n, cta_group, d_type, ashift = i.m, i.n, i.cta_group, i.d_type, options.ashift
        ctas = self.agent.group(cta_group, site)
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
        every: Any = own if path.half_lanes else slice(None)
        masks = enabled_lanes(options.disable_lanes, own, cta_group, site)
        in_tmem = isinstance(a, TmemAddr)
        a_column = a.address & 0xFFFF if isinstance(a, TmemAddr) else 0
        moved = slice(a_column, a_column + A_COLUMNS)
        shifted, shifted_lanes = ashift_source(
            self.machine.assumptions, m, cta_group, own if path.half_lanes else None
        )
        reads: list[Any] = [*more_reads]
        writes: list[Any] = []
        sources = []
        for cta, on in zip(ctas, masks, strict=True):
            cta.tmem.check(columns.start, columns.stop, site)
            lanes: Any = every if on is None else own[on]
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
            sources.append((cta.tmem, a_from, b_from, lanes, on))
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

        def run() -> None:
            bv, missing_columns = _stacked([source[2].read() for source in sources])
            if zeros is not None:
                bv, missing_columns = zeros.spread(bv, missing_columns)
            for number, (tmem, a_from, _, lanes, on) in enumerate(sources):
                av, missing_rows = a_from.read()
                d, lost = None, LostWords(rows, n)
                if options.enable_input_d:
                    before = tmem.missing((every, columns), self.pipe.origin("accumulator", site))
                    if before is not None:
                        joined = join_columns(before.where, parts)
                        lost.words(Undefined(joined, before.origin))
                    d = join_columns(tmem.words[every, columns], parts)
                product = multiply(av, bv, d, number, lost)
                lost.rows(missing_rows)
                lost.columns(missing_columns)
                undefined = None
                if lost.origin is not None:
                    product[lost.where] = poison(d_type)
                    undefined = Undefined(stack_columns(lost.where, parts), lost.origin)
                result = stack_columns(product, parts)
                if d_type == "f16":
                    result |= UNSPECIFIED_HALF
                if on is not None:
                    result, undefined = result[on], undefined and undefined.of(on)
                tmem.words[lanes, columns] = result
                tmem.written((lanes, columns), undefined, site)
                if ashift:
                    shift_lanes(tmem, shifted, moved)

        target = Product((d_taddr, m, n), ashift)
        collected = None
        if self.machine.checking and options.collector != "discard":
            collected = matrix(b if i.ws else a, i, [s[2] if i.ws else s[1] for s in sources])
        access = self.pipe.issue("mma", site, target, run, reads, writes, ctas)
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
        """A and B of each CTA by the address of every element, and which columns of B are zeros."""
        zeros = None
        for operand in (a, b):
            self.pipe.check_constant(operand, site)
        try:
            if options.zero_columns is not None and isinstance(i, InstructionDescriptor):
                spans = self.machine.assumptions.zero_column_spans
                zeros = decode_zero_columns(options.zero_columns, i.m, i.n, i.max_shift, spans)
            columns = i.n // i.cta_group + (zeros.shift if zeros else 0)
            b = addresses(b, columns, i.k, i.kind, i.b_type, i.b_major)
            if not isinstance(a, TmemAddr):
                stored = i.k // 2 if i.sparse else i.k
                a = addresses(a, i.m // i.cta_group, stored, i.kind, i.a_type, i.a_major)
        except Refusal as refusal:
            raise MachineError.of(refusal, site) from None
        return a, b if zeros is None else zeros.of(b), zeros


def _stacked(halves: list[tuple[Codes, Missing]]) -> tuple[Codes, Missing]:
    """B of a pair: the even CTA's rows, then the odd one's."""
    if len(halves) == 1:
        return halves[0]
    missing: Missing = None
    if origins := [m.origin for _, m in halves if m is not None]:
        rows = [np.zeros(len(b), bool) if m is None else m.where for b, m in halves]
        missing = Undefined(np.concatenate(rows), origins[0])
    return np.concatenate([b for b, _ in halves]), missing


def ashift_source(
    assumptions: Assumptions, m: int, cta_group: int, rows: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], Any]:
    """What each lane holds after .ashift, as `shift_source`, and the lanes that it writes.

    `rows`: the lanes of A's rows, where those are half of all (a sparse A, M = 128 of a pair).
    """
    source = shift_source()
    if rows is not None and assumptions.ashift_half_lanes == "rows":
        moves = np.isin(EVERY_LANE, rows) & np.isin(EVERY_LANE + 1, rows)
        return np.where(moves, source, EVERY_LANE), rows
    if rows is None and (m, cta_group) == (LANES, 2) and assumptions.ashift_copies == "first":
        return np.where(EVERY_LANE < LANES // 2, source, EVERY_LANE), slice(None)
    return source, slice(None)


def shift_lanes(tmem: TensorMemory, source: NDArray[np.int64], columns: slice) -> None:
    """Lane l of the columns gets what lane ``source[l]`` held."""
    tmem.words[:, columns] = tmem.words[source, columns]
    tmem.moved((slice(None), columns), (source, columns))
