"""ldmatrix, stmatrix and mma.sync against the layouts of PTX ISA 9.7.14 and exact arithmetic."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcir.machine.numerics.warp_mma import AMPERE, BLACKWELL, HOPPER, VOLTA, generation
from tcir.run import RunReport, run_ptx

from .conftest import HEADER

RNG = np.random.default_rng(17)

MOVE = """
.visible .entry move(.param .u64 x, .param .u64 y)
{{
 .reg .pred %p; .reg .b32 %r<16>; .reg .b64 %rd<6>;
 .shared .align 128 .b8 tile[512];
 ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y];
 mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 16;
 add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
 mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3;
 ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd1];
 {body}
 st.global.v4.b32 [%rd2], {{%r8, %r9, %r10, %r11}};
 ret;
}}
"""
LOAD = """
 st.shared.v4.b32 [%r2], {{%r4, %r5, %r6, %r7}};
 bar.warp.sync -1;
 mov.b32 %r8, 0; mov.b32 %r9, 0; mov.b32 %r10, 0; mov.b32 %r11, 0;
 ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{regs}}}, [%r2];
"""
STORE = """
 mov.b32 %r8, 0; st.shared.v4.b32 [%r2], {{%r8, %r8, %r8, %r8}};
 bar.warp.sync -1;
 stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r2], {{{regs}}};
 bar.warp.sync -1;
 ld.shared.v4.b32 {{%r8, %r9, %r10, %r11}}, [%r2];
"""
FORMS = [(count, trans) for count in (1, 2, 4) for trans in ("", ".trans")]


def loader(count: int, trans: str) -> str:
    regs = ", ".join(f"%r{8 + n}" for n in range(count))
    return HEADER + MOVE.format(body=LOAD.format(count=count, trans=trans, regs=regs))


def storer(count: int, trans: str) -> str:
    regs = ", ".join(f"%r{4 + n}" for n in range(count))
    return HEADER + MOVE.format(body=STORE.format(count=count, trans=trans, regs=regs))


def held(lane: int, half: int, trans: str) -> tuple[int, int]:
    """Row and column of an 8 x 8 matrix that a lane has in this half of its register."""
    row, column = lane // 4, 2 * (lane % 4) + half
    return (column, row) if trans else (row, column)


@pytest.mark.parametrize("count,trans", FORMS)
def test_ldmatrix(count: int, trans: str) -> None:
    rows = np.arange(256, dtype=np.uint16).reshape(32, 8) * 7 + 3  # lane i brings row i
    out = np.zeros((32, 4), np.uint32)
    report = run_ptx(loader(count, trans), grid=1, block=32, args=[rows, out])
    assert report.ok, report
    want = np.zeros((32, 4, 2), np.uint16)
    for lane in range(32):
        for n in range(count):
            for half in range(2):
                row, column = held(lane, half, trans)
                want[lane, n, half] = rows[8 * n + row, column]
    assert (out.view(np.uint16).reshape(32, 4, 2) == want).all()


@pytest.mark.parametrize("count,trans", FORMS)
def test_stmatrix(count: int, trans: str) -> None:
    regs = np.arange(256, dtype=np.uint16).reshape(32, 4, 2) * 5 + 1
    out = np.zeros((32, 8), np.uint16)
    report = run_ptx(storer(count, trans), grid=1, block=32, args=[regs, out])
    assert report.ok, report
    want = np.zeros((32, 8), np.uint16)
    for lane in range(32):
        for n in range(count):
            for half in range(2):
                row, column = held(lane, half, trans)
                want[8 * n + row, column] = regs[lane, n, half]
    assert (out == want).all()


def test_misaligned_row() -> None:
    ptx = loader(1, "").replace(", [%r2];", ", [%r2+8];")
    report = run_ptx(ptx, grid=1, block=32, args=[np.ones(256, "u2"), np.zeros(128, "u4")])
    assert [e.code for e in report.errors] == ["misaligned-address"]


# --- mma.sync ---------------------------------------------------------------------------------

MMA = """
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)
{{
 .reg .b32 %a<8>; .reg .b32 %b<8>; .reg .b32 %c<8>; .reg .b32 %t; .reg .b64 %rd<8>;
 ld.param.b64 %rd1, [a]; ld.param.b64 %rd2, [b]; ld.param.b64 %rd3, [c];
 mov.u32 %t, %tid.x;
 mul.wide.u32 %rd4, %t, {abytes}; add.s64 %rd1, %rd1, %rd4;
 mul.wide.u32 %rd4, %t, {bbytes}; add.s64 %rd2, %rd2, %rd4;
 mul.wide.u32 %rd4, %t, {cbytes}; add.s64 %rd3, %rd3, %rd4;
 {loads}
 mma.sync.aligned.{shape}.row.col{sat}.{d}.{a}.{b}.{d} {{{cr}}}, {{{ar}}}, {{{br}}}, {{{cr}}};
 {stores}
 ret;
}}
"""
DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8,
    "u8": np.uint8,
    "f32": np.float32,
    "s32": np.int32,
}
CASES = [
    ("m16n8k16", "f32", "f16", "f16"),
    ("m16n8k16", "f16", "f16", "f16"),
    ("m16n8k16", "f32", "bf16", "bf16"),
    ("m16n8k8", "f32", "f16", "f16"),
    ("m16n8k8", "f16", "f16", "f16"),
    ("m16n8k8", "f32", "bf16", "bf16"),
    ("m16n8k8", "f32", "tf32", "tf32"),
    ("m16n8k4", "f32", "tf32", "tf32"),
    ("m16n8k32", "f32", "e4m3", "e5m2"),
    ("m16n8k16", "f32", "e5m2", "e4m3"),
    ("m16n8k32", "f16", "e4m3", "e4m3"),
    ("m16n8k32", "s32", "s8", "u8"),
    ("m16n8k16", "s32", "u8", "s8"),
]


def place(operand: str, per: int, i: int, lane: int) -> tuple[int, int]:
    """Row and column of element i of a lane, as the figures of PTX ISA 9.7.14.5 show them."""
    g, c = lane >> 2, lane & 3
    if operand == "c":
        return g + 8 * (i >> 1), 2 * c + (i & 1)
    word, part = divmod(i, per)
    if operand == "a":
        return g + 8 * (word & 1), per * c + part + 4 * per * (word >> 1)
    return per * c + part + 4 * per * word, g


def registers(matrix: Any, operand: str, bits: int) -> Any:
    """What each lane holds of a matrix: [32, elements]."""
    per = 32 // bits
    return np.array(
        [
            [matrix[place(operand, per, i, lane)] for i in range(matrix.size // 32)]
            for lane in range(32)
        ],
        matrix.dtype,
    )


def mma_kernel(shape: str, d: str, a: str, b: str, sat: str = "") -> str:
    k = int(shape[6:])
    width = np.dtype(DTYPES[a]).itemsize
    na, nb, nc = 4 * k * width // 32, 2 * k * width // 32, 2 if d == "f16" else 4

    def names(letter: str, n: int) -> str:
        return ", ".join(f"%{letter}{i}" for i in range(n))

    counts = (("a", 1, na), ("b", 2, nb), ("c", 3, nc))
    loads = "".join(
        f"ld.global.b32 %{x}{i}, [%rd{n}+{4 * i}];" for x, n, count in counts for i in range(count)
    )
    stores = "".join(f"st.global.b32 [%rd3+{4 * i}], %c{i};" for i in range(nc))
    return MMA.format(
        abytes=4 * na, bbytes=4 * nb, cbytes=4 * nc, loads=loads, stores=stores, shape=shape,
        sat=sat, d=d, a=a, b=b, ar=names("a", na), br=names("b", nb), cr=names("c", nc),
    )  # fmt: skip


def multiply(
    shape: str,
    d: str,
    a: Any,
    b: Any,
    c: Any,
    names: tuple[str, str],
    target: str = "sm_100a",
    sat: str = "",
) -> tuple[RunReport, Any]:
    """The kernel's 16 x 8 result."""
    width = 8 * a.dtype.itemsize
    lanes = [np.ascontiguousarray(registers(m, x, width)) for m, x in ((a, "a"), (b, "b"))]
    out = np.ascontiguousarray(registers(c, "c", 16))
    ptx = HEADER.replace("sm_100a", target) + mma_kernel(shape, d, *names, sat)
    report = run_ptx(ptx, grid=1, block=32, args=[*lanes, out])
    result = np.zeros_like(c)
    for lane in range(32):
        for i in range(4):
            result[place("c", 2, i, lane)] = out[lane, i]
    return report, result


@pytest.mark.parametrize("shape,d,a,b", CASES)
def test_mma_of_small_integers(shape: str, d: str, a: str, b: str) -> None:
    k = int(shape[6:])
    low = 0 if "u8" in (a, b) else -3
    x = RNG.integers(low, 4, (16, k)).astype(DTYPES[a])
    y = RNG.integers(low, 4, (k, 8)).astype(DTYPES[b])
    z = RNG.integers(-9, 10, (16, 8)).astype(DTYPES[d])
    report, got = multiply(shape, d, x, y, z, (a, b))
    assert report.ok, report
    want = x.astype(np.float64) @ y.astype(np.float64) + z.astype(np.float64)
    assert (got.astype(np.float64) == want).all()


def test_every_shape_is_legal_ptx(assemble: Any) -> None:
    for n, case in enumerate(CASES):
        assemble(HEADER + mma_kernel(*case).replace("entry k(", f"entry k{n}("))
    for count, trans in FORMS:
        assemble(loader(count, trans))
        assemble(storer(count, trans))


def test_integer_saturation() -> None:
    x, y = np.full((16, 32), 127, np.int8), np.full((32, 8), 127, np.int8)
    z = np.full((16, 8), 2**31 - 5, np.int32)
    _, clamped = multiply("m16n8k32", "s32", x, y, z, ("s8", "s8"), sat=".satfinite")
    assert (clamped == 2**31 - 1).all()
    wrapped = (2**31 - 5 + 32 * 127 * 127) - 2**32
    _, modular = multiply("m16n8k32", "s32", x, y, z, ("s8", "s8"))
    assert (modular == wrapped).all()


# What an A100 printed for A[i] = B[i] = f16(0.01 i), f16 accumulators, m16n8k16: c0..c3 by lane.
A100 = np.array([
    [0.12, 0.32, 1.66, 5.13], [0.51, 0.70, 8.59, 12.06], [0.89, 1.08, 15.54, 19.00],
    [1.28, 1.47, 22.47, 25.94], [0.32, 0.92, 1.85, 5.73], [1.52, 2.12, 9.61, 13.48],
    [2.72, 3.32, 17.36, 21.25], [3.93, 4.53, 25.12, 29.00], [0.51, 1.52, 2.04, 6.33],
    [2.53, 3.54, 10.62, 14.91], [4.55, 5.56, 19.20, 23.48], [6.57, 7.59, 27.77, 32.06],
    [0.70, 2.12, 2.24, 6.93], [3.54, 4.96, 11.63, 16.33], [6.38, 7.80, 21.03, 25.72],
    [9.22, 10.64, 30.42, 35.12], [0.89, 2.72, 2.43, 7.54], [4.55, 6.38, 12.64, 17.75],
    [8.21, 10.04, 22.86, 27.97], [11.88, 13.70, 33.06, 38.16], [1.08, 3.32, 2.62, 8.13],
    [5.56, 7.80, 13.66, 19.17], [10.04, 12.28, 24.69, 30.20], [14.52, 16.77, 35.72, 41.25],
    [1.28, 3.93, 2.81, 8.74], [6.57, 9.22, 14.66, 20.59], [11.88, 14.52, 26.52, 32.44],
    [17.17, 19.81, 38.38, 44.31], [1.47, 4.53, 3.00, 9.34], [7.59, 10.64, 15.68, 22.00],
    [13.70, 16.77, 28.34, 34.69], [19.81, 22.89, 41.03, 47.34],
])  # fmt: skip


@pytest.mark.parametrize("target,misses", [("sm_80", 0), ("sm_90a", 14), ("sm_100a", 14)])
def test_printed_result_of_an_a100(target: str, misses: int) -> None:
    values = (np.arange(256) * 0.01).astype(np.float16)
    x, y = values.reshape(16, 16), values[:128].reshape(8, 16).T
    zero = np.zeros((16, 8), np.float16)
    report, got = multiply("m16n8k16", "f16", x, y, zero, ("f16", "f16"), target)
    assert report.ok, report
    printed = np.zeros((16, 8))
    for lane in range(32):
        for i in range(4):
            printed[place("c", 2, i, lane)] = A100[lane, i]
    assert (np.abs(got.astype(float) - printed) > 0.00501).sum() == misses


@pytest.mark.parametrize("target,kept", [("sm_80", False), ("sm_90a", True), ("sm_100a", True)])
def test_window(target: str, kept: bool) -> None:
    """2^24 + 0.5 - 2^24: the half is 25 bits below the largest term."""
    x, y = np.zeros((16, 8), np.float16), np.zeros((8, 8), np.float16)
    x[:, 0], y[0] = 2.0**12, 2.0**12
    x[:, 1], y[1] = -(2.0**12), 2.0**12
    x[:, 2], y[2] = 0.5, 1.0
    zero = np.zeros((16, 8), np.float32)
    _, got = multiply("m16n8k8", "f32", x, y, zero, ("f16", "f16"), target)
    assert (got == (0.5 if kept else 0.0)).all()


def test_generations() -> None:
    names = {"sm_70": VOLTA, "sm_86": AMPERE, "sm_90a": HOPPER, "sm_100a": BLACKWELL}
    assert {n: generation(n) for n in names} == names


def test_what_is_not_covered_is_named() -> None:
    ptx = HEADER.replace("sm_100a", "sm_89") + mma_kernel("m16n8k32", "f32", "e4m3", "e4m3")
    arrays = [np.ones((32, 16), "u1"), np.ones((32, 8), "u1"), np.ones((32, 4), "f4")]
    report = run_ptx(ptx, grid=1, block=32, args=arrays)
    assert not report.ok and "13 fraction bits" in report.incomplete[0].why
