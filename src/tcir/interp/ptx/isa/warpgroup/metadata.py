"""Metadata and selector of a sparse A of wgmma (PTX ISA 9.7.15.6.1): they give the index along K of
each kept element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.values.sparse import contributors, metadata, positions
from tcir.interp.ptx.isa.warpgroup.wgmma_form import example
from tcir.interp.ptx.registers import U32
from tcir.interp.ptx.syntax import TYPES, Operand, Reg, Site
from tcir.interp.ptx.warp import Warp
from tcir.machine.wgmma.unit import WgmmaForm


@dataclass(frozen=True)
class SparsityMetadata:
    """The metadata operand of a wgmma with a sparse A.

    slot:   slot of the metadata register
    chunks: number of 4-bit codes per row of A
    lanes:  mask of the lanes whose bits are used
    """

    slot: int
    bits: int
    chunks: int
    selector: int
    lanes: int
    site: Site

    @classmethod
    def of(cls, d: Decode, form: WgmmaForm, operands: Sequence[Operand]) -> SparsityMetadata:
        """Decodes the operands `sp-meta, sp-sel`."""
        if not isinstance(operands[0], Reg):
            raise d.malformed(f"expected a register of metadata, {example(d)}")
        slot, selector = d.src(operands[0], TYPES["b32"]), d.immediate(operands[1])
        chunks = form.k // (2 if form.bits == 32 else 4)
        count = contributors(chunks)
        if selector not in range(4 // count):
            pair = "0 (lanes 0 and 1 of each four) or 1 (lanes 2 and 3)"
            raise d.malformed(
                f"expected a sparsity selector of {pair if count == 2 else '0 (all lanes)'} for "
                f".{form.types.a_type}, got {selector}, {example(d)}"
            )
        lanes = sum(1 << lane for lane in range(32) if lane % 4 // count == selector)
        return cls(slot, form.bits, chunks, selector, lanes, d.site)

    def select(self, w: Warp) -> np.ndarray:
        """Index along K of every element of A that is stored, int32 [16, K / 2]."""
        if w.undef[self.slot] & self.lanes:
            w.read_undefined(self.site, (self.slot,), self.lanes)
        codes = metadata(w.v[U32][self.slot], self.bits, self.chunks, self.selector)
        places = positions(codes, self.bits, False, self.site, "9.7.15.6.1")
        return np.ascontiguousarray(places, np.int32)
