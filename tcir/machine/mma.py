"""tcgen05.mma of an agent (PTX ISA 9.7.16.10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.assumptions import Assumptions
from tcir.machine.descriptor import decode_matrix, element_table
from tcir.machine.errors import MachineError, NotModelled
from tcir.machine.formats_decode import ELEMENT_BITS
from tcir.machine.instruction_descriptor import (
    InstructionDescriptor,
    decode_instruction,
    legal_m,
    legal_n,
)
from tcir.machine.memory import ALL_DEFINED, LANES, UNSPECIFIED_HALF
from tcir.machine.narrow import from_holders, storage, unpack_pairs, unpack_stream
from tcir.machine.numerics import FusedParams, fast_mma, fused_mma, integer_mma, scaled_d
from tcir.machine.operands import ElementAddresses, SharedDesc, TmemAddr
from tcir.machine.refusal import Refusal
from tcir.machine.shadow import Shadow
from tcir.machine.sparse import metadata_places, selected
from tcir.machine.tensor_core import Places, TensorPipe, shift_lanes
from tcir.machine.time_table import K_BYTES, mma_cycles, operand_bytes
from tcir.machine.tmem import A_COLUMNS, a_lanes, d_layout, shift_source

if TYPE_CHECKING:
    from tcir.machine.engine import Cta

EVERY_LANE = np.arange(LANES)
Words = NDArray[np.uint32]
Codes = NDArray[Any]


@dataclass(frozen=True)
class Source:
    """An operand as the tensor core takes it: what it touches, and its codes [rows, K]."""

    shadow: Shadow | None
    where: Any
    read: Callable[[], Codes]


class Mma(TensorPipe):
    """mma of a CTA or a pair, without block scaling."""

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
        ws: bool = False,
        metadata: int | None = None,
        site: Any,
    ) -> None:
        """tcgen05.mma by descriptors; in a pair they apply in both CTAs (PTX ISA 9.7.16.4).

        ``metadata``: address in tensor memory of a sparse A's selectors.
        """
        ctas = self.group(cta_group, site)
        at: ElementAddresses | TmemAddr
        try:
            i = decode_instruction(idesc, kind, cta_group=cta_group, ws=ws)
            _check_sparse(i, metadata, site)
            if i.max_shift:
                raise NotModelled(f".ws with a max shift of {i.max_shift}", site=site)
            if isinstance(a, TmemAddr) and i.a_major != "K":
                raise MachineError(
                    "bad-descriptor",
                    "expected A major (bit 15) 0 (K-major) for A in tensor memory, got 1: a row of "
                    "A is a lane there, and CUTLASS (mma_sm100_umma.hpp) refuses it, too",
                    site=site,
                )
            b = by_descriptor(b_desc, i.n // len(ctas), i.k, kind, i.b_type, i.b_major)
            stored = i.k // 2 if i.sparse else i.k
            at = a if isinstance(a, TmemAddr) else (
                by_descriptor(a.bits, i.m // len(ctas), stored, kind, i.a_type, i.a_major)
            )  # fmt: skip
        except Refusal as refusal:
            raise MachineError(refusal.code, str(refusal), site=site) from None
        self.mma_elements(
            d_taddr, at, b, i.m, i.n, i.a_type, i.b_type, i.d_type,
            enable_input_d=enable_input_d, disable_lanes=disable_lanes,
            scale_input_d=scale_input_d, ashift=ashift, collector=collector,
            negate_a=i.negate_a, negate_b=i.negate_b, saturate=i.saturate, kind=kind,
            cta_group=cta_group, ws=ws, metadata=metadata, site=site,
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
        cta_group: int = 1,
        ws: bool = False,
        metadata: int | None = None,
        site: Any,
    ) -> None:
        """One K step (32 bytes a row): D = A B^T (+ D), with the address of every shared element.

        With ``ashift`` the 8 columns of A move one lane toward lane 0 afterwards. In a pair m and n
        are those of both CTAs, and the addresses are of each CTA's half of A's and B's rows. With
        ``metadata`` A holds every second element, see `sparse`.
        """
        sparse = metadata is not None
        legal = legal_n(kind, cta_group, ws, sparse=sparse)
        if m not in legal_m(kind, cta_group, ws) or n not in legal:
            raise MachineError(
                "mma-shape", f"expected a legal M x N of kind::{kind}, got {m} x {n}", site=site
            )
        if ashift:
            _check_ashift(isinstance(a, TmemAddr), m, cta_group, collector, site)

        read_selection, reads = None, []
        if metadata is not None:
            where, read_selection = self._selection(metadata, kind, site)
            reads = [(self.cta.tmem.shadow, where)]

        def multiply(av: Codes, bv: Codes, d: Words | None, cta: int) -> Words:
            select = None if read_selection is None else read_selection()
            if d_type == "s32":
                return integer_mma(
                    av, bv, d, a_type=a_type, b_type=b_type, saturate=saturate, select=select
                )
            scale = scale_input_d or 0
            if d is not None and scale and self.machine.assumptions.scale_input_d == "rounded":
                d, scale = scaled_d(d, d_type, scale), 0
            options: Any = {
                "a_type": a_type, "b_type": b_type, "d_type": d_type,
                "negate_a": negate_a, "negate_b": negate_b, "scale_input_d": scale,
                "select": select,
            }  # fmt: skip
            if self.machine.numerics == "fast":
                return fast_mma(av, bv, d, **options)
            params = fused_params(self.machine.assumptions, d_type)
            return fused_mma(av, bv, d, **options, params=params)

        self.mma_step(
            d_taddr, a, b, m, n, kind, a_type, b_type, d_type, multiply,
            enable_input_d=enable_input_d, disable_lanes=disable_lanes, ashift=ashift,
            cta_group=cta_group, ws=ws, more_reads=reads, sparse=sparse, site=site,
        )  # fmt: skip

    def _selection(
        self, address: int, kind: str, site: Any
    ) -> tuple[Any, Callable[[], NDArray[np.int32]]]:
        """(words of tensor memory, reader of the k of every stored element) of a sparse A."""
        lane, column = address >> 16, address & 0xFFFF
        if lane:
            raise MachineError(
                "tensor-memory-lane", f"expected metadata at lane 0, got {lane}", site=site
            )
        lanes, columns, bits = metadata_places(kind)
        tmem = self.cta.tmem
        tmem.check(column, column + int(columns.max()) + 1, site)
        where = (lanes, columns + column)

        def read() -> NDArray[np.int32]:
            self.must_be_defined(tmem.defined[where], "metadata in tensor memory", site)
            try:
                return selected(tmem.words[where].astype(np.int64) >> bits & 0xF, kind)
            except Refusal as refusal:
                raise MachineError(refusal.code, str(refusal), site=site) from None

        return where, read

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
        site: Any,
    ) -> None:
        """Reads the codes of A [m, K], B [n, K] and D, and writes ``multiply(A, B, D, cta)``.

        In a pair each CTA does that with its half of A's rows and all of B, of which each holds
        half; `cta` is 0 or 1. `more_reads`: what else the operation reads, for the order of
        operations.
        """
        ctas = self.group(cta_group, site)
        path = d_layout(m, n, cta_group=cta_group, ws=ws)
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
        masks = _enabled(disable_lanes, own, cta_group, site)
        in_tmem = isinstance(a, TmemAddr)
        reads: list[Any] = [*more_reads]
        writes: list[Any] = []
        sources = []
        for cta, on in zip(ctas, masks, strict=True):
            cta.tmem.check(columns.start, columns.stop, site)
            lanes: Any = every if on is None else own[on]
            b_from = self._shared_operand(b, storage(kind, b_type), b_type, cta, site)
            form = storage(kind, a_type)
            a_from = (
                self._tmem_operand(a.address, rows, parts, d_lane, form, a_type, cta, site)
                if isinstance(a, TmemAddr)
                else self._shared_operand(a, form, a_type, cta, site)
            )
            reads.append((cta.smem.shadow, b_from.where))
            writes.append((cta.tmem.shadow, (lanes, columns)))
            # With .ashift all 128 lanes are written.
            (writes if ashift else reads).append((a_from.shadow, a_from.where))
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
            bvs = [source[2].read() for source in sources]
            bv = bvs[0] if len(bvs) == 1 else np.concatenate(bvs)
            for number, (tmem, a_from, _, lanes, on) in enumerate(sources):
                av = a_from.read()
                d = None
                if enable_input_d:
                    self.must_be_defined(tmem.defined[lanes, columns], "accumulator", site)
                    d = beside(tmem.words[every, columns], parts)
                result = beneath(multiply(av, bv, d, number), parts)
                if d_type == "f16":
                    result |= UNSPECIFIED_HALF
                tmem.words[lanes, columns] = result if on is None else result[on]
                tmem.defined[lanes, columns] = True
                if ashift:
                    shift_lanes(tmem, shift_source(), a_from.where[1])

        self.issue("mma", site, (d_taddr, m, n), run, reads, writes, ctas)

    def _tmem_operand(
        self,
        address: int,
        rows: int,
        copies: int,
        d_lane: int,
        form: str,
        element: str,
        cta: Cta,
        site: Any,
    ) -> Source:
        """A in tensor memory: 8 columns of the lanes of D, so maybe several copies of its rows.

        They have to be equal: the ISA does not say which copy is multiplied with which columns.
        """
        lane, column = address >> 16, address & 0xFFFF
        if lane != d_lane:
            raise MachineError(
                "tensor-memory-lane", f"expected A at D's lane {d_lane}, got {lane}", site=site
            )
        tmem = cta.tmem
        tmem.check(column, column + A_COLUMNS, site)
        whole = rows * copies == LANES
        lanes: Any = slice(None) if whole else a_lanes(rows)[1][0] + lane
        where = (lanes, slice(column, column + A_COLUMNS))

        def read() -> Codes:
            self.must_be_defined(tmem.defined[where], "A in tensor memory", site)
            words = tmem.words[where]
            if copies > 1:
                if (words.reshape(copies, rows, -1) != words[:rows]).any():
                    self.cta.report(
                        "error", "operand-copies", site, "A in tensor memory",
                        f"its {rows} rows have to be there {copies} times, {rows} lanes apart; "
                        "the copies differ",
                    )  # fmt: skip
                words = words[:rows]
            codes: Codes = np.ascontiguousarray(words).view(f"u{_bytes(element)}")
            if form == "padded":
                bits = ELEMENT_BITS[element]
                return from_holders(codes, bits, self.holder_shift(bits))
            return unpack_pairs(codes) if form == "pairs" else codes

        return Source(tmem.shadow, where, read)

    def _shared_operand(
        self, operand: ElementAddresses, form: str, element: str, cta: Cta, site: Any
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
        smem = cta.smem
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


def _check_sparse(i: InstructionDescriptor, metadata: int | None, site: Any) -> None:
    if i.sparse != (metadata is not None):
        raise MachineError(
            "bad-descriptor",
            f"expected the sparsity bit (2) of the instruction descriptor to be "
            f"{int(metadata is not None)} in this form of tcgen05.mma, got {int(i.sparse)}",
            site=site,
        )
    if i.sparse and (i.m, i.cta_group, i.ws, i.sparsity_selector) != (128, 1, False, 0):
        raise NotModelled(
            f"sparse tcgen05.mma with M = {i.m}, .cta_group::{i.cta_group}"
            f"{' .ws' if i.ws else ''}, sparsity selector {i.sparsity_selector}: where its "
            "metadata lie is shown in figures only",
            site=site,
        )


def _check_ashift(in_tmem: bool, m: int, cta_group: int, collector: str | None, site: Any) -> None:
    if not in_tmem:
        raise MachineError(
            "ashift-operand",
            "expected A in tensor memory with .ashift, got a descriptor",
            site=site,
        )
    if (m, cta_group) == (128, 2):
        raise NotModelled(".ashift with M = 128 and .cta_group::2", site=site)
    if m != LANES * cta_group:
        raise MachineError(
            "ashift-rows", f"expected M = {LANES * cta_group} with .ashift, got {m}", site=site
        )
    if collector in ("fill", "use"):
        raise MachineError("ashift-collector", f"expected no .{collector} with .ashift", site=site)


def _enabled(
    masks: tuple[int, ...] | None, lanes: NDArray[np.int64], cta_group: int, site: Any
) -> list[NDArray[np.bool_] | None]:
    """Which of these lanes are written in each CTA (None: all).

    Bit i of mask v set: lane 32 v + i is not; in a pair masks 4..7 are of the CTA of odd rank.
    """
    if masks is None:
        return [None] * cta_group
    if len(masks) != 4 * cta_group:
        raise MachineError(
            "lane-mask", f"expected {4 * cta_group} mask words, got {len(masks)}", site=site
        )
    found: list[NDArray[np.bool_] | None] = []
    for start in range(0, len(masks), 4):
        words = masks[start : start + 4]
        off = np.array([words[lane // 32] >> (lane % 32) & 1 for lane in range(LANES)], bool)
        found.append(~off[lanes] if off.any() else None)
    return found


def beside(block: Words, parts: int) -> Words:
    """D [rows, n] from its lanes: parts of the columns lie beneath each other (paths B, E, G)."""
    if parts == 1:
        return block
    lanes, columns = block.shape
    split = block.reshape(parts, lanes // parts, columns)
    return np.ascontiguousarray(split.transpose(1, 0, 2)).reshape(lanes // parts, -1)


def beneath(d: Words, parts: int) -> Words:
    """The reverse of `beside`."""
    if parts == 1:
        return d
    rows, n = d.shape
    return d.reshape(rows, parts, n // parts).transpose(1, 0, 2).reshape(rows * parts, -1)


@cache
def fused_params(assumptions: Assumptions, d_type: str) -> FusedParams:
    """The constants of a fused sum under these assumptions."""
    exponent = None if assumptions.zero_terms == "none" else int(assumptions.zero_terms)
    if exponent == -133 and d_type == "f16":
        exponent = -21
    return FusedParams(zero_exponent=exponent)
