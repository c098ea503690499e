"""Operands of tcgen05.mma in the form in which the tensor core reads them: A, B, and the selectors
of a sparse A.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.assumptions import Assumptions
from tcir.machine.errors import MachineError
from tcir.machine.memory.effects import SharedBytes, TensorWords, by_piece, elements, pieces
from tcir.machine.memory.memories import ALL_DEFINED
from tcir.machine.memory.protocols import CtaProtocol
from tcir.machine.memory.tensor_memory import LANES
from tcir.machine.memory.undefined import Undefined
from tcir.machine.numerics.formats import ELEMENT_BITS
from tcir.machine.order.lane_shadow import Granules
from tcir.machine.order.shadow import Shadow
from tcir.machine.refusal import Refusal
from tcir.machine.tensor_core.descriptor import decode_matrix, element_table
from tcir.machine.tensor_core.instruction_descriptor import InstructionDescriptor
from tcir.machine.tensor_core.instruction_descriptor_scaled import ScaledDescriptor
from tcir.machine.tensor_core.narrow import from_holders, storage, unpack_pairs, unpack_stream
from tcir.machine.tensor_core.operands import ElementAddresses, SharedDesc
from tcir.machine.tensor_core.pipe import Missing, Pipe, by_row
from tcir.machine.tensor_core.sparse import metadata_places, selected
from tcir.machine.tmem.places import A_COLUMNS, a_lanes

Codes = NDArray[Any]
Descriptor = InstructionDescriptor | ScaledDescriptor


@dataclass(frozen=True)
class OperandPlace:
    """Place of an operand in shared memory, and the CTA that owns that memory."""

    shadow: Shadow | None
    at: ElementAddresses

    def rows(self, words: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Rows of the operand that have an element in these words."""
        at = (self.at.addresses + self.at.base) // 4
        chosen = np.zeros(1 + max(int(at.max()), int(words.max())), bool)
        chosen[words] = True
        return np.asarray(chosen[at].any(axis=1))


@dataclass(frozen=True)
class OperandSource:
    """An operand in the form in which the tensor core reads it: the granules that it occupies, and
    its codes [rows, K].

    read: returns the codes, and the rows that contain undefined bytes
    elements: None for an operand in tensor memory
    codes: computes the codes [..., rows, K] from the memories of any number of CTAs, without
        checks; None: only `read` is available
    """

    shadow: Shadow | None
    where: Granules
    read: Callable[[], tuple[Codes, Missing]]
    elements: OperandPlace | None = None
    codes: Callable[[SharedBytes, TensorWords], Codes] | None = None


class MmaOperands:
    """Finds the operands of an mma, and reads them when it takes effect."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe, self.cta, self.machine = pipe, pipe.cta, pipe.machine

    def metadata(
        self,
        address: int,
        i: Descriptor,
        d_lane: int,
        cta: CtaProtocol,
        site: object,
    ) -> OperandSource:
        """Finds the selectors of a sparse A. The returned source reads the k of every stored
        element, int32 [rows, K/2].
        """
        assumptions = self.machine.assumptions
        selector = i.sparsity_selector
        lane, column = address >> 16, address & 0xFFFF
        if lane != d_lane:
            raise MachineError(
                "tensor-memory-lane",
                f"expected metadata at D's lane {d_lane}, got {lane}",
                site=site,
            )
        if selector > 1 and assumptions.sparsity_selector == "two":
            raise MachineError(
                "bad-descriptor",
                f"expected a sparsity selector of 0 or 1 (assumption sparsity_selector), got "
                f"{selector}",
                site=site,
            )
        step = 4 if selector > 1 else 2
        if column % step and assumptions.metadata_column == "refused":
            raise MachineError(
                "bad-descriptor",
                f"expected metadata at a column that is a multiple of {step} with sparsity "
                f"selector {selector} (assumption metadata_column), got {column}; the selector "
                "picks the columns after it",
                site=site,
            )
        lanes, columns, bits = metadata_places(
            i.kind,
            i.m,
            cta_group=i.cta_group,
            ws=i.ws,
            selector=selector,
            packed=assumptions.half_lane_metadata == "packed",
        )
        lanes, columns = lanes + d_lane, columns + column
        tmem = cta.tmem
        tmem.check(int(columns.min()), int(columns.max()) + 1, site)

        def read() -> tuple[Codes, Missing]:
            codes = tmem.words[lanes, columns].astype(np.int64) >> bits & 0xF
            unwritten = self.pipe.origin("metadata in tensor memory", site)
            missing = tmem.missing((lanes, columns), unwritten)
            if missing is not None:
                missing = by_row(Undefined(np.moveaxis(missing.where, 1, 0), missing.origin))
                assert missing is not None
                codes[:, missing.where] = 0x4  # any legal one: their rows become poison
            if (codes != codes[0]).any():
                self.cta.report(
                    "error",
                    "operand-copies",
                    site,
                    "metadata in tensor memory",
                    f"{len(codes)} equal copies of the rows, on the lanes of D's rows; the copies "
                    "differ",
                )
            try:
                return selected(codes[0], i.kind), missing
            except Refusal as refusal:
                raise MachineError.of(refusal, site) from None

        return OperandSource(tmem.shadow, (lanes.reshape(-1), columns.reshape(-1)), read)

    def tmem(
        self,
        address: int,
        i: Descriptor,
        copies: int,
        d_lane: int,
        cta: CtaProtocol,
        site: object,
    ) -> OperandSource:
        """Finds A in tensor memory: 8 columns of the lanes that D occupies.

        If D's rows are on several lanes, A's rows are stored several times. The copies must be
        equal, because the ISA does not say which copy is multiplied by which columns of B.
        """
        rows, element = i.m // i.cta_group, i.a_type
        form = storage(i.kind, element)
        lane, column = address >> 16, address & 0xFFFF
        if lane != d_lane:
            raise MachineError(
                "tensor-memory-lane", f"expected A at D's lane {d_lane}, got {lane}", site=site
            )
        tmem = cta.tmem
        tmem.check(column, column + A_COLUMNS, site)
        tmem.read(slice(None), slice(column, column + A_COLUMNS))
        whole = rows * copies == LANES
        lanes: Any = slice(None) if whole else a_lanes(rows)[1][0] + lane
        where = (lanes, slice(column, column + A_COLUMNS))
        smem, bits = cta.smem, ELEMENT_BITS[element]

        def taken(words: TensorWords) -> Codes:
            held: Codes = np.ascontiguousarray(words).view(f"u{_bytes(element)}")
            if form == "padded":
                return from_holders(held, bits, self.pipe.holder_shift(bits))
            return unpack_pairs(held) if form == "pairs" else held

        def codes(smem: SharedBytes, tmem: TensorWords) -> Codes:
            return taken(tmem[(..., *where)])

        def read() -> tuple[Codes, Missing]:
            unwritten = self.pipe.origin("A in tensor memory", site)
            missing = by_row(tmem.missing(where, unwritten))
            if copies == 1:
                return codes(smem.data, tmem.words), missing
            words = tmem.words[where]
            parts, known = words.reshape(copies, rows, -1), np.ones(rows, bool)
            if missing is not None:
                lost = np.logical_or.reduce(missing.where.reshape(copies, rows))
                missing, known = Undefined(lost, missing.origin), ~lost
            if (parts[:, known] != parts[0, known]).any():
                self.cta.report(
                    "error",
                    "operand-copies",
                    site,
                    "A in tensor memory",
                    f"{copies} equal copies of the {rows} rows, {rows} lanes apart; the copies "
                    "differ",
                )
            return taken(words[:rows]), missing

        return OperandSource(tmem.shadow, where, read, codes=codes if copies == 1 else None)

    def shared(
        self, operand: ElementAddresses, kind: str, element: str, cta: CtaProtocol, site: object
    ) -> OperandSource:
        """Finds an operand in shared memory. Padding bytes are not read."""
        form = storage(kind, element)
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
        whole = pieces(where, size)

        def codes(smem: SharedBytes, tmem: TensorWords) -> Codes:
            found: Codes
            if whole is None:
                found = elements(smem, size)[..., where]
            else:
                found = by_piece(smem).take(whole, axis=-1).view(f"u{size}")
            if form == "padded":
                return unpack_stream(found, bits)
            return unpack_pairs(found) if form == "pairs" else found

        def read() -> tuple[Codes, Missing]:
            defined, missing = smem.defined_view(size)[where] == ALL_DEFINED[size], None
            if np.count_nonzero(defined) != defined.size:
                at = (operand.addresses + base)[..., None] + np.arange(size)
                missing = by_row(smem.missing(at, self.pipe.origin("shared memory", site)))
            return codes(smem.data, cta.tmem.words), missing

        granules = footprint.granules + base // 4
        return OperandSource(smem.shadow, granules, read, OperandPlace(smem.shadow, operand), codes)


def _bytes(element: str) -> int:
    """Size in bytes of the unit in which an element is read: at least 1."""
    return max(8, ELEMENT_BITS[element]) // 8


def addresses(
    operand: SharedDesc | ElementAddresses,
    shape: tuple[int, int],
    kind: str,
    element: str,
    major: str,
    assumptions: Assumptions,
) -> ElementAddresses:
    """Returns the addresses of an operand's elements, [rows, K], or of the bytes that contain two
    elements each, [rows, K/2].
    """
    if isinstance(operand, ElementAddresses):
        return operand
    rows, k = shape
    if storage(kind, element) == "pairs":
        k //= 2
    base, table = element_table(
        decode_matrix(operand.bits),
        rows,
        k,
        8 * _bytes(element),
        major,
        atom_32b_rows=int(assumptions.atom_32b_rows),
    )
    return ElementAddresses(table, base)
