"""The zero-column mask descriptor of ``tcgen05.mma.ws`` (PTX ISA 9.7.16.4.3).

The descriptor makes columns of B zero, whatever shared memory contains, and shifts B: column n of D
is computed from column n + shift of B. The columns are divided into 128 / M banks, each with its
own start:

    bits 8 i + 7 .. 8 i   start count of bank i: columns of its first span that are left out
    bit 32 + i            bank i starts with a span of zeros (1) or of B (0)
    bit 39                0: no column is zeroed
    bits 47..40, 55..48   skip span, use span: lengths minus one of the alternating spans
    bits 61..56           shift: at most 16 for M = 32, else 32, and the descriptor's max shift

PTX's examples and CUTLASS (cute/arch/mma_sm100_desc.hpp, MaskAndShiftB) agree that the skip span
counts zeroed columns; PTX's table states the opposite (assumption `zero_column_spans`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.memory.undefined import Undefined
from tcir.machine.refusal import DescriptorError
from tcir.machine.tensor_core.operands import ElementAddresses
from tcir.machine.tensor_core.pipe import Missing

_TABLE = "PTX ISA 9.7.16.4.3, zero-column mask descriptor"


@dataclass(frozen=True, eq=False)
class ZeroColumns:
    """A decoded zero-column mask.

    kept: bool [N], the columns of D that are computed from B (the others are zero); shift: offset
        that is added to a column number to get B's column.
    """

    kept: NDArray[np.bool_]
    shift: int

    def of(self, b: ElementAddresses) -> ElementAddresses:
        """Returns the addresses of the rows of B that are read, from the addresses of all N + shift
        rows.
        """
        return ElementAddresses(b.addresses[self.shift :][self.kept], b.base)

    def spread(self, codes: NDArray[Any], missing: Missing) -> tuple[NDArray[Any], Missing]:
        """Returns B [N, K], with zeros in the rows that were not read, and a mask of the undefined
        columns of D.
        """
        b = np.zeros((len(self.kept), codes.shape[1]), codes.dtype)
        b[self.kept] = codes
        if missing is None:
            return b, None
        columns = np.zeros(len(self.kept), bool)
        columns[self.kept] = missing.where
        return b, Undefined(columns, missing.origin)


@lru_cache(maxsize=256)
def decode_zero_columns(
    bits: int, m: int, n: int, max_shift: int, spans: str = "skip-is-zero"
) -> ZeroColumns:
    """Decodes and checks the zero-column mask descriptor of an m x n instruction."""

    def field(low: int, width: int) -> int:
        return bits >> low & (1 << width) - 1

    for low, width in ((36, 3), (62, 2)):
        if field(low, width):
            name = f"zero-column mask bits {low + width - 1}..{low}"
            raise DescriptorError(name, field(low, width), "0 (reserved)", _TABLE)
    shift = field(56, 6)
    limit = min(16 if m == 32 else 32, max_shift)
    if shift > limit:
        raise DescriptorError(
            "zero-column mask: column shift (bits 61..56)",
            shift,
            f"at most {limit} for M = {m} and a max shift of {max_shift}",
            "bits 31..30 of the instruction descriptor announce the largest shift",
        )
    kept = np.ones(n, bool)
    if field(39, 1):
        zeros, used = field(40, 8) + 1, field(48, 8) + 1
        if spans == "use-is-zero":
            zeros, used = used, zeros
        banks = 128 // m
        for bank, columns in enumerate(np.split(kept, banks)):
            start, zero_first = field(8 * bank, 8), field(32 + bank, 1)
            first = zeros if zero_first else used
            if start >= first:
                raise DescriptorError(
                    f"zero-column mask: start count {bank}",
                    start,
                    f"below {first}, the length of the first span",
                    "the meaning of larger start counts is not documented",
                )
            at = (np.arange(n // banks) + start) % (zeros + used)
            columns[:] = at >= zeros if zero_first else at < used
    kept.flags.writeable = False
    return ZeroColumns(kept, shift)
