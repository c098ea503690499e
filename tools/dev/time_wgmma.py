"""The part of docs/time.md on kernels of wgmma: the rows of a GH200, predictions, what was measured.

Tables follow from `tcir.time.hopper_rows`, from bench/predictions_sm90a.json, which was frozen, and
from bench/rest_sm90a.json: microseconds that an H200 had taken, from rest, clock not recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tcir.time import Constants
from tcir.time.hopper_rows import HOPPER_ROWS
from tcir.time.validate import Outcome, Summary, rank_correlation, table
from tcir.tools.dev.time_measured import BENCH, MISS

TARGET = "sm_90a"
UNDER = ({"l2-port": "wgmma"}, {"l2-port": "large"}, {"tma-latency": "gh", "hbm-latency": "gh"})
BOOST = Constants(TARGET, {"clock": "boost"})
"""At the clock that an H200 holds for kernels this short: those of *Measured* above."""


@dataclass(frozen=True)
class Taken:
    """A kernel: predicted cycles, and microseconds that a launch took from rest."""

    name: str
    cycles: int
    bound: str
    us: float

    @property
    def predicted(self) -> float:
        """Microseconds of the kernel at the boost clock, and of its launch."""
        return self.cycles / BOOST["clock"] / 1000 + BOOST["launch"]

    @property
    def error(self) -> float:
        return self.predicted / self.us - 1

    @property
    def missed(self) -> bool:
        return abs(self.error) > MISS


def taken() -> list[Taken]:
    """Predicted kernels whose time is known."""
    known = json.loads((BENCH / "rest_sm90a.json").read_text())["us"]
    kernels = json.loads((BENCH / "predictions_sm90a.json").read_text())["kernels"]
    return [
        Taken(k["name"], k["cycles"], k["bound"], known[k["name"]])
        for k in kernels
        if k["name"] in known
    ]


def _rows() -> str:
    outcomes = [Outcome(row, row.predict(Constants(TARGET))) for row in HOPPER_ROWS]
    lines = ["| under | " + " | ".join(r.name for r in HOPPER_ROWS if not r.fit) + " |"]
    lines.append("|" + "---|" * (1 + sum(not row.fit for row in HOPPER_ROWS)))
    for choices in UNDER:
        constants = Constants(TARGET, choices)
        cells = [f"{row.predict(constants):.4g}" for row in HOPPER_ROWS if not row.fit]
        name = ", ".join(f"{key}={value}" for key, value in choices.items())
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*table(outcomes), "", *lines])


def _of(kernels: Sequence[Taken]) -> str:
    errors = [abs(kernel.error) for kernel in kernels]
    ranks = rank_correlation([k.us for k in kernels], [k.predicted for k in kernels])
    misses = sum(kernel.missed for kernel in kernels)
    return (
        f"{len(kernels)} | {median(errors):.1%} | {max(errors):.0%} | {misses} | {ranks:.2f}"
    )


def _taken(kernels: Sequence[Taken]) -> str:
    lines = ["| kernel | predicted cycles | us | taken, us | error | limited by |", "|" + "---|" * 6]
    for k in kernels:
        mark = "**" if k.missed else ""
        lines.append(
            f"| {k.name} | {k.cycles} | {k.predicted:.1f} | {k.us:.1f} | "
            f"{mark}{k.error:+.1%}{mark} | {k.bound} |"
        )
    return "\n".join(lines)
