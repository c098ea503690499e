"""The part of docs/results/time-model.md on an H200: predictions, measurements, their differences.

Tables are computed from bench/predictions_sm90.json, which was frozen before the measurement, and
bench/measured_sm90.json, which contains the hash of the former; those of the probes likewise from
bench/probes_sm90.json and bench/probes_measured_sm90.json.
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
        "the part of a CTA that does not grow with K is twice as long as modelled (table above). "
        "To explain both rows of `cp.async`, stores of threads would have to take 137 and 136 "
        "cycles a KB, not 52. f16 stores half the bytes in as many pieces, of 16 bytes and not of "
        "32: the model, which counted bytes, made it 3340 cycles faster than f32, the H200 3359 "
        "slower. At a price by sectors of 32 bytes it has the 71546 of f32, -10.5 %. *Hypothesis:* "
        "a store of eight short pieces costs by its pieces"
    ),
    ("gemv-simt 4096x7168x8 rows=2 warps=4", "gemv-simt 7168x2048x4 rows=2 warps=4"): (
        "memory and arithmetic each need about half of the time, and how far they overlap is a "
        "rule without a source: that a scheduler issues 16 instructions of a warp before it looks "
        "at others. With 1 the six GEMV are 26 to 37 % too fast, with 64 between 7 % too fast and "
        "27 % too slow. The loop has 251 instructions in PTX and 250 in SASS: what ptxas removes "
        "is not the reason. `alu=independent` leaves +6.8 % and +5.1 %. *Hypothesis:* single "
        "instructions between runs wait less than modelled, and memory and the integer pipe take "
        "longer"
    ),
    ("TMA load, 8 KiB x 4",): (
        "with 32 KiB in flight per SM, an SM has a box each 569 cycles: 2278 from the request of "
        "one to its end, while the model has 1356, the same however busy memory is. "
        "`hbm-latency` of 809 would explain it, not 342; at 4 KiB, half of that in flight, 390. "
        "SA's public curve has the same bend on a B200: with 32 KB in flight 79 % of its peak, "
        "1.6 times the latency that 4 KB have. *Hypothesis:* latency grows as memory saturates"
    ),
    ("TMA copy, 16 KiB x 8", "TMA copy, 8 KiB x 4"): (
        "all bytes were given the bandwidth of loads, 4560 B/ns. A copy reads and writes: a device "
        "copy, a constant of the model (`hbm=copy`, 3685 B/ns), is the answer to ask for here, and "
        "gave 148741 cycles in the frozen file, -0.4 %, for 16 KiB. With 8 KiB x 4 it leaves "
        "-18.6 %: a stage is free when its store is complete, so 32 KiB are loaded or stored at a "
        "time; without a limit of memory the model says 49216 cycles. A box takes 1392 cycles, so "
        "a load and a store together 5570, against 2717 of an idle GPU: *hypothesis* as above"
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
        """Whether the error in the first run is a miss."""
        return abs(self.errors[0]) > MISS


def measured(
    frozen: str = "predictions_sm90.json", judged: str = "measured_sm90.json"
) -> tuple[str, list[ComparedCycles]]:
    """Device and date of the measurement, and the rows. ValueError if the measurement was compared
    with other predictions."""
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
    """Median and maximum of the absolute errors."""
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
    """Cycles of a CTA of matmul-warp, predicted and measured: per step of K, and for the rest.

    Both follow from the sizes 2048 and 4096, which have full waves, so without the cycles that the
    model adds for waves.
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

{where}; after the predictions were
committed, none of them changed since. Two runs of `bench/time_hopper.py --run` in one visit, raw in
`bench/measured_sm90.json`. Cycles are microseconds of a launch among many times the clock measured
right after. All copies copied. `gemv-simt`, here and in the probes, is the kernel of that day;
since 2026-11-24 it loads ahead and is faster ([gemv.md](../explanation/gemv.md)).

**Median error {median:.1%}, maximum {most:.1%}**; second run {again:.1%}. The target, a median of
at most 10 %, is met. Of the {len(unseen)} kernels whose times could not be seen before, the median
is {summary(unseen)[0]:.1%}, the maximum {summary(unseen)[1]:.1%}. Above 10 % is a **miss**:
{sum(row.missed for row in rows)} of {len(rows)}.

{_table(rows)}

Errors may cancel. `matmul-warp` at 2048 and 4096 differ by 32 steps of K = {STEP} and by waves;
this gives the cycles of a step and of all else:

{_steps(rows)}

A step needs 1709 cycles at the peak of `mma.sync`. The H200 with TMA takes hardly more, and
less than modelled; its start and epilogue take longer than modelled. At 4096 the two cancel, so
its +0.1 % is luck; at 1024, where 32 CTAs run and the rest of a CTA is 10490 cycles (at 1722 a
step), they nearly do. With 128 CTAs at a time the rest is longer: they store together.

Every miss, with what the model says under other constants. No constant was changed for them.

{_misses()}
"""


def probes() -> str:
    """Section on the probes of the misses: predictions, measurements, and conclusions."""
    where, rows = measured("probes_sm90.json", "probes_measured_sm90.json")
    return f"""
### Probes of the misses

`bench/time_probes.py` has a kernel for each hypothesis above; `bench/probes_sm90.json` was frozen
before any ran, from the same model: where a hypothesis is right, the model is wrong by about what
it says. {where}; two runs in one visit, raw in `bench/probes_measured_sm90.json`.
The errors do not judge the model as those above do: these kernels were chosen where it misses.

{_table(rows)}

Boxes of 8 KiB, cycles a box: (cycles - 2300) / 64.

- *Latency grows as memory saturates*: **confirmed**. A box takes 1007 cycles on one SM, 1168 on
  all, 1482 with two in flight, 1859 with three; from eight on it is bandwidth, 4150 B/ns. But the
  latency of the model, 1382 and 1720, belongs to no load this small: with one box it is a third
  too long, for boxes in L2, which take 474, twice. The two misses cancel at three boxes.
- *Writes have a bandwidth of their own*: **confirmed**, and not as low as GH's bulk stores. Stores
  alone reach 3490 B/ns, copies 3580: a change between reads and writes costs nothing beside that,
  and `hbm=copy`, 3685 B/ns, is 3 to 5 % high for both. Waiting for a store to complete takes 336
  cycles on an idle GPU, where the model waits for memory: 1413.
- *A store of short pieces costs by its pieces*: **confirmed**, and half of a sector costs more than
  a whole one. 8 x 32 bytes takes 1.4 times as long as rows of as many bytes, 8 x 16 bytes 3.8 times
  as long as rows and 1.5 times as long as 8 x 32, which are twice the bytes.
- *What does not grow with K*: 12 steps take 1850 cycles each, of f16 1830 (1726 and 1850 modelled);
  the rest is 18.0 and 21.9 thousand cycles, 13.8 and 8.4 modelled. The f16 epilogue, of 16-byte
  pieces, is the part that is missed most.
- *Overlap in GEMV*: with its data in L2 the model is 13 and 10 % too fast, with memory 19 and 32 %:
  arithmetic takes longer than modelled, and the two overlap less.

Nothing was changed for these kernels. Since 2026-11-26 `hbm-latency` and `tma-latency` of sm_90
are those of the box on one SM and of the box in L2, and are judged by [other
kernels](#kernels-of-wgmma); the wait for a store and the price of short pieces are as they were.
"""
