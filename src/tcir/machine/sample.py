"""A sample of the CTAs of a grid, for launches that are too long to be executed as a whole."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

Triple = tuple[int, int, int]

FEWEST = 8
"""Clusters that a sample has at least: the corners of a grid in three dimensions."""


@dataclass(frozen=True)
class Sample:
    """Describes a random sample of the clusters of a grid. share: fraction of the clusters; seed:
    seed of the draw.
    """

    share: float
    seed: int

    def of(self, grid: Triple, cluster: Triple) -> Sequence[int]:
        """Linear indices of the sampled clusters, in ascending order; all clusters if the share is
        that large.

        The sample contains the corners of the grid, and so the first and the last cluster. If the
        share allows, it also contains one of the last clusters along each axis, where tiles may be
        partly filled. The other clusters are drawn at random.
        """
        extents = [g // c for g, c in zip(grid, cluster, strict=True)]
        x, y, _ = extents
        total = math.prod(extents)
        wanted = max(FEWEST, round(self.share * total))
        if wanted >= total:
            return range(total)
        corners = itertools.product(*({0, extent - 1} for extent in extents))
        chosen = {a + x * (b + y * c) for a, b, c in corners}
        generator = random.Random(f"{self.seed}/sample of CTAs")
        for axis, extent in enumerate(extents):
            if extent > 1 and len(chosen) < wanted:
                place = [generator.randrange(n) for n in extents]
                place[axis] = extent - 1
                chosen.add(place[0] + x * (place[1] + y * place[2]))
        while len(chosen) < wanted:
            chosen.add(generator.randrange(total))
        return sorted(chosen)
