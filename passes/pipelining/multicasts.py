"""Loads that CTAs of a cluster multicast: the bytes that each CTA receives, and the CTAs for which
it waits."""

from __future__ import annotations

from collections.abc import Sequence

from tcir.dialect import tc
from tcir.dialect.attributes import integer
from tcir.dialect.multicast import CTA_MASK, masks_of, transposed
from tcir.passes.emit.diagnostics import match_failure


def bytes_of(loads: Sequence[tc.TmaLoadOp], ctas: int) -> int:
    """Number of bytes that each CTA receives from a ring's loads: from its own loads and from
    multicasts of other CTAs."""
    counts = [0] * ctas
    for load in loads:
        for rank, senders in enumerate(_senders(load, ctas)):
            counts[rank] += integer(load, "nbytes") * senders.bit_count()
    if len(set(counts)) > 1:
        raise match_failure(
            loads[0],
            f"expected the same number of bytes for each CTA of the cluster, got {counts}: all "
            "run one program, which waits for one number; make the masks of tc.tma_load symmetric",
        )
    return counts[0]


def freed_by(loads: Sequence[tc.TmaLoadOp], ctas: int) -> list[int]:
    """For each CTA, a mask of the CTAs that write its slots and therefore wait until it has read
    them; empty if each CTA writes only its own slots."""
    if not any(CTA_MASK in load.attributes for load in loads):
        return []
    masks = [0] * ctas
    for load in loads:
        masks = [a | b for a, b in zip(masks, _senders(load, ctas), strict=True)]
    if masks != transposed(masks) or len({mask.bit_count() for mask in masks}) > 1:
        raise match_failure(
            loads[0],
            f"expected CTAs that load for each other, got slots written by {masks}: a barrier "
            "takes as many arrivals as its CTA has others to wait for; make the masks of "
            "tc.tma_load symmetric",
        )
    return masks


def _senders(load: tc.TmaLoadOp, ctas: int) -> list[int]:
    """For each CTA, the mask of the CTAs whose load writes to its shared memory."""
    try:
        return transposed(masks_of(load, ctas))
    except ValueError as error:
        raise match_failure(load, str(error)) from None
