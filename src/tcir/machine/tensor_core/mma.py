"""tcgen05.mma of an agent (PTX ISA 9.7.16.10)."""

from __future__ import annotations

from functools import cache

from tcir.machine.assumptions import Assumptions
from tcir.machine.errors import MachineError
from tcir.machine.memory.tensor_memory import LANES
from tcir.machine.numerics.exact_f32 import exact_products
from tcir.machine.numerics.fused import FusedParams, fast_mma, fused_mma, integer_mma, scaled_d
from tcir.machine.numerics.products import product_form
from tcir.machine.numerics.types import MmaTypes
from tcir.machine.tensor_core.d_lanes import Words
from tcir.machine.tensor_core.instruction_descriptor import (
    InstructionDescriptor,
    legal_m,
    legal_n,
)
from tcir.machine.tensor_core.issued_mma import LostWords
from tcir.machine.tensor_core.mma_effect import Fused, MmaArithmetic
from tcir.machine.tensor_core.mma_operands import Codes, OperandSource
from tcir.machine.tensor_core.mma_step import MmaOptions, MmaStep
from tcir.machine.tensor_core.operands import ElementAddresses, SharedDesc, TmemAddr


class Mma:
    """tcgen05.mma of a CTA or a pair, without block scaling."""

    def __init__(self, step: MmaStep) -> None:
        self.step, self.cta, self.machine = step, step.pipe.cta, step.pipe.machine

    def mma(
        self,
        d_taddr: int,
        a: SharedDesc | TmemAddr | ElementAddresses,
        b: SharedDesc | ElementAddresses,
        i: InstructionDescriptor,
        options: MmaOptions,
        *,
        site: object,
    ) -> None:
        """One instruction, whose K is 32 bytes of each row: D = A Bᵀ (+ D).

        Operands in shared memory are given by a descriptor, or by the address of every element. In
        a pair they describe each CTA's half of the rows (PTX ISA 9.7.16.4). A sparse A stores half
        of its elements, see `sparse`. With `options.zero_columns`, B has N + shift rows.
        """
        ctas = self.step.agent.peers.group(i.cta_group, site)
        self._check_form(a, i, options, site)
        chosen: list[OperandSource] = []
        if options.metadata is not None:
            d_lane = d_taddr >> 16
            chosen = [
                self.step.operands.metadata(options.metadata, i, d_lane, cta, site) for cta in ctas
            ]

        def multiply(av: Codes, bv: Codes, d: Words | None, cta: int, lost: LostWords) -> Words:
            if not chosen:
                return self._sum(i, options, av, bv, d, None)
            select, missing = chosen[cta].read()
            lost.rows(missing)
            return self._sum(i, options, av, bv, d, select)

        def dense(av: Codes, bv: Codes, d: Words | None) -> Words:
            return self._sum(i, options, av, bv, d, None)

        reads = [(source.shadow, source.where) for source in chosen]
        together = (
            i.d_type != "s32"
            and self.machine.options.numerics == "exact"
            and self.machine.options.products is None
        )
        arithmetic = MmaArithmetic(
            multiply,
            reads,
            None if chosen else dense,
            together=together,
            fused=self._fused(i, options),
        )
        self.step.issue(d_taddr, a, b, i, options, arithmetic, site=site)

    def _fused(self, i: InstructionDescriptor, options: MmaOptions) -> Fused | None:
        """Returns the fused sum for `add_exactly`; None if it cannot compute this one."""
        exact = self.machine.options.numerics == "exact" and i.d_type == "f32"
        if not exact or options.metadata is not None or options.scale_input_d:
            return None
        types = MmaTypes(i.a_type, i.b_type, i.d_type, i.negate_a, i.negate_b)
        return Fused(types, fused_params(self.machine.assumptions, i.d_type))

    def _check_form(
        self,
        a: SharedDesc | TmemAddr | ElementAddresses,
        i: InstructionDescriptor,
        options: MmaOptions,
        site: object,
    ) -> None:
        """Checks that qualifiers and operands fit the descriptor."""
        if options.scale_input_d and i.kind == "i8":
            self.cta.report(
                "warning",
                "ignored-operand",
                site,
                "scale-input-d",
                "no scale-input-d, which exists for the kinds f16 and tf32 only (PTX ISA "
                "9.7.16.10.9): with kind::i8 ptxas ignores it, and D is added unscaled",
            )
        check_sparse(i.sparse, options.metadata, site)
        in_tmem = isinstance(a, TmemAddr)
        if in_tmem and i.a_major != "K":
            raise MachineError(
                "bad-descriptor",
                "expected A major (bit 15) 0 (K-major) for A in tensor memory, got 1: a row of "
                "A is a lane there, and CUTLASS (mma_sm100_umma.hpp) also rejects it",
                site=site,
            )
        legal = legal_n(i.kind, i.cta_group, i.ws, sparse=i.sparse)
        if i.m not in legal_m(i.kind, i.cta_group, i.ws) or i.n not in legal:
            raise MachineError(
                "mma-shape",
                f"expected a legal M x N of kind::{i.kind}, got {i.m} x {i.n}",
                site=site,
            )
        if options.ashift:
            _check_ashift(in_tmem, i.m, options.collector, site)

    def _sum(
        self,
        i: InstructionDescriptor,
        options: MmaOptions,
        a: Codes,
        b: Codes,
        d: Words | None,
        select: Codes | None,
    ) -> Words:
        """Computes the codes of one CTA's D; `select`: k of every stored element of a sparse A."""
        if i.d_type == "s32":  # ptxas drops scale-input-d, see `_check_form`
            return integer_mma(
                a, b, d, a_type=i.a_type, b_type=i.b_type, saturate=i.saturate, select=select
            )
        scale = options.scale_input_d or 0
        if d is not None and scale and self.machine.assumptions.scale_input_d == "rounded":
            d, scale = scaled_d(d, i.d_type, scale), 0
        if self.machine.options.numerics == "fast":
            return fast_mma(a, b, d, i, select=select, scale_input_d=scale)
        params = fused_params(self.machine.assumptions, i.d_type)

        def multiply() -> Words:
            if select is None and not scale:
                exact = exact_products(a, b, d, i, params)
                if exact is not None:
                    return exact
            return fused_mma(a, b, d, i, select=select, scale_input_d=scale, params=params)

        products = self.machine.options.products
        if products is None:
            return multiply()
        return products.get((*product_form(i), scale, params), (a, b, d, select), multiply)


def check_sparse(sparse: bool, metadata: int | None, site: object) -> None:
    """Raises MachineError unless the instruction descriptor and the form of the instruction are
    both sparse or both dense.
    """
    if sparse != (metadata is not None):
        raise MachineError(
            "bad-descriptor",
            f"expected the sparsity bit (2) of the instruction descriptor to be "
            f"{int(metadata is not None)} in this form of tcgen05.mma, got {int(sparse)}",
            site=site,
        )


def _check_ashift(in_tmem: bool, m: int, collector: str, site: object) -> None:
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
    """The constants of a fused sum that these assumptions imply."""
    exponent = None if assumptions.zero_terms == "none" else int(assumptions.zero_terms)
    if exponent == -133 and d_type == "f16":
        exponent = -21
    return FusedParams(zero_exponent=exponent)
