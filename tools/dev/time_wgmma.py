"""The part of docs/results/time-model.md about wgmma kernels: published rows for a GH200,
predictions, and measurements.

The tables are computed from `tcir.time.hopper_rows`, from bench/predictions_sm90a.json, which was
frozen before the measurement, and from bench/rest_sm90a.json, which has microseconds on an H200
that was idle before. The clock of the H200 was not recorded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from statistics import median

from tcir.target import targets_with
from tcir.time import Constants
from tcir.time.hopper_rows import HOPPER_ROWS
from tcir.time.validate import PredictedTime, rank_correlation, table
from tcir.tools.dev.time_measured import BENCH, MISS

(TARGET,) = targets_with("wgmma")
UNDER = ({"l2-port": "wgmma"}, {"l2-port": "large"}, {"tma-latency": "gh", "hbm-latency": "gh"})
BOOST = Constants(TARGET, {"clock": "boost"})
"""Constants at the clock that an H200 holds for kernels as short as those of *Measured*."""


@dataclass(frozen=True)
class WgmmaTime:
    """A kernel: its predicted cycles, and the measured microseconds of a launch on a GPU that was
    idle before."""

    name: str
    cycles: int
    bound: str
    us: float

    @property
    def predicted(self) -> float:
        """Predicted microseconds: the kernel's cycles at the boost clock, plus the time of its
        launch."""
        return self.cycles / BOOST["clock"] / 1000 + BOOST["launch"]

    @property
    def error(self) -> float:
        return self.predicted / self.us - 1

    @property
    def missed(self) -> bool:
        return abs(self.error) > MISS


def taken() -> list[WgmmaTime]:
    """The predicted kernels whose time has been measured."""
    known = json.loads((BENCH / "rest_sm90a.json").read_text())["us"]
    kernels = json.loads((BENCH / "predictions_sm90a.json").read_text())["kernels"]
    return [
        WgmmaTime(k["name"], k["cycles"], k["bound"], known[k["name"]])
        for k in kernels
        if k["name"] in known
    ]


@dataclass(frozen=True)
class Counted:
    """A kernel: its predicted cycles and, for each run, the cycles that the SMs counted and the
    clock in GHz."""

    name: str
    predicted: int
    runs: tuple[tuple[float, float], ...]

    @property
    def error(self) -> float:
        """Error of the predicted cycles, relative to the cycles of the first run."""
        return self.predicted / self.runs[0][0] - 1


def counted() -> tuple[str, list[Counted]]:
    """The device of the measurement, and the kernels. ValueError if the measurement was compared
    with other predictions."""
    frozen = (BENCH / "predictions_sm90a.json").read_bytes()
    document = json.loads((BENCH / "measured_sm90a.json").read_text())
    if sha256(frozen).hexdigest() != document["predictions"]:
        raise ValueError("measured_sm90a.json: expected the hash of predictions_sm90a.json")
    cycles = {k["name"]: k["cycles"] for k in json.loads(frozen)["kernels"]}
    where = f"{document['device']}, {document['driver']}, {document['date']}"
    return where, [
        Counted(name, cycles[name], tuple((c, ghz) for c, ghz in runs))
        for name, *runs in document["rows"]
    ]


def _counted(kernels: Sequence[Counted]) -> str:
    lines = ["| kernel | predicted cycles | counted | GHz | error |", "|" + "---|" * 5]
    for k in kernels:
        mark = "**" if abs(k.error) > MISS else ""
        cycles, ghz = k.runs[0]
        lines.append(
            f"| {k.name} | {k.predicted} | {cycles:.0f} | {ghz:.2f} | {mark}{k.error:+.1%}{mark} |"
        )
    return "\n".join(lines)


def _rows() -> str:
    outcomes = [PredictedTime(row, row.predict(Constants(TARGET))) for row in HOPPER_ROWS]
    lines = ["| under | " + " | ".join(r.name for r in HOPPER_ROWS if not r.fit) + " |"]
    lines.append("|" + "---|" * (1 + sum(not row.fit for row in HOPPER_ROWS)))
    for choices in UNDER:
        constants = Constants(TARGET, choices)
        cells = [f"{row.predict(constants):.4g}" for row in HOPPER_ROWS if not row.fit]
        name = ", ".join(f"{key}={value}" for key, value in choices.items())
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*table(outcomes), "", *lines])


def _of(kernels: Sequence[WgmmaTime]) -> str:
    errors = [abs(kernel.error) for kernel in kernels]
    ranks = rank_correlation([k.us for k in kernels], [k.predicted for k in kernels])
    misses = sum(kernel.missed for kernel in kernels)
    return f"{len(kernels)} | {median(errors):.1%} | {max(errors):.0%} | {misses} | {ranks:.2f}"


def _taken(kernels: Sequence[WgmmaTime]) -> str:
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
        "the port from L2 to the SM. Two of GH's figures for it are 64 B/clk, the default. With "
        "GH's figure beside consumers of wgmma, 45 B/clk (`l2-port=large`), the error of each of "
        "these kernels is between -9 and +6 %",
    ),
    (
        ("conv2_reduce_first 8", "conv3_expand 8", "conv2_reduce_first 32", "conv2_expand 32",
         "conv3_expand 32"),
        "K is short, so most of a tile's time is spent after its products. In the model, the "
        "threads' loads of the bias come from global memory in the same share as the tiles, and "
        "queue behind the loads of the next tiles, which are requested ahead; on the GPU, L2 has "
        "the bias after the first tile",
    ),
    (
        ("conv3_shortcut 8", "conv3_shortcut 32"),
        "a filter of 1x1 with stride 2 reads a quarter of the pixels, but in the model all bytes "
        "of the input come from global memory, up to the number of bytes that are loaded",
    ),
    (
        ("gemm 2048 f16", "gemm 4096 f16", "gemm 6144 f16", "gemm 8192 f16"),
        "the clock. A clock of 1.48 to 1.49 GHz would explain the errors from 4096³ on, and 1.68 "
        "GHz that of 2048³; in cycles the errors are within 7 % (*Counted*, below)",
    ),
)  # fmt: skip
"""Reason of every miss."""


def _misses(kernels: Sequence[WgmmaTime]) -> str:
    explained = {name for names, _ in _WHY for name in names}
    if explained != {kernel.name for kernel in kernels if kernel.missed}:
        raise ValueError("time_wgmma: expected a reason for each miss, and for nothing else")
    return "\n".join(
        ["| miss | why |", "|---|---|", *(f"| {'; '.join(n)} | {why} |" for n, why in _WHY)]
    )


def section() -> str:
    """Section of docs/results/time-model.md on wgmma kernels."""
    kernels = taken()
    where, cycles = counted()
    errors = [abs(kernel.error) for kernel in cycles]
    parts = {
        "convolutions": [k for k in kernels if not k.name.startswith("gemm")],
        "products": [k for k in kernels if k.name.startswith("gemm")],
        "all": kernels,
    }
    summary = "\n".join(f"| {name} | {_of(members)} |" for name, members in parts.items())
    return f"""
## Kernels of wgmma

In the model a `wgmma` is four events, one for each warp of its warpgroup. The tensor core of a
warp's sub-partition takes N/2 cycles for the warp's 16 rows, or as long as shared memory takes to
deliver the operands of the warpgroup, whichever is longer. (B is read from shared memory, and so is
A unless it is in registers; for a sparse A, twice as much of B is read.) Two warpgroups queue for
the same four tensor cores. `wgmma.wait_group` waits until instructions have completed. Each of them
completes with a delay of `mma-latency` plus 0.12 cycles per column after its last column; meanwhile
the tensor core executes other instructions. Fences and commits take only their issue slots. The
next table compares this model with measurements of a GH200 by the source GH:

{_rows()}

Two of GH's measurements disagree about the rate of the port from L2: with stages of 48 KiB it is 45
B/clk (R13), but CUTLASS's main loop needs 48 B/clk and takes no longer than its products (R09). The
default is still 64 B/clk. For sm_90, `tma-latency` and `hbm-latency` have had the values of the
probes above since 2026-11-26, before these kernels were predicted.

### Predicted, and taken

`bench/predictions_sm90a.json` has predictions for 51 kernels of `gemm` and `conv-implicit-gemm` for
sm_90a: products of f16, and ResNet-50's convolutions at batch 8 and 32
(`python bench/time_hopper.py --predict --wgmma`). `bench/predictions_sm90a.sha256` has frozen them
since 2026-11-26. {len(kernels)} of the kernels had been measured on an H200 two days before, each
launch after a pause ([conv-sm90a.md](../explanation/conv-sm90a.md),
[gemm-sm90a.md](../explanation/gemm-sm90a.md)), so their times could be seen. But no constant was
fitted to them, and no rule was changed with them in view. The clock of these measurements was not
recorded. The predicted microseconds therefore assume 1.98 GHz, which the H200 kept in every kernel
of up to 264 us [above](#measured), and contain 3.9 us for a launch (`launch`). *taken, us* is the
measured time:

| | kernels | median error | maximum | misses | rank correlation |
|---|---|---|---|---|---|
{summary}

{_taken(kernels)}

{_misses(kernels)}

### Counted

{where}. After the predictions were frozen, `bench/time_wgmma.py` measured the cycles that the SMs
count themselves around launches that follow each other. The clock of a spinning kernel right after
the launches, which [Measured](#measured) uses, would be wrong here, because the clock recovers
within microseconds: it was 1.95 GHz after products of 4096³ that ran at 1.54 GHz. (For
`matmul-warp` above, which draws less power, this difference is not known; if there is one, its
measured cycles are too many.)

**The median error is {median(errors):.1%} and the maximum {max(errors):.1%}** for {len(errors)}
kernels:

{_counted(cycles)}

All results were right. The convolutions ran at 1.8 GHz, not at the 1.98 GHz that the table of
*Predicted, and taken* assumes, so their errors in cycles are larger than those in us there; the
launch is also a large part of those us. Of the 22 convolutions that the model predicts more than 10
% too fast, 16 are within 10 % under `l2-port=large`, and under this answer the median error of all
51 kernels is 4.7%. The two reasons above explain the convolutions that are predicted too slow: the
bias behind the tiles, and strided pixels. The model does not contain the time that small kernels
take between two launches.

### The tiles that kernels choose

`gemm` and `conv-implicit-gemm` for sm_90a choose the width of a tile by a short rule that estimates
which width is fastest ([conv-sm90a.md](../explanation/conv-sm90a.md#the-schedule)).
`python bench/wgmma_tiles.py` computes the time of every width by this model for 25 problems,
products of 1024³ to 3072³ and the 22 layers at batch 8. In 14 problems the rule's width is the
fastest in the model, and in 22 it is within 3 % of the fastest. The next table has the problems
where the two widths differ, as columns: cycles, all **modelled**:

| problem | the rule's | the model's | slower by |
|---|---|---|---|
| 2048³ | 256: 40544 | 128: 40266 | 0.7% |
| conv2_expand, batch 8 | 256: 19572 | 192: 17022 | 15.0% |
| conv3_reduce_first, batch 8 | 128: 18452 | 96: 17184 | 7.4% |
| conv3_expand, batch 8 | 256: 13089 | 96: 12253 | 6.8% |
| conv3_shortcut, batch 8 | 256: 17847 | 96: 17705 | 0.8% |
| conv4_3x3_stride2, batch 8 | 64: 16990 | 32: 16798 | 1.1% |
| conv4_reduce, batch 8 | 64: 10020 | 32: 9769 | 2.6% |
| conv4_3x3, batch 8 | 64: 16944 | 32: 16758 | 1.1% |
| conv5_3x3_stride2, batch 8 | 32: 27791 | 16: 27759 | 0.1% |
| conv5_reduce, batch 8 | 32: 14486 | 16: 14419 | 0.5% |
| conv5_3x3, batch 8 | 32: 27776 | 16: 27750 | 0.1% |

The three problems beyond 3 % are 1x1 filters of short K at batch 8, where the model has the misses
above.
"""
