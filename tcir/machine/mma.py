"""tcgen05.mma of an agent (PTX ISA 9.7.16.10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.assumptions import Assumptions
from tcir.machine.descriptor import decode_matrix, element_table
from tcir.machine.errors import MachineError, NotModelled
from tcir.machine.formats_decode import ELEMENT_BITS
from tcir.machine.instruction_descriptor import decode_instruction, legal_m, legal_n
from tcir.machine.memory import ALL_DEFINED, LANES, UNSPECIFIED_HALF
from tcir.machine.narrow import from_holders, storage, unpack_pairs, unpack_stream
from tcir.machine.numerics import FusedParams, fast_mma, fused_mma, integer_mma, scaled_d
from tcir.machine.operands import ElementAddresses, SharedDesc, TmemAddr
from tcir.machine.refusal import Refusal
from tcir.machine.shadow import Shadow
from tcir.machine.tensor_core import Places, TensorPipe, shift_lanes
from tcir.machine.time_table import mma_cycles, operand_bytes
from tcir.machine.tmem import A_COLUMNS, a_lanes, d_layout, shift_source
from tcir.machine.tmem_access import one_group

Words = NDArray[np.uint32]
Codes = NDArray[Any]


@dataclass(frozen=True)
class Source:
    """An operand as the tensor core takes it: what it touches, and its codes [rows, K]."""

    shadow: Shadow | None
    where: Any
    read: Callable[[], Codes]


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
            if isinstance(a, TmemAddr) and i.a_major != "K":
                raise MachineError(
                    "bad-descriptor",
                    "expected A major (bit 15) 0 (K-major) for A in tensor memory, got 1: a row of "
                    "A is a lane there, and CUTLASS (mma_sm100_umma.hpp) refuses it, too",
                    site=site,
                )
            b = by_descriptor(b_desc, i.n, i.k, kind, i.b_type, i.b_major)
            at = a if isinstance(a, TmemAddr) else (
                by_descriptor(a.bits, i.m, i.k, kind, i.a_type, i.a_major)
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
        if ashift:
            _check_ashift(isinstance(a, TmemAddr), m, collector, site)

        def multiply(av: Codes, bv: Codes, d: Words | None) -> Words:
            if d_type == "s32":
                return integer_mma(av, bv, d, a_type=a_type, b_type=b_type, saturate=saturate)
            scale = scale_input_d or 0
            if d is not None and scale and self.machine.assumptions.scale_input_d == "rounded":
                d, scale = scaled_d(d, d_type, scale), 0
            options: Any = {
                "a_type": a_type, "b_type": b_type, "d_type": d_type,
                "negate_a": negate_a, "negate_b": negate_b, "scale_input_d": scale,
            }  # fmt: skip
            if self.machine.numerics == "fast":
                return fast_mma(av, bv, d, **options)
            params = fused_params(self.machine.assumptions, d_type)
            return fused_mma(av, bv, d, **options, params=params)

        self.mma_step(
            d_taddr, a, b, m, n, kind, a_type, b_type, d_type, multiply,
            enable_input_d=enable_input_d, disable_lanes=disable_lanes, ashift=ashift, site=site,
        )  # fmt: skip

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
        multiply: Callable[[Codes, Codes, Words | None], Words],
        *,
        enable_input_d: bool,
        disable_lanes: tuple[int, ...] | None = None,
        ashift: bool = False,
        more_reads: Places = (),
        site: Any,
    ) -> None:
        """Reads the codes of A [m, K], B [n, K] and D, and writes ``multiply(A, B, D)``.

        `more_reads`: what else the operation reads, for the order of operations.
        """
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
        b_from = self._shared_operand(b, storage(kind, b_type), b_type, site)
        if isinstance(a, TmemAddr):
            a_from = self._tmem_operand(a.address, m, d_lane, storage(kind, a_type), a_type, site)
        else:
            a_from = self._shared_operand(a, storage(kind, a_type), a_type, site)
        reads: list[Any] = [(smem.shadow, b_from.where), *more_reads]
        writes: list[Any] = [(tmem.shadow, (lanes, columns))]
        # With .ashift all 128 lanes are written: M is 128.
        (writes if ashift else reads).append((a_from.shadow, a_from.where))
        in_tmem = isinstance(a, TmemAddr)
        counters = self.machine.counters
        counters.mma += 1
        counters.tensor_cycles += mma_cycles(m, n, a_in_tmem=in_tmem)
        counters.shared_to_tensor += operand_bytes(m, n, a_in_tmem=in_tmem)

        def run() -> None:
            av, bv = a_from.read(), b_from.read()
            d = None
            if enable_input_d:
                self.must_be_defined(tmem.defined[lanes, columns], "accumulator", site)
                d = tmem.words[every, columns]
            result = multiply(av, bv, d)
            if d_type == "f16":
                result |= UNSPECIFIED_HALF
            tmem.words[lanes, columns] = result if on is None else result[on]
            tmem.defined[lanes, columns] = True
            if ashift:
                shift_lanes(tmem, shift_source(), a_from.where[1])

        self.issue("mma", site, (d_taddr, m, n), run, reads, writes)

    def _tmem_operand(
        self, address: int, m: int, d_lane: int, form: str, element: str, site: Any
    ) -> Source:
        """A in tensor memory: 8 columns of the lanes of D."""
        lane, column = address >> 16, address & 0xFFFF
        if lane != d_lane:
            raise MachineError(
                "tensor-memory-lane", f"expected A at D's lane {d_lane}, got {lane}", site=site
            )
        tmem = self.cta.tmem
        tmem.check(column, column + A_COLUMNS, site)
        rows: Any = slice(None) if m == LANES else a_lanes(m)[1][0] + lane
        where = (rows, slice(column, column + A_COLUMNS))

        def read() -> Codes:
            self.must_be_defined(tmem.defined[where], "A in tensor memory", site)
            codes: Codes = np.ascontiguousarray(tmem.words[where]).view(f"u{_bytes(element)}")
            if form == "padded":
                bits = ELEMENT_BITS[element]
                return from_holders(codes, bits, self.holder_shift(bits))
            return unpack_pairs(codes) if form == "pairs" else codes

        return Source(tmem.shadow, where, read)

    def _shared_operand(
        self, operand: ElementAddresses, form: str, element: str, site: Any
    ) -> Source:
        """An operand in shared memory. Padding is not read."""
        bits, size = ELEMENT_BITS[element], _bytes(element)
        if form == "padded":
            operand = operand.data_only(bits)
        footprint, base = operand.footprint(size), operand.base
        if not footprint.aligned or base % size:
            raise MachineError(
                "misaligned", f"expected elements at multiples of {size} bytes", site=site
            )
        smem = self.cta.smem
        smem.check(base + footprint.low, base + footprint.high, site)
        where = footprint.elements + base // size

        def read() -> Codes:
            defined = smem.defined_view(size)[where] == ALL_DEFINED[size]
            self.must_be_defined(defined, "shared memory", site)
            codes: Codes = smem.view(np.dtype(f"u{size}"))[where]
            if form == "padded":
                return unpack_stream(codes, bits)
            return unpack_pairs(codes) if form == "pairs" else codes

        return Source(smem.shadow, footprint.granules + base // 4, read)


def _bytes(element: str) -> int:
    """Bytes in which an element, or what holds it, is read."""
    return max(8, ELEMENT_BITS[element]) // 8


def by_descriptor(
    bits: int, rows: int, k: int, kind: str, element: str, major: str
) -> ElementAddresses:
    """Addresses of the elements, or of the bytes that hold them, of a matrix descriptor."""
    if storage(kind, element) == "pairs":
        k //= 2
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


@cache
def fused_params(assumptions: Assumptions, d_type: str) -> FusedParams:
    """The constants of a fused sum under these assumptions."""
    exponent = None if assumptions.zero_terms == "none" else int(assumptions.zero_terms)
    if exponent == -133 and d_type == "f16":
        exponent = -21
    return FusedParams(zero_exponent=exponent)
