"""Writes docs/reference/roofline.md: lower bounds on the time, from FLOPs and bytes alone, for
problems that other documents analyse.

python -m tcir.tools.dev.roofline_page [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from math import ceil
from pathlib import Path

from tcir.machine.tensor_core.time_table import mma_cycles
from tcir.target import DEFAULT_TARGET
from tcir.time.constants import CONSTANTS, Constants
from tcir.time.rates import RATES_BY_KIND, pflops
from tcir.time.roofline import Roofline
from tcir.tools.dev.generated_page import write_or_check

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "docs/reference/roofline.md"
CHIP = DEFAULT_TARGET.name
NVFP4 = "mxf4nvf4"
GEMV_SHAPES = ((7168, 16384, 1), (4096, 7168, 8), (7168, 2048, 4))
GEMM_SHAPES = ((128, 7168, 16384), (128, 4096, 7168), (128, 7168, 2048), (4096, 4096, 4096))


def gemv(m: int, k: int, batch: int) -> Roofline:
    """Roofline of an NVFP4 GEMV: A, b and their scales (one per 16 elements) are read once, and an
    f16 result is written."""
    nbytes = batch * ((m + 1) * (k // 2 + k // 16) + 2 * m)
    return Roofline(CHIP, {NVFP4: 2 * m * k * batch}, nbytes)


def gemm(m: int, n: int, k: int, read: int = 0, written: int = 2) -> Roofline:
    """Roofline of an NVFP4 GEMM: A, B and their scales are read; in addition, `read` and `written`
    bytes are read and written per element of the output."""
    nbytes = (m + n) * (k // 2 + k // 16) + m * n * (read + written)
    return Roofline(CHIP, {NVFP4: 2 * m * n * k}, nbytes)


def issue_us(m: int, k: int, n: int) -> float:
    """Microseconds that all SMs together take to issue the mma of a GEMV, with K = 64 each and the
    columns padded to N."""
    constants = Constants(CHIP)
    tiles = ceil(m / 128) * (k // 64)
    cycles = mma_cycles(128, n, a_in_tmem=False)
    return tiles * cycles / DEFAULT_TARGET.sms / constants["clock"] / 1000


def _at(nbytes: int, gb_per_s: float) -> float:
    return nbytes / gb_per_s / 1000


def _ridges() -> str:
    lines = [
        "| kind | PFLOP/s, dense | ridge at 7.26 TB/s, FLOP/B | at 7.67 TB/s |",
        "|---|---|---|---|",
    ]
    peak = Constants(CHIP)["hbm-peak"]
    for kind in RATES_BY_KIND[CHIP]:
        ridge = Roofline(CHIP, {kind: 1}, 1).ridge
        by_pins = pflops(kind, CHIP) * 1e6 / peak
        lines.append(f"| {kind} | {pflops(kind, CHIP):.2f} | {ridge:.0f} | {by_pins:.0f} |")
    return "\n".join(lines)


def _problems() -> str:
    lines = [
        "| problem, NVFP4 | FLOP | bytes of HBM | FLOP/B | tensor pipe, us | HBM at 7.26 TB/s, us "
        "| at 7.67 TB/s | bound |",
        "|---|---|---|---|---|---|---|---|",
    ]
    named = [(f"GEMV (M, K, L) = {shape}", gemv(*shape)) for shape in GEMV_SHAPES]
    named += [(f"GEMM (M, N, K) = {shape}", gemm(*shape)) for shape in GEMM_SHAPES]
    named.append(("GEMM of 2048³ (see below), C of f32, D of bf16", gemm(2048, 2048, 2048, 4, 2)))
    for name, roof in named:
        limits = roof.limits
        pins = _at(roof.hbm_bytes, roof.constants["hbm-peak"])
        lines.append(
            f"| {name} | {sum(roof.flops.values()) / 1e9:.3g} G | {roof.hbm_bytes} "
            f"| {roof.intensity:.3g} | {limits[f'tensor pipe, {NVFP4}']:.3g} "
            f"| {limits['HBM']:.3g} | {pins:.3g} | {roof.bound.partition(',')[0]} |"
        )
    return "\n".join(lines)


def _gemv_analysis() -> str:
    roof = gemv(*GEMV_SHAPES[0])
    nbytes, peak = roof.hbm_bytes, roof.constants["hbm-peak"]
    floor = _at(nbytes, peak)
    slow = _at(nbytes, 1800)
    flops = sum(roof.flops.values())
    rows = [
        ("8.6 us need the padding of N gone, and an optimised layout",
         f"{nbytes / 1e6:.1f} MB at {peak / 1000:.2f} TB/s are {floor:.2f} us: plain bandwidth. "
         "Columns that pad the vector are zeros that TMA writes; they cost no traffic"),
        ("36.7 us at 1.8 TB/s", f"{slow:.1f} us, but 1.8 TB/s is NVLink; HBM has "
         f"{peak / 1000:.2f}, of which loads reach {roof.constants['hbm'] / 1000:.2f}"),
        ("at 70 % of the bandwidth 36.7 · 0.7 = 25 us",
         f"36.7 / 0.7 = {36.7 / 0.7:.0f} us: less bandwidth takes longer"),
        ("25 us are 2.4 times faster than 105", f"{105 / 25:.1f} times"),
        ("235 M operations at 1.18 T are 0.2 us",
         f"{flops / 1e6:.0f} MFLOP at {pflops(NVFP4, CHIP):.2f} PFLOP/s are "
         f"{flops / pflops(NVFP4, CHIP) / 1e9:.3f} us; with padding the tensor pipes take "
         f"{issue_us(7168, 16384, 8):.1f} us to issue at N = 8 and {issue_us(7168, 16384, 16):.1f} "
         "at N = 16 (an mma of 128 rows takes 34 or 36 cycles, for A's bytes), hidden behind HBM"),
        ("50, 25, 15 us: minimum, good, excellent",
         "; ".join(f"{us} us is {100 * floor / us:.0f} % of the bandwidth" for us in (50, 25, 15))
         + f"; 25 us are not \"about 80 %\". What is possible with loads of "
         f"{roof.constants['hbm'] / 1000:.2f} TB/s is {roof.microseconds:.1f} us "
         f"({100 * floor / roof.microseconds:.0f} %)"),
    ]  # fmt: skip
    return _table("as written", "as computed", rows)


def _gemm_analysis() -> str:
    roof = gemm(2048, 2048, 2048, 4, 2)
    flops, nbytes = sum(roof.flops.values()), roof.hbm_bytes
    rate = RATES_BY_KIND[CHIP][NVFP4].flop_per_cycle
    ridge = pflops(NVFP4, CHIP) * 1e6 / roof.constants["hbm-peak"]
    sms, clock = DEFAULT_TARGET.sms, roof.constants["clock"]
    step = 4 * mma_cycles(128, 128, a_in_tmem=False)
    rows = [
        ("a step of 128×128×256 takes about 256 cycles: 32,768 FLOP a cycle",
         f"four instructions of K = 64 of {step // 4} cycles: {step}, and {rate} FLOP"),
        ("with 128 SMs at 2.0 GHz about 8.4 TFLOPS",
         f"{rate * 128 * 2e9 / 1e15:.1f} PFLOP/s; with the {sms} SMs of a B200 at {clock:g} GHz "
         f"{pflops(NVFP4, CHIP):.2f}"),
        ("scales 2 KB each", f"{2048 * 2048 // 16 >> 10} KiB each: one per row and 16 k"),
        ("28 MB and 614 FLOP/B (C of f32 read, D of bf16 written)",
         f"{nbytes / 1e6:.1f} MB and {flops / nbytes:.0f} FLOP/B; 28 are MiB without scales, and "
         f"17.2 G / 28 M mixes both units"),
        ("compute-bound, for 614 is much",
         f"the ridge is at {ridge:.0f} FLOP/B: memory-bound. HBM takes "
         f"{roof.limits['HBM']:.2f} us, the tensor pipe "
         f"{roof.limits[f'tensor pipe, {NVFP4}']:.2f}; without C, and with D of NVFP4, it would be "
         f"{_quantised().intensity:.0f} FLOP/B"),
    ]  # fmt: skip
    return _table("as written", "as computed", rows)


def _quantised() -> Roofline:
    """Roofline of 2048³ with an NVFP4 result: half a byte per element, and one scale per 16
    elements."""
    plain = gemm(2048, 2048, 2048, 0, 0)
    return Roofline(CHIP, plain.flops, plain.hbm_bytes + 2048 * (1024 + 128))


def _tensor_memory() -> str:
    one, other = CONSTANTS["shift"].figures[CHIP].items()
    c = Constants(CHIP)
    columns = CONSTANTS["ld-column"].figures[CHIP]
    ld = ", ".join(
        f"{128 / figure.value:.0f} words (`ld-column={name}`)" for name, figure in columns.items()
    )
    words, lanes = 128 * c["mma-n-per-cycle"], c["mma-n-per-cycle"]
    paths = [
        ("`tcgen05.ld`, four warps", ld),
        ("`tcgen05.cp`", f"{c['cp-rate'] / 4:.0f} (`cp-rate`)"),
        (
            "accumulators of mma, M = 128",
            f"{words:.0f} read and {words:.0f} written: 128 lanes, {lanes:.0f} columns",
        ),
    ]
    answers = [
        (f"`shift={one[0]}`, the default: 8 banks of 64 rows in a sub-partition; bank n has the "
         "columns 8c + n", f"{one[1].value:g} cycle"),
        (f"`shift={other[0]}`: 4 banks of 128 rows", f"{other[1].value:g} cycles"),
    ]  # fmt: skip
    return f"""A document says that tensor memory delivers 128 words per cycle, one per lane. The
time model's constants are:

{_table("path", "words of 32 bits a cycle and SM", paths)}

How the banks of tensor memory are built is not published. The same document guesses two ways,
which are the two answers to the constant `shift`. They are an assumption of the time model, which
every choice that depends on it names:

{_table("answer", "a shift of 32 bytes of columns by one lane", answers)}

For ResNet-50's convolutions, [no choice of
schedule](../explanation/convolution.md#choosing-a-schedule) depends on this assumption."""


def _table(left: str, right: str, rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join([f"| {left} | {right} |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows)])


_LINE = (
    "roofline, modelled       231 MFLOP (f16), 1.28 MB of HBM, 181 FLOP/B: at least 0.176 us (HBM)"
    "; takes 4.65 us (latency), 4 % of the roofline"
)
"""Of README's first command."""
_PARTS = [
    ("FLOP, and kinds", "the sums of products of the input program: two FLOP for each product; the "
     "kind is that of the types before casts"),
    ("bytes of HBM", "the program's buffers, each once; if its launches move more bytes "
     "(workspaces, repacking), their number follows"),
    ("at least, and by what", "the longer of two times, that of HBM and that of the tensor cores, "
     "if all SMs work without a pause"),
    ("takes, and what limits it", "time of the whole grid by the [event-driven model]"
     "(../explanation/time.md) from the events of each launch's first CTAs, with the start of "
     "kernels and launches; *latency* means that no resource is busy for half of the time"),
    ("share", "the first time divided by the second"),
]  # fmt: skip


def document() -> str:
    """The text of docs/reference/roofline.md."""
    return f"""# Roofline

Generated by `python -m tcir.tools.dev.roofline_page`; a test keeps it current.

A program must execute at least its FLOPs, on the tensor cores' kind for its types, and must move at
least its bytes: inputs, constants and results, each once to or from HBM. The longer of the two
times is its roofline. Every number here is **modelled**, from [rates and constants with
sources](../explanation/time.md); nothing was measured on a B200.

## The line in a report

Every report of a program on tensors contains this line (`tc-opt --validate-each`, `kernel.report`,
`tcir.validate`):

```
{_LINE}
```

{_table("part", "source", _PARTS)}

If nothing is executed, the line ends at the bound. The JSON report also has the least times of the
executed launches, with padding and reloads, on the SMs that have a CTA: of the tensor pipe, of HBM,
and of an SM's port from L2, which bears the reloads. The line contains these times with `--jobs`,
or if the target has no constants for an operation. Products on CUDA cores count at the rate of the
kind that could multiply them; a kind that the target's tensor cores lack counts as f32 fma.
Additions, functions and comparisons are not counted.

## Ridges of a B200

{_ridges()}

## Problems

{_problems()}

## A plan for GEMV, computed again

A published plan of a GEMV for (M, K, L) = {GEMV_SHAPES[0]} is wrong in the places below. tcir's
own kernels are described in [gemv.md](../explanation/gemv.md).

{_gemv_analysis()}

## A document on GEMM, computed again

A published document on 2048³ in NVFP4 is wrong in places (more of it:
[gemm.md](../design-notes/gemm.md#a-plan-and-what-holds)):

{_gemm_analysis()}

## Tensor memory

{_tensor_memory()}
"""


def main(argv: Sequence[str] | None = None) -> int:
    return write_or_check(TARGET, document, "tcir.tools.dev.roofline_page", argv)


if __name__ == "__main__":
    sys.exit(main())
