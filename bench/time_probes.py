"""Small kernels that ask why the time model missed: for `time_hopper.py --probes`.

Each has one question. Loads and stores of one box at a time, of one SM and of all, give latencies,
idle and under load; more boxes in flight, the bend between. Loads of boxes that L2 has leave
memory out. Stores alone give the bandwidth of writes. Stores of threads as in the epilogue of
matmul-warp, in pieces of 32 and of 16 bytes, and the same bytes row by row, give the price of a
piece. matmul-warp with little K gives what does not grow with K, gemv-simt in L2 what memory does
not cost.
"""

from __future__ import annotations

from collections.abc import Iterator

import gemv_simt
import matmul_warp
from time_hopper import TARGET, Case, compiled, copy_case

TILES = 8
"""Number of tiles that a CTA stores."""
ROWS, COLUMNS = 128, 256
"""Rows and columns of a tile of 8 warps in 2 x 4, each 64 x 64."""
N = 2048
CTAS = (N // ROWS) * (N // COLUMNS)

ALL_SMS = (
    *(("load", kib, stages) for kib, stages in ((4, 1), (8, 1), (8, 2), (8, 3), (8, 8))),
    *(("store", kib, stages) for kib, stages in ((8, 1), (8, 4), (16, 8))),
    *(("copy", kib, stages) for kib, stages in ((8, 8), (8, 16), (16, 12))),
)
ONE_SM = (("load", 8, 1), ("store", 8, 1), ("copy", 8, 4))
IN_L2 = (("load", 8, 1), ("load", 8, 4), ("load", 16, 8))
DEPTHS = (256, 1024)
GEMVS = ((7168, 2048, 1), (1792, 8192, 1))


def store_ptx(itemsize: int, pieces: bool) -> str:
    """Threads store `TILES` matrices of N x N, as the epilogue of matmul-warp does or row by row.

    pieces: an instruction stores 8 columns of 8 rows; otherwise 64 columns of one
    """
    pitch, lane_bytes = N * itemsize, 2 * itemsize
    row, inside = ("%r6", "%r7") if pieces else ("0", "%r3")
    where = [
        8 * i * pitch + 8 * j * itemsize if pieces else (8 * i + j) * pitch
        for i in range(8)
        for j in range(8)
    ]
    form, value = ("v2.b32", "{%r3, %r4}") if itemsize == 4 else ("b32", "%r3")
    stores = "".join(f"\n st.global.{form} [%d1+{offset}], {value};" for offset in where)
    return f""".version 8.4
.target {TARGET}
.address_size 64
.visible .entry store(.param .u64 out) .reqntid 256
{{
 .reg .pred %p<2>; .reg .b32 %r<16>; .reg .b64 %d<4>;
 ld.param.u64 %d1, [out];
 mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
 and.b32 %r3, %r1, 31; shr.u32 %r4, %r1, 5;
 shr.u32 %r6, %r3, 2; and.b32 %r7, %r3, 3;
 shr.u32 %r8, %r2, 3; and.b32 %r9, %r2, 7;
 shr.u32 %r10, %r4, 2; and.b32 %r11, %r4, 3;
 mul.lo.u32 %r12, %r8, {ROWS}; mad.lo.u32 %r12, %r10, 64, %r12; add.u32 %r12, %r12, {row};
 mul.lo.u32 %r13, %r9, {COLUMNS * itemsize}; mad.lo.u32 %r13, %r11, {64 * itemsize}, %r13;
 mad.lo.u32 %r13, {inside}, {lane_bytes}, %r13;
 mad.lo.u32 %r13, %r12, {pitch}, %r13;
 cvt.u64.u32 %d2, %r13; add.s64 %d1, %d1, %d2;
 mov.u32 %r14, 0;
TILE:{stores}
 add.s64 %d1, %d1, {N * pitch};
 add.u32 %r14, %r14, 1; setp.lt.u32 %p1, %r14, {TILES}; @%p1 bra TILE;
 ret;
}}
"""


def store_case(itemsize: int, pieces: bool) -> Case:
    """A kernel that only stores, by threads."""
    from tcir.program.launch import Launch

    launch = Launch("store", (CTAS, 1, 1), (256, 1, 1), 0, ({"kind": "pointer", "arg": 0},))
    how = f"{8 if pieces else 1} x {8 * itemsize if pieces else 64 * itemsize} bytes"
    buffers = (((TILES, N, N), f"<u{itemsize}"),)
    return Case(f"store, {how}", store_ptx(itemsize, pieces), launch, buffers, 1)


def matmul(k: int, out: str) -> str:
    """A product of N x N x K."""
    text = matmul_warp.program(N, out)
    for a, b in (("%a: tensor<{}x{}xf16>", (N, k)), ("%b: tensor<{}x{}xf16>", (k, N))):
        text = text.replace(a.format(N, N), a.format(*b))
    both = "ins(%a, %b : tensor<{}x{}xf16>, tensor<{}x{}xf16>)"
    return text.replace(both.format(N, N, N, N), both.format(N, k, k, N))


def all_cases() -> Iterator[Case]:
    """All probes, compiled for `TARGET`."""
    for what, kib, stages in ALL_SMS:
        yield copy_case(what, kib, stages)
    for what, kib, stages in ONE_SM:
        yield copy_case(what, kib, stages, sms=1)
    for what, kib, stages in IN_L2:
        yield copy_case(what, kib, stages, in_l2=True)
    for itemsize in (4, 2):
        for pieces in (True, False):
            yield store_case(itemsize, pieces)
    for k in DEPTHS:
        for out, copy in (("f32", "tma"), ("f16", "tma"), ("f32", "cp.async")):
            name = f"matmul-warp {N}x{N}x{k} {out} copy={copy}"
            yield compiled(name, matmul(k, out), "matmul-warp", {"copy": copy})
    for shape in GEMVS:
        name = f"gemv-simt {'x'.join(map(str, shape))} rows=2 warps=4"
        case = compiled(name, gemv_simt.program(*shape), "gemv-simt", {"rows": 2, "warps": 4})
        yield case
        yield Case(f"{name}, in L2", case.ptx, case.launch, case.buffers, case.outputs, 0, False)
