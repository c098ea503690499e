"""One tcgen05.mma: what it reads and writes, and when (PTX ISA 9.7.16.10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.assumptions import Assumptions
from tcir.machine.errors import MachineError
from tcir.machine.memory.memories import LANES, POISON_WORD, UNSPECIFIED_HALF
from tcir.machine.tensor_core.d_lanes import Words, beneath, beside, enabled_lanes
from tcir.machine.tensor_core.mma_operands import Codes, MmaOperands
from tcir.machine.tensor_core.narrow import storage
from tcir.machine.tensor_core.operands import ElementAddresses, TmemAddr
from tcir.machine.tensor_core.pipe import Missing, Places, shift_lanes
from tcir.machine.tensor_core.time_table import K_BYTES, mma_cycles, operand_bytes
from tcir.machine.tensor_core.zero_columns import ZeroColumns
from tcir.machine.tmem.places import d_layout, shift_source

EVERY_LANE = np.arange(LANES)


def poison(d_type: str) -> np.uint32:
    """What D gets of operands that nothing wrote: a NaN where D has one."""
    return np.uint32(0x7FFF if d_type == "f16" else POISON_WORD)


class MmaStep(MmaOperands):
    """mma with the arithmetic as a parameter."""

    def mma_step(
        self,
        d_taddr: int,
        a: ElementAddresses | TmemAddr,
        b: ElementAddresses,
        m: int,
        n: int,
        kind: str,
        a_type: str,
        b_type: str,
        d_type: str,
        multiply: Callable[[Codes, Codes, Words | None, int], Words],
        *,
        enable_input_d: bool,
        disable_lanes: tuple[int, ...] | None = None,
        ashift: bool = False,
        more_reads: Places = (),
        cta_group: int = 1,
        ws: bool = False,
        sparse: bool = False,
        zeros: ZeroColumns | None = None,
        site: Any,
    ) -> None:
        """Reads the codes of A [m, K], B [n, K] and D, and writes ``multiply(A, B, D, cta)``.

        In a pair each CTA does that with its half of A's rows and all of B, of which each holds
        half; `cta` is 0 or 1. `more_reads`: what else the operation reads, for the order of
        operations. What comes of operands that nothing wrote is poison.
        """
        ctas = self.group(cta_group, site)
        path = d_layout(m, n, cta_group=cta_group, ws=ws, sparse=sparse)
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
        masks = enabled_lanes(disable_lanes, own, cta_group, site)
        in_tmem = isinstance(a, TmemAddr)
        if zeros is not None:
            b = zeros.of(b)
        shifted, shifted_lanes = ashift_source(
            self.machine.assumptions, m, cta_group, own if path.half_lanes else None
        )
        reads: list[Any] = [*more_reads]
        writes: list[Any] = []
        sources = []
        for cta, on in zip(ctas, masks, strict=True):
            cta.tmem.check(columns.start, columns.stop, site)
            lanes: Any = every if on is None else own[on]
            b_from = self.shared_operand(b, storage(kind, b_type), b_type, cta, site)
            form = storage(kind, a_type)
            a_from = (
                self.tmem_operand(a.address, rows, parts, d_lane, form, a_type, cta, site)
                if isinstance(a, TmemAddr)
                else self.shared_operand(a, form, a_type, cta, site)
            )
            reads.append((cta.smem.shadow, b_from.where))
            writes.append((cta.tmem.shadow, (lanes, columns)))
            if ashift:
                writes.append((a_from.shadow, (shifted_lanes, a_from.where[1])))
            else:
                reads.append((a_from.shadow, a_from.where))
            sources.append((cta.tmem, a_from, b_from, lanes, on))
        counters = self.machine.counters
        counters.mma += 1
        if ws or sparse:
            counters.mma_untimed += 1
        else:
            cycles = mma_cycles(m, n, a_in_tmem=in_tmem, cta_group=cta_group)
            counters.tensor_cycles += cycles * cta_group
        loaded = operand_bytes(m, n, a_in_tmem=in_tmem, cta_group=cta_group)
        counters.shared_to_tensor += loaded * cta_group + (K_BYTES * n if sparse else 0)

        def run() -> None:
            bv, missing_columns = _beneath_each_other([source[2].read() for source in sources])
            if zeros is not None:
                bv, missing_columns = zeros.spread(bv, missing_columns)
            for number, (tmem, a_from, _, lanes, on) in enumerate(sources):
                av, missing_rows = a_from.read()
                d = None
                missing = None
                if enable_input_d:
                    defined = tmem.defined[lanes, columns]
                    missing = self.must_be_defined(defined, "accumulator", site)
                    d = beside(tmem.words[every, columns], parts)
                product = multiply(av, bv, d, number)
                if missing_rows is not None:
                    product[missing_rows] = poison(d_type)
                if missing_columns is not None:
                    product[:, missing_columns] = poison(d_type)
                result = beneath(product, parts)
                if missing is not None:
                    result = np.where(tmem.defined[every, columns], result, poison(d_type))
                if d_type == "f16":
                    result |= UNSPECIFIED_HALF
                tmem.words[lanes, columns] = result if on is None else result[on]
                tmem.defined[lanes, columns] = True
                if ashift:
                    shift_lanes(tmem, shifted, a_from.where[1])

        self.issue("mma", site, (d_taddr, m, n), run, reads, writes, ctas)


def _beneath_each_other(halves: list[tuple[Codes, Missing]]) -> tuple[Codes, Missing]:
    """B of a pair: the even CTA's rows, then the odd one's."""
    if len(halves) == 1:
        return halves[0]
    missing: Missing = None
    if any(m is not None for _, m in halves):
        missing = np.concatenate([np.zeros(len(b), bool) if m is None else m for b, m in halves])
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
