"""tcgen05.mma of an agent (PTX ISA 9.7.16.10)."""

from __future__ import annotations

from functools import cache
from typing import Any

from tcir.machine.assumptions import Assumptions
from tcir.machine.errors import MachineError
from tcir.machine.memory.memories import LANES
from tcir.machine.numerics.fused import FusedParams, fast_mma, fused_mma, integer_mma, scaled_d
from tcir.machine.refusal import Refusal
from tcir.machine.tensor_core.d_lanes import Words
from tcir.machine.tensor_core.instruction_descriptor import decode_instruction, legal_m, legal_n
from tcir.machine.tensor_core.mma_operands import Codes, Source, by_descriptor
from tcir.machine.tensor_core.mma_step import MmaStep, poison
from tcir.machine.tensor_core.operands import ElementAddresses, SharedDesc, TmemAddr
from tcir.machine.tensor_core.zero_columns import ZeroColumns, decode_zero_columns


class Mma(MmaStep):
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
        zero_columns: int | None = None,
        site: Any,
    ) -> None:
        """tcgen05.mma by descriptors; in a pair they apply in both CTAs (PTX ISA 9.7.16.4).

        ``metadata``: address in tensor memory of a sparse A's selectors. ``zero_columns``: the
        descriptor of `zero_columns`, with ``ws``.
        """
        ctas = self.group(cta_group, site)
        if scale_input_d and kind == "i8":
            self.cta.report(
                "warning", "ignored-operand", site, "scale-input-d",
                "it is for the kinds f16 and tf32 (PTX ISA 9.7.16.10.9): with kind::i8 ptxas makes "
                "the same instruction as without it, and D is added as it is",
            )  # fmt: skip
        zeros: ZeroColumns | None = None
        at: ElementAddresses | TmemAddr
        try:
            i = decode_instruction(idesc, kind, cta_group=cta_group, ws=ws)
            check_sparse(i.sparse, metadata, site)
            if zero_columns is not None:
                spans = self.machine.assumptions.zero_column_spans
                zeros = decode_zero_columns(zero_columns, i.m, i.n, i.max_shift, spans)
            if isinstance(a, TmemAddr) and i.a_major != "K":
                raise MachineError(
                    "bad-descriptor",
                    "expected A major (bit 15) 0 (K-major) for A in tensor memory, got 1: a row of "
                    "A is a lane there, and CUTLASS (mma_sm100_umma.hpp) refuses it, too",
                    site=site,
                )
            columns = i.n // len(ctas) + (zeros.shift if zeros else 0)
            b = by_descriptor(b_desc, columns, i.k, kind, i.b_type, i.b_major)
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
            cta_group=cta_group, ws=ws, metadata=metadata, selector=i.sparsity_selector,
            zeros=zeros, site=site,
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
        selector: int = 0,
        zeros: ZeroColumns | None = None,
        site: Any,
    ) -> None:
        """One K step (32 bytes a row): D = A B^T (+ D), with the address of every shared element.

        With ``ashift`` the 8 columns of A move one lane toward lane 0 afterwards. In a pair m and n
        are those of both CTAs, and the addresses are of each CTA's half of A's and B's rows. With
        ``metadata`` A holds every second element, see `sparse`. With ``zeros`` the addresses are of
        N + shift rows of B.
        """
        ctas = self.group(cta_group, site)
        sparse = metadata is not None
        legal = legal_n(kind, cta_group, ws, sparse=sparse)
        if m not in legal_m(kind, cta_group, ws) or n not in legal:
            raise MachineError(
                "mma-shape", f"expected a legal M x N of kind::{kind}, got {m} x {n}", site=site
            )
        if ashift:
            in_tmem = isinstance(a, TmemAddr)
            _check_ashift(in_tmem, m, collector, site)
        chosen: list[Source] = []
        if metadata is not None:
            chosen = [
                self.metadata(
                    metadata, kind, m, d_taddr >> 16, cta,
                    cta_group=cta_group, ws=ws, selector=selector, site=site,
                )
                for cta in ctas
            ]  # fmt: skip

        def multiply(av: Codes, bv: Codes, d: Words | None, cta: int) -> Words:
            if not chosen:
                return add(av, bv, d, None)
            select, missing = chosen[cta].read()
            result = add(av, bv, d, select)
            if missing is not None:
                result[missing] = poison(d_type)
            return result

        def add(av: Codes, bv: Codes, d: Words | None, select: Codes | None) -> Words:
            if d_type == "s32":  # ptxas drops scale-input-d, see `mma`
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
            more_reads=[(source.shadow, source.where) for source in chosen],
            cta_group=cta_group, ws=ws, sparse=sparse, zeros=zeros, site=site,
        )  # fmt: skip


def check_sparse(sparse: bool, metadata: int | None, site: Any) -> None:
    """MachineError unless the instruction descriptor and the form of the instruction agree."""
    if sparse != (metadata is not None):
        raise MachineError(
            "bad-descriptor",
            f"expected the sparsity bit (2) of the instruction descriptor to be "
            f"{int(metadata is not None)} in this form of tcgen05.mma, got {int(sparse)}",
            site=site,
        )


def _check_ashift(in_tmem: bool, m: int, collector: str | None, site: Any) -> None:
    if not in_tmem:
        raise MachineError(
            "ashift-operand",
            "expected A in tensor memory with .ashift, got a descriptor",
            site=site,
        )
    if m not in (LANES, 2 * LANES):
        raise MachineError(
            "ashift-rows",
            f"expected M = 128 or 256 with .ashift, got {m} (PTX ISA 9.7.16.10.9)",
            site=site,
        )
    if collector in ("fill", "use"):
        raise MachineError("ashift-collector", f"expected no .{collector} with .ashift", site=site)


@cache
def fused_params(assumptions: Assumptions, d_type: str) -> FusedParams:
    """The constants of a fused sum under these assumptions."""
    exponent = None if assumptions.zero_terms == "none" else int(assumptions.zero_terms)
    if exponent == -133 and d_type == "f16":
        exponent = -21
    return FusedParams(zero_exponent=exponent)
