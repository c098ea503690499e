"""The part of docs/time.md on kernels of wgmma: rows of a GH200, predictions, what was measured.

Tables follow from `tcir.time.hopper_rows`, from bench/predictions_sm90a.json, which was frozen, and
from bench/rest_sm90a.json: microseconds that an H200 had taken, from rest, clock not recorded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tcir.time import Constants
from tcir.time.hopper_rows import HOPPER_ROWS
from tcir.time.validate import Outcome, rank_correlation, table
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
    return f"{len(kernels)} | {median(errors):.1%} | {max(errors):.0%} | {misses} | {ranks:.2f}"


def _taken(kernels: Sequence[Taken]) -> str:
    lines = [
        "| kernel | predicted cycles | us | taken, us | error | limited by |",
        "|" + "---|" * 6,
    ]
    for k in kernels:
        mark = "**" if k.missed else ""
        lines.append(
            f"| {k.name} | {k.cycles} | {k.predicted:.1f} | {k.us:.1f} | "
            f"{mark}{k.error:+.1%}{mark} | {k.bound} |"
        )
    return "\n".join(lines)


_WHY = (
    (
        ("conv3_3x3_stride2 8", "conv3_3x3 8", "conv2_3x3 32", "conv3_3x3_stride2 32",
         "conv3_3x3 32", "conv4_reduce_first 32", "conv4_3x3_stride2 32", "conv4_reduce 32",
         "conv4_3x3 32", "conv5_3x3_stride2 32", "conv5_reduce 32", "conv5_3x3 32"),
        "the port from L2. Two of GH's figures are 64 B/clk, the default; its 45 beside consumers "
        "of wgmma (`l2-port=large`) puts each of these between -9 and +6 %",
    ),
    (
        ("conv2_reduce_first 8", "conv3_expand 8", "conv2_reduce_first 32", "conv2_expand 32",
         "conv3_expand 32"),
        "short K, so what a tile does behind its products is most of it. The model has threads' "
        "loads of the bias come from global memory in the same share as the tiles, behind those of "
        "the next tiles, which are requested ahead; in truth L2 has them after the first tile",
    ),
    (
        ("conv3_shortcut 8", "conv3_shortcut 32"),
        "a filter of 1x1 with stride 2 reads a quarter of the pixels; the model has all of the "
        "input cross global memory, as far as so many bytes are loaded",
    ),
    (
        ("gemm 2048 f16", "gemm 4096 f16", "gemm 6144 f16", "gemm 8192 f16"),
        "the clock, by all that is known. From 4096³ on 1.48 to 1.49 GHz would explain each, at "
        "2048³ 1.68; cuBLAS held 1.43 (`clock`)",
    ),
)  # fmt: skip
"""Of every miss."""


def _misses(kernels: Sequence[Taken]) -> str:
    explained = {name for names, _ in _WHY for name in names}
    if explained != {kernel.name for kernel in kernels if kernel.missed}:
        raise ValueError("time_wgmma: expected a reason for each miss, and for nothing else")
    return "\n".join(
        ["| miss | why |", "|---|---|", *(f"| {'; '.join(n)} | {why} |" for n, why in _WHY)]
    )


def section() -> str:
    """Of docs/time.md."""
    kernels = taken()
    parts = {
        "convolutions": [k for k in kernels if not k.name.startswith("gemm")],
        "products": [k for k in kernels if k.name.startswith("gemm")],
        "all": kernels,
    }
    summary = "\n".join(f"| {name} | {_of(members)} |" for name, members in parts.items())
    return f"""
## Kernels of wgmma

A `wgmma` is four events, one of each warp of its warpgroup: the tensor core of a warp's
sub-partition takes N/2 cycles for its 16 rows, or as long as shared memory takes for the operands
of the warpgroup (A, unless in registers, is read as well as B; of a sparse A, twice the B). Two
warpgroups queue for the same four. `wgmma.wait_group` names the instructions of the groups that it
waits for, which are complete `mma-latency` and 0.12 cycles a column behind their last column; in
that time the tensor core serves others. Fences and commits cost their issue. GH's measurements:

{_rows()}

The port's 45 B/clk under 48 KiB stages (R13) and CUTLASS's main loop, which needs 48 and takes no
longer than its products (R09), do not agree; 64 stays the default. Of sm_90, `tma-latency` and
`hbm-latency` are since 2026-11-26 those of the probes above, before these kernels were predicted.

### Predicted, and taken

`bench/predictions_sm90a.json` has 51 kernels of `gemm` and `conv-implicit-gemm` for sm_90a:
products of f16, and ResNet-50's convolutions at batch 8 and 32 (`python bench/time_hopper.py
--predict --wgmma`), frozen by `bench/predictions_sm90a.sha256` on 2026-11-26. For {len(kernels)}
of them an H200 had been measured two days before, from rest
([conv-sm90a.md](conv-sm90a.md), [gemm-sm90a.md](gemm-sm90a.md)), so they could be seen. No
constant was fitted to them, and no rule changed with them in view. The clock was not recorded:
1.98 GHz is what the H200 held in every kernel of up to 264 us [above](#measured), and 3.9 us are
those of a launch (`launch`).

| | kernels | median error | maximum | misses | rank correlation |
|---|---|---|---|---|---|
{summary}

{_taken(kernels)}

{_misses(kernels)}
"""
