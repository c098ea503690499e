"""Multicast: an op takes effect at the same shared-memory offset in several CTAs of its cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tcir._mlir import ir
from tcir.dialect.attributes import integer, integers
from tcir.dialect.limits import CLUSTER_CTAS
from tcir.dialect.walk import nested

CTA_MASK = "cta_mask"
"""Attribute of ``tc.tma_load``, ``tc.commit`` and ``tc.mbarrier_arrive``: a bit for each CTA of the
cluster that the op reaches, by rank (``.multicast::cluster``). An array has a mask for the op in
each CTA."""


def mask_of(op: ir.OpView, rank: int) -> int:
    """Mask of the CTAs that `op` reaches if the CTA of rank `rank` executes it. Without the
    attribute ``cta_mask`` it reaches that CTA only."""
    if CTA_MASK not in op.attributes:
        return 1 << rank
    if isinstance(op.attributes[CTA_MASK], ir.IntegerAttr):
        return integer(op, CTA_MASK)
    return integers(op, CTA_MASK)[rank]


def masks_of(op: ir.OpView, ctas: int) -> list[int]:
    """The mask of `op` for each CTA of a cluster of `ctas` CTAs; ValueError if the masks do not fit
    the cluster."""
    got = op.attributes.get(CTA_MASK, None)
    if isinstance(got, ir.DenseI64ArrayAttr) and len(got) != ctas:
        raise ValueError(
            f"expected a cta_mask for each CTA of the cluster (tc.cluster), {ctas}, got {len(got)}"
        )
    masks = [mask_of(op, rank) for rank in range(ctas)]
    if max(masks) >> ctas:
        raise ValueError(
            f"expected cta_mask of the {ctas} CTAs of the cluster (tc.cluster), got {got}: CTAs of "
            "other clusters cannot be reached"
        )
    return masks


def ranks_in(mask: int) -> list[int]:
    """The ranks of the CTAs that a mask contains."""
    return [rank for rank in range(mask.bit_length()) if mask >> rank & 1]


def transposed(masks: Sequence[int]) -> list[int]:
    """For each CTA of a cluster, the mask of the CTAs that reach it. Element i of `masks` is the
    mask of the CTAs that CTA i reaches."""
    ranks = range(len(masks))
    return [sum(1 << each for each in ranks if masks[each] >> rank & 1) for rank in ranks]


def cluster_ctas(kernel: ir.OpView | ir.Operation) -> int:
    """Number of CTAs in a cluster of the kernel."""
    return prod(integers(kernel, "tc.cluster")) if "tc.cluster" in kernel.attributes else 1


def has_multicast(kernel: ir.OpView | ir.Operation) -> bool:
    """Whether an op of the kernel reaches other CTAs through a ``cta_mask``."""
    return any(CTA_MASK in op.operation.attributes for op in nested(kernel))


def wrong_mask(op: ir.OpView) -> Mapping[str, object] | None:
    """Value for the error message if ``cta_mask`` is present but is neither a mask nor an array of
    masks; else None."""
    got = op.attributes.get(CTA_MASK, None)
    if isinstance(got, ir.IntegerAttr):
        masks = [integer(op, CTA_MASK)]
    elif isinstance(got, ir.DenseI64ArrayAttr):
        masks = integers(op, CTA_MASK)
    else:
        return None if got is None else {"got": got}
    legal = masks and all(mask in range(1, 1 << CLUSTER_CTAS) for mask in masks)
    return None if legal else {"got": got}
