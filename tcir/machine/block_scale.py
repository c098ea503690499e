"""tcgen05.mma ... .block_scale of an agent (PTX ISA 9.7.16.10.7, 9.7.16.10.9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import MachineError, NotModelled
from tcir.machine.instruction_descriptor_scaled import decode_scaled
from tcir.machine.mma import Codes, Mma, Words, by_descriptor, fused_params
from tcir.machine.numerics_fp4 import Fp4Params, block_scaled_mma
from tcir.machine.operands import SharedDesc, TmemAddr
from tcir.machine.refusal import Refusal
from tcir.machine.scale_factors import ADDRESS_BITS, scale_places
from tcir.machine.tmem_access import one_group

Scales = NDArray[np.uint8]


class BlockScale(Mma):
    """Dense block-scaled mma of one CTA."""

    def mma_block_scale(
        self,
        d_taddr: int,
        a: SharedDesc | TmemAddr,
        b_desc: int,
        idesc: int,
        sfa: int,
        sfb: int,
        kind: str,
        *,
        scales: int,
        enable_input_d: bool,
        cta_group: int = 1,
        site: Any,
    ) -> None:
        """D = (A · SFA)(B · SFB)ᵀ (+ D), `scales` per row from tensor memory at `sfa` and `sfb`.

        The four copies of the scales have to be equal: which one the hardware takes is not known.
        """
        one_group(cta_group, site)
        try:
            i = decode_scaled(idesc, kind, scales, cta_group=cta_group)
            if i.sparse:
                raise NotModelled("sparse tcgen05.mma", site=site)
            b = by_descriptor(b_desc, i.n, i.k, kind, i.b_type, i.b_major)
            at = a if isinstance(a, TmemAddr) else (
                by_descriptor(a.bits, i.m, i.k, kind, i.a_type, i.a_major)
            )  # fmt: skip
        except Refusal as refusal:
            raise MachineError(refusal.code, str(refusal), site=site) from None
        place_a, read_a = self._scales("A", sfa, i.m, scales, i.sfa_id, site)
        place_b, read_b = self._scales("B", sfb, i.n, scales, i.sfb_id, site)

        assumptions = self.machine.assumptions

        def multiply(av: Codes, bv: Codes, d: Words | None) -> Words:
            return block_scaled_mma(
                av, bv, d, read_a(), read_b(), kind=kind, scale_type=i.scale_type,
                a_type=i.a_type, b_type=i.b_type, negate_a=i.negate_a, negate_b=i.negate_b,
                exact=self.machine.numerics == "exact", params=fused_params(assumptions, "f32"),
                fp4=Fp4Params(rule=assumptions.fp4_sums),
            )  # fmt: skip

        shadow = self.cta.tmem.shadow
        self.mma_step(
            d_taddr, at, b, i.m, i.n, kind, i.a_type, i.b_type, "f32", multiply,
            enable_input_d=enable_input_d, more_reads=[(shadow, place_a), (shadow, place_b)],
            site=site,
        )  # fmt: skip

    def _scales(
        self, operand: str, address: int, rows: int, scales: int, sf_id: int, site: Any
    ) -> tuple[Any, Callable[[], Scales]]:
        """(words of tensor memory, reader of the codes [rows, scales])."""
        address &= ADDRESS_BITS
        lane, column = address >> 16, address & 0xFFFF
        if lane:
            raise MachineError(
                "tensor-memory-lane", f"expected SF{operand} at lane 0, got {lane}", site=site
            )
        places = scale_places(operand, rows, scales, sf_id)
        tmem = self.cta.tmem
        tmem.check(column, column + int(places.columns.max()) + 1, site)
        where = (places.lanes, places.columns + column)

        def read() -> Scales:
            self.must_be_defined(tmem.defined[where], f"SF{operand} in tensor memory", site)
            codes = tmem.words[where].view(np.uint8).reshape(*places.lanes.shape, 4)
            codes = codes[..., places.bytes]
            if (codes != codes[0]).any():
                self.cta.report(
                    "error", "scale-copies", site, f"SF{operand} in tensor memory",
                    "the four quarters hold different scales: copy them with .warpx4",
                )  # fmt: skip
            return codes[0]

        return where, read
