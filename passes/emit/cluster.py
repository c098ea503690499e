"""Clusters of CTAs that compute neighbouring tiles, and the operand tiles that these CTAs load
together by multicast."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import CLUSTER_CTAS
from tcir.dialect.multicast import CTA_MASK
from tcir.errors import InputError
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64, i64s
from tcir.passes.emit.index import Index

EXTENTS = (1, 2, 4, 8)
"""Extents of a cluster: a tile of 128 rows is divided into as many equal parts."""


@dataclass(frozen=True)
class MulticastShare:
    """The part of an operand's tile that this CTA loads by multicast for all CTAs of the cluster
    that use the same tile.

    parts: number of CTAs that share the tile
    number: number of this CTA among them
    masks: for each rank of the cluster, the CTAs for which it loads
    """

    parts: int
    number: ir.Value
    masks: Sequence[int]

    def first(self, origin: Index, extent: int) -> Index:
        """First row of this CTA's part of the tile that begins at `origin`. extent: number of rows
        of a part"""
        return index.add(origin, index.mul(self.number, extent))

    def part(self, tile: ir.Value) -> ir.Value:
        """The part of `tile` that this CTA loads."""
        kind = tile.type
        mn, k = kind.shape
        part = tc.SmemType.build([mn // self.parts, k], kind.element, kind.major, kind.swizzle)
        return tc.SmemPartOp(tile, self.number, part).part


@dataclass(frozen=True)
class ClusterShape:
    """A cluster of `m` x `n` CTAs that compute adjacent tiles along M and N. Ranks count along M
    first."""

    m: int = 1
    n: int = 1

    @staticmethod
    def parse(text: str) -> ClusterShape:
        """Parses the value ``MxN`` of an option; InputError for any other text."""
        match = re.fullmatch(r"(\d+)x(\d+)", text)
        extents = [int(each) for each in match.groups()] if match else []
        if match and set(extents) <= set(EXTENTS) and extents[0] * extents[1] <= CLUSTER_CTAS:
            return ClusterShape(*extents)
        raise InputError(
            "expected cluster to be MxN, CTAs along rows and columns of tiles, each 1, 2, 4 or 8 "
            f"and at most {CLUSTER_CTAS} together (what every device with clusters launches), got "
            f"{text}; smallest accepted: cluster=1x1"
        )

    def __str__(self) -> str:
        return f"{self.m}x{self.n}"

    @property
    def ctas(self) -> int:
        """Number of CTAs."""
        return self.m * self.n

    @property
    def transposed(self) -> ClusterShape:
        """The shape of the cluster for a product whose two operands are exchanged."""
        return ClusterShape(self.n, self.m)

    def multiple(self, step: int) -> int:
        """The number that must divide the columns of a tile of B, so that the CTAs along M load
        equal parts that are multiples of `step`."""
        return self.m * step if self.m > 1 else 1

    def along_m(self) -> Index:
        """The number of this CTA along M in its cluster."""
        return index.rem(tc.CtaRankOp().rank, self.m) if self.n > 1 else tc.CtaRankOp().rank

    def along_n(self) -> Index:
        """The number of this CTA along N in its cluster."""
        return index.div(tc.CtaRankOp().rank, self.m) if self.n > 1 else 0

    def share_of_a(self) -> MulticastShare | None:
        """Part of the tile of A that this CTA loads; the CTAs along N use the same tile."""
        if self.n == 1:
            return None
        along = sum(1 << self.m * y for y in range(self.n))
        masks = [along << rank % self.m for rank in range(self.ctas)]
        return MulticastShare(self.n, index.value(self.along_n()), masks)

    def share_of_b(self) -> MulticastShare | None:
        """Part of the tile of B that this CTA loads; the CTAs along M use the same tile."""
        if self.m == 1:
            return None
        along = (1 << self.m) - 1
        masks = [along << rank // self.m * self.m for rank in range(self.ctas)]
        return MulticastShare(self.m, index.value(self.along_m()), masks)


ALONE = ClusterShape()
"""No cluster."""


def multicast(op: ir.OpView, masks: Sequence[int]) -> None:
    """Sets the attribute of an op that makes it reach other CTAs of its cluster: one mask for each
    rank that may execute the op."""
    op.attributes[CTA_MASK] = i64(masks[0]) if len(set(masks)) == 1 else i64s(masks)
