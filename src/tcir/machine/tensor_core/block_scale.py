"""tcgen05.mma ... .block_scale of an agent (PTX ISA 9.7.16.10.7, 9.7.16.10.9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import MachineError
from tcir.machine.memory.effects import TensorWords
from tcir.machine.memory.protocols import CtaProtocol
from tcir.machine.memory.undefined import Undefined
from tcir.machine.numerics.block_scaled import Fp4Params, block_scaled_mma
from tcir.machine.numerics.products import product_form
from tcir.machine.order.lane_shadow import Granules
from tcir.machine.order.shadow import Shadow
from tcir.machine.tensor_core.d_lanes import Words
from tcir.machine.tensor_core.instruction_descriptor_scaled import ScaledDescriptor
from tcir.machine.tensor_core.issued_mma import LostWords
from tcir.machine.tensor_core.mma import check_sparse, fused_params
from tcir.machine.tensor_core.mma_effect import MmaArithmetic
from tcir.machine.tensor_core.mma_operands import Codes, OperandSource
from tcir.machine.tensor_core.mma_step import MmaOptions, MmaStep
from tcir.machine.tensor_core.operands import ElementAddresses, SharedDesc, TmemAddr
from tcir.machine.tensor_core.pipe import Missing, by_row
from tcir.machine.tensor_core.scale_factors import ADDRESS_BITS, scale_places

Scales = NDArray[np.uint8]


@dataclass(frozen=True)
class ScaleSource:
    """Scale factors in tensor memory: the words that contain them, and two functions that read
    their codes.

    read: returns the codes [rows, scales] of one CTA, and the rows that have unwritten scales
    codes: returns all copies from the tensor memories of any number of CTAs, [..., copies, rows,
        scales]
    """

    where: tuple[NDArray[np.int64], NDArray[np.int64]]
    read: Callable[[], tuple[Scales, Missing]]
    codes: Callable[[TensorWords], Scales]


class BlockScale:
    """Block-scaled mma of a CTA or a pair."""

    def __init__(self, step: MmaStep) -> None:
        self.step, self.cta, self.machine = step, step.pipe.cta, step.pipe.machine

    def mma(
        self,
        d_taddr: int,
        a: SharedDesc | TmemAddr | ElementAddresses,
        b: SharedDesc | ElementAddresses,
        i: ScaledDescriptor,
        sfa: int,
        sfb: int,
        options: MmaOptions,
        *,
        site: object,
    ) -> None:
        """D = (A · SFA)(B · SFB)ᵀ (+ D), with `i.scales` scales per row, in tensor memory at `sfa`
        and `sfb`.

        The operands are those of `Mma.mma`, addressed by element or by byte of packed elements. A
        sparse A doubles K, and each scale then applies to twice as many k. The four copies of the
        scales must be equal, because it is not known which copy the hardware reads.
        """
        ctas = self.step.agent.peers.group(i.cta_group, site)
        check_sparse(i.sparse, options.metadata, site)
        assumptions = self.machine.assumptions
        if i.cta_group == 1 and i.n % 16 and assumptions.scaled_n8 == "illegal":
            raise MachineError(
                "mma-shape",
                f"kind {i.kind}, M {i.m}: expected N to be a multiple of 16, got {i.n} (assumption "
                "scaled_n8 = illegal)",
                site=site,
            )
        if i.ignored:
            self.cta.report(
                "warning",
                "ignored-bit",
                site,
                f"instruction descriptor: {i.ignored}",
                "0: no document gives the bit a meaning for this instruction on sm_100a",
            )
        sfa_of = [self._scales("A", sfa, i, cta, site) for cta in ctas]
        sfb_of = [self._scales("B", sfb, i, cta, site) for cta in ctas]

        chosen: list[OperandSource] = []
        if options.metadata is not None:
            chosen = [
                self.step.operands.metadata(options.metadata, i, 0, cta, site) for cta in ctas
            ]

        params = fused_params(assumptions, "f32")
        constants = Fp4Params(rule=assumptions.fp4_sums, fused=params)
        exact = self.machine.options.numerics == "exact"
        kept = self.machine.options.products if exact else None
        form = (*product_form(i), i.kind, i.scale_type, constants)

        def scaled(
            av: Codes,
            bv: Codes,
            d: Words | None,
            sfa_codes: Scales,
            sfb_codes: Scales,
            select: Codes | None = None,
        ) -> Words:
            def product() -> Words:
                return block_scaled_mma(
                    av, bv, d, (sfa_codes, sfb_codes), i,
                    select=select, exact=exact, constants=constants,
                )  # fmt: skip

            operands = av, bv, d, sfa_codes, sfb_codes, select
            return product() if kept is None else kept.get(form, operands, product)

        def scales(words: TensorWords) -> tuple[tuple[Codes, ...], NDArray[np.bool_]]:
            found = [of[0].codes(words) for of in (sfa_of, sfb_of)]
            equal = [(codes == codes[:, :1]).all(axis=(1, 2, 3)) for codes in found]
            return tuple(codes[:, 0] for codes in found), equal[0] & equal[1]

        def multiply(av: Codes, bv: Codes, d: Words | None, cta: int, lost: LostWords) -> Words:
            sfa_codes, no_sfa = sfa_of[cta].read()
            sfb_codes, no_sfb = sfb_of[cta].read()
            select, no_metadata = chosen[cta].read() if chosen else (None, None)

            result = scaled(av, bv, d, sfa_codes, sfb_codes, select)
            lost.rows(no_sfa)
            lost.rows(no_metadata)
            lost.columns(no_sfb)
            return result

        reads: list[tuple[Shadow | None, Granules]] = [
            (cta.tmem.shadow, source.where)
            for scales_of in (sfa_of, sfb_of)
            for cta, source in zip(ctas, scales_of, strict=True)
        ]
        reads += [(source.shadow, source.where) for source in chosen]
        together = exact and kept is None
        arithmetic = MmaArithmetic(
            multiply, reads, None if chosen else scaled, scales, together=together
        )
        self.step.issue(d_taddr, a, b, i, options, arithmetic, site=site)

    def _scales(
        self, operand: str, address: int, i: ScaledDescriptor, cta: CtaProtocol, site: object
    ) -> ScaleSource:
        """Finds the scales that a CTA holds: of A for its own rows, of B for all rows."""
        address &= ADDRESS_BITS
        lane, column = address >> 16, address & 0xFFFF
        if lane:
            raise MachineError(
                "tensor-memory-lane", f"expected SF{operand} at lane 0, got {lane}", site=site
            )
        rows, sf_id = (i.m, i.sfa_id) if operand == "A" else (i.n, i.sfb_id)
        places = scale_places(operand, rows, i.scales, sf_id, m=i.m, cta_group=i.cta_group)
        which = cta.rank_in_cluster % i.cta_group
        if operand == "A":
            own: Any = (slice(None), np.flatnonzero(places.cta[0] == which))
        else:
            own = (np.flatnonzero(places.cta[:, 0] == which), slice(None))
        lanes, columns = places.lanes[own], places.columns[own[1]] + column
        tmem = cta.tmem
        tmem.check(column, int(columns.max()) + 1, site)
        where = (lanes, columns)

        def copies(words: TensorWords) -> Scales:
            held = np.ascontiguousarray(words[(..., *where)]).view(np.uint8)
            return held.reshape(*words.shape[:-2], *lanes.shape, 4)[..., places.bytes]

        def read() -> tuple[Scales, Missing]:
            unwritten = self.step.pipe.origin(f"SF{operand} in tensor memory", site)
            missing, known = tmem.missing(where, unwritten), np.ones(lanes.shape[1], bool)
            if missing is not None:
                missing = by_row(Undefined(missing.where.T, missing.origin))
                assert missing is not None
                known = ~missing.where
            codes = copies(tmem.words)
            if (codes != codes[0])[:, known].any():
                self.cta.report(
                    "error",
                    "scale-copies",
                    site,
                    f"SF{operand} in tensor memory",
                    "the four quarters hold different scales: copy them with .warpx4",
                )
            return codes[0], missing

        return ScaleSource(where, read, copies)
