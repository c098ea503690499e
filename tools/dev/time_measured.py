"""The part of docs/results/time-model.md about an H200: predicted cycles, measured cycles, and
their differences.

The tables of kernels are computed from bench/predictions_sm90.json, which was frozen before the
measurement, and from bench/measured_sm90.json, which contains the hash of the predictions. The
tables of probes are computed in the same way from bench/probes_sm90.json and
bench/probes_measured_sm90.json.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"
MISS = 0.1
SMS = 132
SEEN = (
    "matmul-warp 2048 f32", "matmul-warp 4096 f32", "matmul-warp 6144 f32", "matmul-warp 2048 f16",
    "matmul-warp 2048 f32 copy=cp.async", "matmul-warp 4096 f32 copy=cp.async",
    "gemv-simt 7168x16384x1 rows=2 warps=4", "gemv-simt 4096x7168x8 rows=4 warps=4",
    "gemv-simt 7168x2048x4 rows=2 warps=4",
)  # fmt: skip
"""Kernels whose times were in docs/ when the predictions were made."""
STEP = 64
"""K of a step of matmul-warp."""

_WHY = {
    ("matmul-warp 2048 f16", "matmul-warp 2048 f32 copy=cp.async"): (
        "the part of a CTA that does not grow with K takes twice as long as modelled (table "
        "above). To explain both rows of `cp.async`, stores of threads would have to take 137 and "
        "136 cycles a KB, not 52. f16 stores half as many bytes as f32 in as many pieces, which "
        "have 16 bytes instead of 32. The model counted bytes, so it predicted f16 3340 cycles "
        "faster than f32; on the H200 it is 3359 cycles slower. If stores were counted in sectors "
        "of 32 bytes, f16 would get the 71546 cycles of f32, an error of -10.5 %. *Hypothesis:* a "
        "store of eight short pieces costs by its pieces"
    ),
    ("gemv-simt 4096x7168x8 rows=2 warps=4", "gemv-simt 7168x2048x4 rows=2 warps=4"): (
        "memory and arithmetic each need about half of the time, and no source says how far they "
        "overlap. The model's rule is that a scheduler issues 16 instructions of a warp before it "
        "looks at other warps. With 1 instruction instead of 16 the model is 26 to 37 % too fast "
        "for the six GEMV kernels, with 64 between 7 % too fast and 27 % too slow. The loop has "
        "251 instructions in PTX and 250 in SASS, so instructions that ptxas removes are not the "
        "reason. `alu=independent` leaves errors of +6.8 % and +5.1 %. *Hypothesis:* single "
        "instructions between runs wait less than modelled, and memory and the integer pipe take "
        "longer"
    ),
    ("TMA load, 8 KiB x 4",): (
        "with 32 KiB in flight per SM, an SM completes a box every 569 cycles, so a box takes "
        "2278 cycles from its request to its end. In the model it takes 1356 cycles, however busy "
        "memory is. `hbm-latency` of 809 instead of 342 would explain this; at 4 KiB, with half "
        "as many bytes in flight, 390 would. SA's public curve has the same bend on a B200: with "
        "32 KB in flight it reaches 79 % of its peak, and the latency is 1.6 times that with 4 "
        "KB. *Hypothesis:* latency grows as memory saturates"
    ),
    ("TMA copy, 16 KiB x 8", "TMA copy, 8 KiB x 4"): (
        "the model gave all bytes the bandwidth of loads, 4560 B/ns, but a copy reads and writes. "
        "The bandwidth of a device copy, a constant of the model (`hbm=copy`, 3685 B/ns), is the "
        "right answer for these rows; in the frozen file it gives 148741 cycles for 16 KiB, an "
        "error of -0.4 %. For 8 KiB x 4 it leaves an error of -18.6 %: a stage is free when its "
        "store is complete, so at most 32 KiB are loaded or stored at a time. Without a limit of "
        "memory the model says 49216 cycles. On the H200 a box takes 1392 cycles, so the load and "
        "the store of one of four stages take 5570 together, compared with 2717 on an idle GPU: "
        "*hypothesis* as above"
    ),
}
"""Reason of every miss, with the model's results under other constants."""


@dataclass(frozen=True)
class ComparedCycles:
    """Predicted and measured cycles of a kernel."""

    name: str
    ctas: int
    predicted: int
    measured: tuple[float, ...]
    ghz: float

    @property
    def errors(self) -> tuple[float, ...]:
        """Errors of the predicted cycles, relative to the measured cycles of each run."""
        return tuple(self.predicted / cycles - 1 for cycles in self.measured)

    @property
    def missed(self) -> bool:
        """Whether the error in the first run counts as a miss."""
        return abs(self.errors[0]) > MISS


def measured(
    frozen: str = "predictions_sm90.json", judged: str = "measured_sm90.json"
) -> tuple[str, list[ComparedCycles]]:
    """The device and date of the measurement, and the rows. ValueError if the measurement was
    compared with other predictions."""
    predictions = (BENCH / frozen).read_bytes()
    document = json.loads((BENCH / judged).read_text())
    if sha256(predictions).hexdigest() != document["predictions"]:
        raise ValueError(f"{judged}: expected the hash of {frozen}")
    runs = [{row["name"]: row for row in run} for run in document["runs"]]
    where = f"{document['device']}, driver {document['driver']}, {document['date']}"
    return where, [
        ComparedCycles(
            kernel["name"],
            kernel["ctas"],
            kernel["cycles"],
            tuple(run[kernel["name"]]["us"] * run[kernel["name"]]["ghz"] * 1000 for run in runs),
            runs[0][kernel["name"]]["ghz"],
        )
        for kernel in json.loads(predictions)["kernels"]
    ]


def summary(rows: list[ComparedCycles], run: int = 0) -> tuple[float, float]:
    """Median and maximum of the absolute errors of one run."""
    sizes = [abs(row.errors[run]) for row in rows]
    return statistics.median(sizes), max(sizes)


def _table(rows: list[ComparedCycles]) -> str:
    lines = ["| kernel | predicted | measured | GHz | error | second run |", "|" + "---|" * 6]
    for row in rows:
        first, second = (f"{error:+.1%}" for error in row.errors)
        mark = "**" if row.missed else ""
        lines.append(
            f"| {row.name} | {row.predicted} | {row.measured[0]:.0f} | {row.ghz:.3f} | "
            f"{mark}{first}{mark} | {second} |"
        )
    return "\n".join(lines)


def per_step(rows: list[ComparedCycles], copy: str) -> list[tuple[float, float]]:
    """Predicted and measured cycles of a CTA of the pipeline matmul-warp: per step of K, and for
    everything outside these steps.

    Both numbers are derived from the sizes 2048 and 4096. These sizes have full waves, so the
    numbers do not contain the cycles that the model adds for waves.
    """
    constants = json.loads((BENCH / "predictions_sm90.json").read_text())["constants"]
    by_name = {row.name: row for row in rows}
    found = []
    pair = [by_name[f"matmul-warp {n} f32{copy}"] for n in (2048, 4096)]
    for both in ([row.predicted for row in pair], [row.measured[0] for row in pair]):
        of_cta = []
        for row, cycles in zip(pair, both, strict=True):
            waves = -(-row.ctas // SMS)
            around = constants["kernel-start"] + (waves - 1) * constants["cta-start"]
            of_cta.append((cycles - around) / waves)
        step = (of_cta[1] - of_cta[0]) / (2048 / STEP)
        found.append((step, of_cta[0] - 2048 / STEP * step))
    return found


def _steps(rows: list[ComparedCycles]) -> str:
    lines = [
        "| f32, 2048 and 4096 | a step: predicted | measured | the rest: predicted | measured |",
        "|" + "---|" * 5,
    ]
    for copy in ("", " copy=cp.async"):
        (step, rest), (step_measured, rest_measured) = per_step(rows, copy)
        lines.append(
            f"| matmul-warp{copy} | {step:.0f} | {step_measured:.0f} | {rest:.0f} | "
            f"{rest_measured:.0f} |"
        )
    return "\n".join(lines)


def _misses() -> str:
    lines = ["| miss | why |", "|---|---|"]
    lines += [f"| {'; '.join(names)} | {why} |" for names, why in _WHY.items()]
    return "\n".join(lines)


def section() -> str:
    """Section with predictions, measurements, and every miss."""
    where, rows = measured()
    explained = {name for names in _WHY for name in names}
    if explained != {row.name for row in rows if row.missed}:
        raise ValueError("time_measured: expected a reason for each miss, and for nothing else")
    (median, most), (again, _) = summary(rows), summary(rows, 1)
    unseen = [row for row in rows if row.name not in SEEN]
    return f"""
### Measured

{where}. The 20 kernels were measured after the predictions had been committed, and no prediction
has changed since. `bench/time_hopper.py --run` ran twice in one visit; the raw measurements are in
`bench/measured_sm90.json`. The measured cycles are the microseconds of one launch among many,
multiplied by the clock that was measured right after the launches. All copies copied correctly.
`gemv-simt`, here and in the probes, is the kernel of that day; since 2026-11-24 it loads ahead and
is faster ([gemv.md](../explanation/gemv.md)).

**The median error is {median:.1%} and the maximum {most:.1%}**; in the second run the median is
{again:.1%}. The target, a median of at most 10 %, is met. For the {len(unseen)} kernels whose times
could not be seen before, the median is {summary(unseen)[0]:.1%} and the maximum
{summary(unseen)[1]:.1%}. An error above 10 % is a **miss**: {sum(row.missed for row in rows)} of
the {len(rows)} kernels are misses.

{_table(rows)}

The errors of two parts of a kernel may cancel. The sizes 2048 and 4096 of `matmul-warp` differ by
32 steps of K = {STEP} and by the number of waves, so the times of both sizes give the cycles of one
step and those of the rest of a CTA:

{_steps(rows)}

A step needs 1709 cycles at the peak of `mma.sync`. On the H200, a step with TMA takes hardly more
cycles than that, and fewer than modelled, but the start and the epilogue of a CTA take longer than
modelled. At 4096 these two errors cancel, so the error of +0.1 % there is luck. At 1024 they nearly
cancel: 32 CTAs run, and the rest of a CTA takes 10490 cycles (if a step takes 1722). With 128 CTAs
at a time the rest takes longer, because they store at the same time.

The next table has the reason for every miss, and what the model says under other constants. No
constant was changed because of these misses.

{_misses()}
"""


def probes() -> str:
    """Section on the probes, kernels that were measured to explain the misses: predictions,
    measurements, and conclusions."""
    where, rows = measured("probes_sm90.json", "probes_measured_sm90.json")
    return f"""
### Probes of the misses

`bench/time_probes.py` has a kernel for each hypothesis above. `bench/probes_sm90.json` has
predictions for these kernels by the unchanged model, frozen before any of them ran: where a
hypothesis is right, the model's error is about as large as the hypothesis says. {where}. The probes
ran twice in one visit; the raw measurements are in `bench/probes_measured_sm90.json`. These errors
do not judge the model as the errors above do, because these kernels were chosen where the model
misses.

{_table(rows)}

The measurements lead to the following conclusions. Cycles of a box are for boxes of 8 KiB, computed
as (cycles - 2300) / 64.

- *Latency grows as memory saturates*: **confirmed**. A box takes 1007 cycles if only one SM loads,
  and 1168 if all SMs load one box at a time. It takes 1482 with two boxes in flight and 1859 with
  three; from eight boxes on, the bandwidth of 4150 B/ns is the limit. But the model's latencies,
  1382 and 1720 cycles, belong to no load this small: with one box they are a third too long, and
  for boxes in L2, which take 474 cycles, twice as long as measured. The two errors cancel at three
  boxes.
- *Writes have a bandwidth of their own*: **confirmed**, but it is not as low as that of GH's bulk
  stores. Stores alone reach 3490 B/ns and copies 3580 B/ns. So changes between reads and writes
  cost nothing more, and `hbm=copy`, 3685 B/ns, is 3 to 5 % too high for both. On an idle GPU the
  wait for a store takes 336 cycles; the model waits for memory, which takes 1413.
- *A store of short pieces costs by its pieces*: **confirmed**, and half of a sector costs more than
  a whole sector. A store of 8 x 32 bytes takes 1.4 times as long as a row of as many bytes. A store
  of 8 x 16 bytes takes 3.8 times as long as a row of as many bytes, and 1.5 times as long as 8 x 32
  bytes, which are twice as many.
- *What does not grow with K*: the two sizes differ by 12 steps, which take 1850 cycles each in f32
  and 1830 in f16 (1726 and 1850 modelled). The rest takes 18.0 thousand cycles in f32 and 21.9
  thousand in f16 (13.8 and 8.4 thousand modelled). The largest error is that of the f16 epilogue,
  which stores pieces of 16 bytes.
- *Overlap in GEMV*: with data in L2 the model is 13 and 10 % too fast, with data from memory 19 and
  32 %. So arithmetic takes longer than modelled, and it overlaps less with memory.

Nothing in the model was changed for the kernels above. Since 2026-11-26 `hbm-latency` of sm_90 is
that of the box on one SM, and `tma-latency` that of the box in L2; [other
kernels](#kernels-of-wgmma) judge these values. The model's wait for a store and its cost of short
pieces are unchanged.
"""
