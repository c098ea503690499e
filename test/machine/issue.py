"""tcgen05.mma as a program writes it: descriptor bits, or shape and types, and qualifiers."""

from __future__ import annotations

from typing import Any

from tcir.machine import Agent, InstructionDescriptor, MmaOptions, SharedDesc

SHAPE = ("d_type", "negate_a", "negate_b", "saturate", "cta_group", "ws")
"""Keywords of `issue_mma` that belong to the descriptor."""


def issue_mma(
    agent: Agent, d: int, a: Any, b: Any, m: int, n: int, a_type: str, b_type: str, **given: Any
) -> None:
    """Issues an mma, given its shape and types."""
    site, kind = given.pop("site"), given.pop("kind", "f16")
    types = {name: given.pop(name) for name in SHAPE if name in given}
    sparse = given.get("metadata") is not None
    i = InstructionDescriptor(kind, m, n, a_type, b_type, sparse=sparse, **types)
    agent.tensor_core.mma(d, a, b, i, MmaOptions(**given), site=site)


def issue_mma_bits(
    agent: Agent, d: int, a: Any, b: int, idesc: int, kind: str = "f16", **given: Any
) -> None:
    """Issues an mma, given the bits of the descriptors."""
    site = given.pop("site")
    form = {name: given.pop(name) for name in ("cta_group", "ws") if name in given}
    i = agent.tensor_core.instruction(idesc, kind, **form, site=site)
    agent.tensor_core.mma(d, a, SharedDesc(b), i, MmaOptions(**given), site=site)


def issue_mma_scaled(
    agent: Agent, d: int, a: Any, b: int, idesc: int, sfa: int, sfb: int, kind: str, **given: Any
) -> None:
    """Issues an mma with block scaling, given the bits of the descriptors."""
    site, scales, group = given.pop("site"), given.pop("scales"), given.pop("cta_group", 1)
    i = agent.tensor_core.scaled_instruction(idesc, kind, scales, cta_group=group, site=site)
    agent.tensor_core.mma_block_scale(
        d, a, SharedDesc(b), i, sfa, sfb, MmaOptions(**given), site=site
    )
