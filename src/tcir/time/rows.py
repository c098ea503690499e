"""Public measurements of Blackwell, each with the prediction of the model.

A row from which a constant was determined is marked *fit*: its error tells how well one number
describes the source. All other rows were held out. No constant was fitted to a held-out row or to
the time of a whole kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tcir.time.benchmarks import (
    KB,
    chain,
    commit_and_wait,
    copies,
    copy_beside_mma,
    interval,
    one_box,
    throughput,
    tmem_bandwidth,
    tmem_load,
    tmem_store,
)
from tcir.time.constants import Constants
from tcir.time.kernels import ELEMENT, Gemm
from tcir.time.waves import ModelledTime, modelled_time

STEADY = 3
"""Tiles of a persistent kernel after which each takes as long as the previous one."""


@dataclass(frozen=True)
class Row:
    """One measurement.

    clock: the answer to the constant ``clock`` for the clock at which the source measured
    why:   explanation of a large error, as far as it is known
    """

    group: str
    name: str
    measured: float
    unit: str
    predict: Callable[[Constants], float]
    fit: bool = False
    clock: str = "boost"
    why: str = ""


def gemm_tflops(kernel: Gemm, size: tuple[int, int, int], grid: int, c: Constants) -> float:
    """Modelled TFLOP/s of a launch. `grid`: number of CTAs of a persistent kernel; 0 for a kernel
    that is not persistent.
    """
    m, n, k = size
    ctas = kernel.launch_ctas(m, n)
    unique = ELEMENT * (m * k + n * k + m * n)

    def time(tiles: int) -> ModelledTime:
        share = unique * (grid or ctas) * tiles // ctas
        return modelled_time(kernel.stream(k, tiles), c, grid or ctas, unique_bytes=share)

    tiles = -(-ctas // grid) if grid else 1
    some = time(min(tiles, STEADY))
    cycles = some.cycles
    if tiles > STEADY:
        cycles += (tiles - STEADY) * (cycles - time(STEADY - 1).cycles)
    return 2 * m * n * k / cycles * some.clock_ghz / 1000


def _one_sm(kernel: Gemm, flop_factor: int, c: Constants) -> float:
    """TFLOP/s of the main loop of one CTA alone; `flop_factor` 2 for 8-bit operands."""
    short, long = (modelled_time(kernel.stream(s * kernel.k), c, 1).cycles for s in (32, 64))
    flop = 2 * 128 * kernel.n * kernel.k * 32 * flop_factor
    return flop / (long - short) * c["clock"] / 1000


_THOR = "another chip (sm_110a): a round trip of commit and wait takes 90 cycles longer there; "
_THOR += "with its own figures (mma-latency=th) errors are at most 12 %, in the median 1 % and 4 %"
_KNEE = "latency and bandwidth meet: loads queue, and the model has no queue in global memory"
_FAR = "the model's latency is that of the loaded fit row, too long when few bytes are in flight"

MMA = [
    Row("mma", f"SS, M = 128, N = {n}", want, "cycles", partial(chain, n=n), True)
    for n, want in ((64, 168), (128, 200), (256, 264))
]
MMA += [
    Row("mma", f"TS, M = 128, N = {n}", want, "cycles", partial(chain, n=n, a_in="tmem"), True)
    for n, want in ((64, 136), (128, 168), (256, 232))
]
MMA += [
    Row("mma", f"SS, M = 64, N = {n}", want, "cycles", partial(chain, n=n, m=64), True)
    for n, want in ((64, 152), (256, 248))
]
MMA += [
    Row("mma", f"SS, pair, M = {m}, N = {n}", want, "cycles", partial(chain, n=n, m=m, group=2),
        True)
    for m, n, want in (
        (128, 64, 173), (128, 128, 197), (128, 256, 229),
        (256, 64, 202), (256, 128, 234), (256, 256, 298),
    )
]  # fmt: skip
MMA += [
    Row("mma", f"16 TS in a chain, {what}", want + 15 * each, "cycles",
        partial(chain, count=16, n=n, m=128 * group, group=group, a_in="tmem", kind=kind), True)
    for what, group, n, kind, want, each in (
        ("M = 128, N = 256", 1, 256, "f16", 243.4, 128),
        ("pair, M = 256, N = 256", 2, 256, "f16", 277.4, 128),
        ("pair, M = 256, N = 64", 2, 64, "f16", 181.4, 32),
        ("pair, M = 256, N = 256, mxf4", 2, 256, "mxf4", 282.4, 128),
    )
]  # fmt: skip
INTERVALS = [
    Row("mma interval", f"{'TS' if a == 'tmem' else 'SS'}, {'pair, ' if group == 2 else ''}"
        f"M = {m}, N = {n}", want, "cycles", partial(interval, n=n, m=m, group=group, a_in=a), True,
        why="" if want not in (25, 27, 18) else "SA rounds its averages down, about 1 too low")
    for group, m, a, pairs in (
        (1, 128, "smem", ((64, 48), (96, 56), (128, 64), (256, 128))),
        (1, 128, "tmem", ((64, 32), (128, 64), (256, 128))),
        (1, 64, "smem", ((64, 32), (128, 64), (256, 128))),
        (2, 256, "smem", ((64, 43), (80, 46), (96, 50), (112, 56), (128, 64), (256, 128))),
        (2, 128, "smem", ((64, 25), (80, 27), (96, 29), (112, 30), (128, 32), (256, 64))),
        (2, 128, "tmem", ((64, 18), (80, 20), (128, 32))),
    )
    for n, want in pairs
]  # fmt: skip
COPIES = [
    Row("cp", "4 KB, first", 168, "cycles", partial(copies, nbytes=4 * KB), True),
    Row("cp", "4 KB, each of 9", 65.5 * 8 + 168, "cycles", partial(copies, nbytes=4 * KB, count=9),
        True),
]  # fmt: skip
TMA = [
    Row("TMA", f"{kb} KB, light", want, "cycles", partial(one_box, nbytes=kb * KB, all_sms=False),
        True)
    for kb, want in ((16, 543), (32, 658), (64, 925))
]  # fmt: skip
TMA += [
    Row("TMA", f"{kb} KB, all SMs, global memory", want, "cycles",
        partial(one_box, nbytes=kb * KB, all_sms=True), True,
        why="" if kb == 1 else "only the first row fixed the latency; from 16 KB on the source is "
        "slower than its own throughput rows allow")
    for kb, want in ((1, 1413), (2, 1606), (4, 1845), (8, 2088), (16, 3590), (32, 4586),
                     (64, 5405), (128, 9559))
]  # fmt: skip
TMEM = [
    Row("TMEM", "load 64 columns", 179, "cycles", partial(tmem_load, columns=64), True),
    Row("TMEM", "load 128 columns", 532, "cycles", partial(tmem_load, columns=128), True,
        why="NV's two figures do not fit one latency and one rate (ld-latency=128)"),
]  # fmt: skip
TMEM += [
    Row("TMEM", f"store {n} columns", want, "cycles", partial(tmem_store, columns=n), True)
    for n, want in ((1, 13), (16, 21.6), (32, 31.6), (64, 49.8))
]

HELD_THOR = [
    Row("TH: k mma, then one wait", f"N = {n}, k = {k}", want, "cycles",
        partial(chain, n=n, count=k), why=_THOR)
    for n, k, want in ((256, 2, 492), (256, 4, 742), (256, 8, 1263), (256, 16, 2292),
                       (128, 8, 767), (128, 16, 1268), (64, 4, 403), (64, 8, 590), (64, 16, 1030))
]  # fmt: skip
HELD_THOR += [
    Row("TH: cp of 2 KB and mma", what, want, "cycles", partial(copy_beside_mma, n=n, **how),
        why=_THOR)
    for what, n, how, want in (
        ("N = 256, together", 256, {}, 398),
        ("N = 128, together", 128, {}, 310),
        ("N = 256, waits between", 256, {"how": "apart"}, 617),
        ("N = 256, from two warps", 256, {"how": "warps"}, 440),
        ("N = 256, 16 steps, each", 256, {"steps": 16}, 396.5),
    )
]  # fmt: skip
HELD_SMALL = [
    Row("UT, B3", "commit and wait alone", 118.5, "cycles", commit_and_wait,
        why="SA's 100 cycles after an mma and UT's 118.5 cycles without one disagree"),
    Row("UT, B3", "tcgen05.ld of one warp", 57, "B/clk", tmem_bandwidth),
]  # fmt: skip
HELD_FLIGHT = [
    Row("SA: bytes in flight, per SM", f"{kb} KB", want, "TB/s",
        partial(throughput, in_flight=kb * KB), why=why)
    for kb, want, why in ((4, 1.15, _FAR), (8, 2.1, _FAR), (16, 3.6, _FAR), (32, 5.65, _KNEE),
                          (64, 7.14, ""), (128, 7.13, ""))
]  # fmt: skip
_MAIN_LOOP = Gemm("main loop", stages=4)
ONE_SM = [
    Row("SA: GEMM on one SM", "bf16, 128x256", 10.46, "TFLOP/s", partial(_one_sm, _MAIN_LOOP, 1),
        True),
    Row("SA: GEMM on one SM", "bf16, 128x128", 10.19, "TFLOP/s",
        partial(_one_sm, Gemm("main loop", n=128, stages=6), 1), True),
]  # fmt: skip
HELD_ONE_SM = [
    Row("SA: GEMM on one SM", "fp8, 128x256", 20.64, "TFLOP/s", partial(_one_sm, _MAIN_LOOP, 2)),
]

_POWER = (
    "the model assumes 1.85 GHz, but no source states its clock: 1.2 to 1.4 GHz would explain each "
    "row. Power is not "
)
_POWER += (
    "modelled, and CUTLASS's charts show large GEMMs at 94 % of the peak at the clock they hold"
)
_ROWS16 = "a row of 16 bytes costs more than its sector; one per cycle of the TMA engine would fit"
_FOUR = (4096, 4096, 4096)
_EIGHT = (8192, 8192, 8192)
_LADDERS: tuple[tuple[str, str, float, Gemm, tuple[int, int, int], int, str], ...] = (
    ("gau-nernst, 4096", "v1a first tcgen05", 255.7,
     Gemm("v1a", k=256, stages=1, roles=False, each=True, inner=16, boxes=32), _FOUR, 0, _ROWS16),
    ("gau-nernst, 4096", "v2b 128-byte swizzle", 721.0,
     Gemm("v2b", k=256, stages=1, roles=False, each=True), _FOUR, 0,
     "the loads of a stage follow the mma of the one before without overlap; a light load is "
     "faster than the port's 62 B/clk"),
    ("gau-nernst, 4096", "v3 two stages", 914.4,
     Gemm("v3", k=128, stages=2, roles=False, ahead=1, each=True), _FOUR, 0,
     "one warp issues loads and mma; the cost of its other instructions is not in the stream"),
    ("gau-nernst, 4096", "v4 roles", 1053.6, Gemm("v4", n=128), _FOUR, 0, _POWER),
    ("gau-nernst, 4096", "v5 pairs", 1169.7, Gemm("v5", pair=True), _FOUR, 0, _POWER),
    ("gau-nernst, 4096", "v6 persistent", 1273.3, Gemm("v6", pair=True, accumulators=2), _FOUR,
     148, _POWER),
    ("gau-nernst, 4096", "v7b 128 CTAs", 1316.2,
     Gemm("v7b", pair=True, accumulators=2, columns=16), _FOUR, 128, _POWER),
    ("CuTe DSL tour, 8192", "naive", 450,
     Gemm("naive", stages=4, roles=False, columns=64, store="element"), _EIGHT, 0,
     "the kernel waits for each load alone; a latency above that of a light load would fit"),
    ("CuTe DSL tour, 8192", "prefetch", 880,
     Gemm("prefetch", stages=4, roles=False, ahead=2, columns=64, store="element"), _EIGHT, 0, ""),
    ("CuTe DSL tour, 8192", "vector stores", 1400,
     Gemm("vector", stages=4, roles=False, ahead=2, columns=64), _EIGHT, 0, ""),
)  # fmt: skip
_MOSAIC: tuple[tuple[str, float, Gemm, int, str], ...] = (
    ("basic", 37.62, Gemm("basic", n=128, stages=6, roles=False, ahead=4, columns=64, store="tma"),
     0, "a warpgroup does everything; the cost of its other instructions is not in the stream"),
    ("warp specialisation", 45.47, Gemm("roles", n=128, stages=6, columns=64, store="tma"), 0,
     _POWER),
    ("tiled epilogue", 55.82, Gemm("tiled", n=128, stages=6, columns=32, store="tiled"), 0, ""),
    ("pairs", 59.41, Gemm("pairs", stages=6, pair=True, columns=32, store="tiled"), 0, _POWER),
    ("persistent", 61.46, Gemm("persistent", stages=6, pair=True, columns=32, store="tiled"), 148,
     _POWER),
    ("epilogue warpgroup", 63.38,
     Gemm("epilogue", stages=6, pair=True, columns=32, store="tiled", accumulators=2), 148, _POWER),
)  # fmt: skip
_PERCENT = 148 * 8192 * 1.85 / 1e5
"""TFLOP/s that are one per cent of the tensor cores' peak, at the clock of the prediction."""
HELD_LADDERS = [
    Row(f"ladder: {group}", name, want, "TFLOP/s", partial(gemm_tflops, kernel, size, grid),
        clock="load", why=why)
    for group, name, want, kernel, size, grid, why in _LADDERS
]  # fmt: skip
HELD_LADDERS += [
    Row("ladder: Mosaic, 4096x8192x4096", name, want * _PERCENT, "TFLOP/s",
        partial(gemm_tflops, kernel, (4096, 8192, 4096), grid), clock="load", why=why)
    for name, want, kernel, grid, why in _MOSAIC
]  # fmt: skip
_BEST = Gemm("best", pair=True, accumulators=2, columns=16)
HELD_ENDS = [
    Row("end points", name, want, "TFLOP/s", partial(gemm_tflops, _BEST, size, grid), clock="load",
        why=_POWER)
    for name, want, size, grid in (
        ("cuBLAS bf16 4096", 1358.7, _FOUR, 128),
        ("cuBLAS bf16 8192", 1414.3, _EIGHT, 148),
        ("gau-nernst v7b 8192", 1238.7, _EIGHT, 128),
        ("gau-nernst v7b 2048", 930.2, (2048, 2048, 2048), 128),
    )
]  # fmt: skip

ROWS = [
    *MMA, *INTERVALS, *COPIES, *TMA, *TMEM, *ONE_SM,
    *HELD_THOR, *HELD_SMALL, *HELD_FLIGHT, *HELD_ONE_SM, *HELD_LADDERS, *HELD_ENDS,
]  # fmt: skip
"""All rows of Blackwell; fit rows first."""
