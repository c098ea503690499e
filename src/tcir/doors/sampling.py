"""Launches of which only some CTAs are executed, for programs whose problem sizes cannot be
reduced.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcir.machine.sample import Sample, Triple
from tcir.run import RunReport

LACKING = (
    "launches before this one were sampled, and results of the CTAs that were left out count as 0: "
    "these findings need a second look, above all if such results are indices"
)
"""Words after the findings of a launch that may read what a sample left out."""


@dataclass
class Sampling:
    """Chooses samples of the CTAs of a program's launches, and counts them.

    clusters: number of clusters to execute in each launch, at least `tcir.machine.sample.FEWEST`
    executed, ctas: number of CTAs that were executed, and number of all CTAs, in the sampled
        launches
    launches: number of sampled launches
    """

    clusters: int
    executed: int = 0
    ctas: int = 0
    launches: int = 0

    def of(self, grid: Triple, cluster: Triple) -> Sample:
        """The sample of a launch."""
        return Sample(self.clusters * math.prod(cluster) / math.prod(grid), 0)

    def finished(
        self, report: RunReport, grid: Triple, written: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> None:
        """Counts a launch. Memory that the launch left unwritten becomes zero and counts as
        written, because the CTAs that were not executed may have written it.

        written: partly initialised arrays, and masks of their initialised bytes
        """
        if not report.executed:
            return
        self.launches += 1
        self.executed += report.executed
        self.ctas += math.prod(grid)
        for data, mask in written:
            data.reshape(-1).view(np.uint8)[~mask.reshape(-1)] = 0
            mask[...] = True

    def __str__(self) -> str:
        return (
            f"sampled: {self.executed} of {self.ctas} CTAs of {self.launches} launches were "
            "executed; results are incomplete, and the program's own checks say nothing"
        )
