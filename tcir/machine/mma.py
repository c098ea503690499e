"""tcgen05.mma of an agent (PTX ISA 9.7.16.10)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.descriptor import decode_matrix, element_table
from tcir.machine.errors import MachineError, NotModelled
from tcir.machine.formats_decode import ELEMENT_BITS
from tcir.machine.instruction_descriptor import decode_instruction, legal_m, legal_n
from tcir.machine.memory import ALL_DEFINED, LANES, UNSPECIFIED_HALF
from tcir.machine.numerics import fast_mma, fused_mma, integer_mma
from tcir.machine.operands import ElementAddresses, SharedDesc, TmemAddr
from tcir.machine.refusal import Refusal
from tcir.machine.tensor_core import TensorPipe, shift_lanes
from tcir.machine.time_table import mma_cycles, operand_bytes
from tcir.machine.tmem import A_COLUMNS, a_lanes, d_layout, shift_source
from tcir.machine.tmem_access import one_group

Words = NDArray[np.uint32]


class Mma(TensorPipe):
    """Dense mma of one CTA, without block scaling."""

    def mma(
        self,
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
        one_group(cta_group, site)
        at: ElementAddresses | TmemAddr
        try:
            i = decode_instruction(idesc, kind, cta_group=cta_group)
            if i.sparse:
                raise NotModelled("sparse tcgen05.mma", site=site)
            b = _by_descriptor(b_desc, i.n, i.k, i.b_type, i.b_major)
            at = a if isinstance(a, TmemAddr) else (
                _by_descriptor(a.bits, i.m, i.k, i.a_type, i.a_major)
            )  # fmt: skip
        except Refusal as refusal:
            raise MachineError(refusal.code, str(refusal), site=site) from None
        self.mma_elements(
            d_taddr, at, b, i.m, i.n, i.a_type, i.b_type, i.d_type,
            enable_input_d=enable_input_d, disable_lanes=disable_lanes,
            scale_input_d=scale_input_d, ashift=ashift, collector=collector,
            negate_a=i.negate_a, negate_b=i.negate_b, saturate=i.saturate, kind=kind, site=site,
        )  # fmt: skip

    def mma_elements(
        self,
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
        """One K step (32 bytes a row): D = A B^T (+ D), with the address of every shared element.

        With ``ashift`` the 8 columns of A move one lane toward lane 0 afterwards.
        """
        if m not in legal_m(kind, 1, False) or n not in legal_n(kind, 1, False):
            raise MachineError(
                "mma-shape", f"expected a legal M x N of kind::{kind}, got {m} x {n}", site=site
            )
        if ELEMENT_BITS[a_type] < 8 or ELEMENT_BITS[b_type] < 8:
            raise NotModelled("4- and 6-bit operands of tcgen05.mma", site=site)
        in_tmem = isinstance(a, TmemAddr)
        if ashift:
            _check_ashift(in_tmem, m, collector, site)
        smem, tmem = self.cta.smem, self.cta.tmem
        path = d_layout(m, n)
        d_lane, d_column = d_taddr >> 16, d_taddr & 0xFFFF
        if d_lane and not (path.half_lanes and d_lane == 16):
            allowed = "0 or 16" if path.half_lanes else "0"
            raise MachineError(
                "tensor-memory-lane", f"expected D at lane {allowed}, got {d_lane}", site=site
            )
        columns = slice(d_column, d_column + n)
        tmem.check(columns.start, columns.stop, site)
        every: Any = slice(None) if m == LANES else path.lane[:, 0] + d_lane
        on = _enabled(disable_lanes, path.lane[:, 0] + d_lane, site)
        lanes: Any = every if on is None else (path.lane[:, 0] + d_lane)[on]
        b_bytes = _bytes(b_type)
        b_at = self._shared_operand(b, b_bytes, site)
        reads: list[Any] = [(smem.shadow, b_at[1])]
        writes: list[Any] = [(tmem.shadow, (lanes, columns))]
        a_bytes = _bytes(a_type)
        if isinstance(a, TmemAddr):
            a_columns, rows = self._tmem_operand(a.address, m, d_lane, site)
            # With .ashift all 128 lanes are written: M is 128.
            (writes if ashift else reads).append((tmem.shadow, (rows, a_columns)))
        else:
            a_at = self._shared_operand(a, a_bytes, site)
            reads.append((smem.shadow, a_at[1]))
        counters = self.machine.counters
        counters.mma += 1
        counters.tensor_cycles += mma_cycles(m, n, a_in_tmem=in_tmem)
        counters.shared_to_tensor += operand_bytes(m, n, a_in_tmem=in_tmem)

        def run() -> None:
            if in_tmem:
                self.must_be_defined(tmem.defined[rows, a_columns], "A in tensor memory", site)
                av = np.ascontiguousarray(tmem.words[rows, a_columns]).view(f"u{a_bytes}")
            else:
                av = self._gather(a_at[0], a_bytes, site)
            bv = self._gather(b_at[0], b_bytes, site)
            d = None
            if enable_input_d:
                self.must_be_defined(tmem.defined[lanes, columns], "accumulator", site)
                d = tmem.words[every, columns]
            result = _multiply(
                self.machine.numerics, av, bv, d, a_type, b_type, d_type, negate_a, negate_b,
                scale_input_d or 0, saturate,
            )  # fmt: skip
            if d_type == "f16":
                result |= UNSPECIFIED_HALF
            tmem.words[lanes, columns] = result if on is None else result[on]
            tmem.defined[lanes, columns] = True
            if ashift:
                shift_lanes(tmem, shift_source(), a_columns)

        self.issue("mma", site, (d_taddr, m, n), run, reads, writes)

    def _tmem_operand(self, address: int, m: int, d_lane: int, site: Any) -> tuple[slice, Any]:
        """(columns, lanes) of A in tensor memory."""
        lane, column = address >> 16, address & 0xFFFF
        if lane != d_lane:
            raise MachineError(
                "tensor-memory-lane", f"expected A at D's lane {d_lane}, got {lane}", site=site
            )
        self.cta.tmem.check(column, column + A_COLUMNS, site)
        rows = slice(None) if m == LANES else a_lanes(m)[1][0] + lane
        return slice(column, column + A_COLUMNS), rows

    def _shared_operand(self, operand: ElementAddresses, size: int, site: Any) -> tuple[Any, Any]:
        """(index of every element in memory seen as elements of ``size`` bytes, granules)."""
        footprint, base = operand.footprint(size), operand.base
        if not footprint.aligned or base % size:
            raise MachineError(
                "misaligned", f"expected elements at multiples of {size} bytes", site=site
            )
        self.cta.smem.check(base + footprint.low, base + footprint.high, site)
        return footprint.elements + base // size, footprint.granules + base // 4

    def _gather(self, where: NDArray[np.int64], size: int, site: Any) -> NDArray[Any]:
        smem = self.cta.smem
        defined = smem.defined_view(size)[where] == ALL_DEFINED[size]
        self.must_be_defined(defined, "shared memory", site)
        codes: NDArray[Any] = smem.view(np.dtype(f"u{size}"))[where]
        return codes


def _bytes(element: str) -> int:
    """Bytes of one element in memory: 4- and 6-bit types of f8f6f4 lie in bytes."""
    return max(8, ELEMENT_BITS[element]) // 8


def _by_descriptor(bits: int, rows: int, k: int, element: str, major: str) -> ElementAddresses:
    base, table = element_table(decode_matrix(bits), rows, k, 8 * _bytes(element), major)
    return ElementAddresses(table, base)


def _check_ashift(in_tmem: bool, m: int, collector: str | None, site: Any) -> None:
    if not in_tmem:
        raise MachineError(
            "ashift-operand",
            "expected A in tensor memory with .ashift, got a descriptor",
            site=site,
        )
    if m != LANES:
        raise MachineError("ashift-rows", f"expected M = 128 with .ashift, got {m}", site=site)
    if collector in ("fill", "use"):
        raise MachineError("ashift-collector", f"expected no .{collector} with .ashift", site=site)


def _enabled(
    masks: tuple[int, ...] | None, lanes: NDArray[np.int64], site: Any
) -> NDArray[np.bool_] | None:
    """Which rows of D are written (None: all). Bit i of mask v set: lane 32 v + i is not."""
    if masks is None:
        return None
    if len(masks) != 4:
        raise MachineError("lane-mask", f"expected 4 mask words, got {len(masks)}", site=site)
    if not any(masks):
        return None
    off = np.array([masks[lane // 32] >> (lane % 32) & 1 for lane in range(LANES)], bool)
    return ~off[lanes]


def _multiply(
    numerics: str, a: Any, b: Any, d: Any, a_type: str, b_type: str, d_type: str,
    negate_a: bool, negate_b: bool, scale: int, saturate: bool,
) -> Words:  # fmt: skip
    if d_type == "s32":
        return integer_mma(a, b, d, a_type=a_type, b_type=b_type, saturate=saturate)
    run = fused_mma if numerics == "exact" else fast_mma
    return run(
        a, b, d, a_type=a_type, b_type=b_type, d_type=d_type, negate_a=negate_a,
        negate_b=negate_b, scale_input_d=scale,
    )  # fmt: skip
