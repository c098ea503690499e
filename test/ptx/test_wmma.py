"""wmma against numpy: every shape, type and layout; sums of whole numbers, whose order is nobody's
business; what two fragments of one type have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcir.errors import Error
from tcir.run import run_ptx

from .conftest import HEADER

HALF = ("m16n16k16", "m8n32k16", "m32n8k16")
CASES = [
    *((s, a, c, d) for s in HALF for a, c, d in (
        ("f16", "f32", "f32"), ("f16", "f16", "f16"), ("f16", "f16", "f32"),
        ("bf16", "f32", "f32"), ("s8", "s32", "s32"), ("u8", "s32", "s32"))),
    ("m16n16k8", "tf32", "f32", "f32"), ("m8n8k32", "s4", "s32", "s32"),
    ("m8n8k32", "u4", "s32", "s32"), ("m8n8k128", "b1", "s32", "s32"),
    ("m8n8k4", "f64", "f64", "f64"),
]  # fmt: skip
TYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32,
    "s8": np.int8, "u8": np.uint8, "s32": np.int32, "f64": np.float64,
}  # fmt: skip
BITS = {"s4": 4, "u4": 4, "b1": 1}


def sizes(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def registers(matrix: str, shape: str, kind: str) -> int:
    m, n, k = sizes(shape)
    count = {"a": m * k, "b": n * k}.get(matrix, m * n)
    if kind == "f16" and matrix in "ab":
        return 8
    if kind == "f64":
        return count // 32
    return count * BITS.get(kind, np.dtype(TYPES.get(kind, np.int8)).itemsize * 8) // 1024


def kernel(shape: str, kind: str, of_c: str, of_d: str, layouts: tuple[str, str, str]) -> str:
    count = {
        x: registers(x, shape, t) for x, t in zip("abcd", (kind, kind, of_c, of_d), strict=True)
    }
    held = {x: "{" + ", ".join(f"%{x}{i}" for i in range(n)) + "}" for x, n in count.items()}
    word = "f64" if kind == "f64" else "b32"
    declared = " ".join(f".reg .{word} %{x}<{n}>;" for x, n in count.items())
    la, lb, lc = layouts
    names = f"{of_d}.{of_c}" if kind == "f16" else f"{of_d}.{kind}.{kind}.{of_c}"
    bits = ".xor.popc" if kind == "b1" else ""
    rounding = ".rn" if kind == "f64" else ""
    return (
        HEADER
        + f"""
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u32 ld)
{{
 {declared} .reg .b64 %p<4>; .reg .b32 %ld;
 ld.param.u64 %p0, [a]; ld.param.u64 %p1, [b]; ld.param.u64 %p2, [c]; ld.param.u64 %p3, [d];
 ld.param.u32 %ld, [ld];
 wmma.load.a.sync.aligned.{la}.{shape}.global.{kind} {held["a"]}, [%p0];
 wmma.load.b.sync.aligned.{lb}.{shape}.global.{kind} {held["b"]}, [%p1];
 wmma.load.c.sync.aligned.{lc}.{shape}.global.{of_c} {held["c"]}, [%p2], %ld;
 wmma.mma{bits}.sync.aligned.{la}.{lb}.{shape}{rounding}.{names}
   {held["d"]}, {held["a"]}, {held["b"]}, {held["c"]};
 wmma.store.d.sync.aligned.{lc}.{shape}.global.{of_d} [%p3], {held["d"]}, %ld;
 ret;
}}
"""
    )


def packed(values: np.ndarray, bits: int) -> np.ndarray:
    """Codes of less than a byte, the first in the lowest bits."""
    codes = values.reshape(-1, 8 // bits) & (1 << bits) - 1
    return (codes << np.arange(0, 8, bits)).sum(axis=1).astype(np.uint8)


def stored(matrix: np.ndarray, layout: str, stride: int = 0) -> np.ndarray:
    lines = matrix if layout == "row" else matrix.T
    if stride:
        wide = np.zeros((lines.shape[0], stride), matrix.dtype)
        wide[:, : lines.shape[1]] = lines
        lines = wide
    return np.ascontiguousarray(lines)


@pytest.mark.parametrize("layouts", [("row", "col", "row"), ("col", "row", "col")], ids="-".join)
@pytest.mark.parametrize(("shape", "kind", "of_c", "of_d"), CASES)
def test_against_numpy(
    shape: str,
    kind: str,
    of_c: str,
    of_d: str,
    layouts: tuple[str, str, str],
    assemble: Callable[[str], Any],
) -> None:
    if kind in BITS:
        layouts = ("row", "col", layouts[2])
    (m, n, k), draw = sizes(shape), np.random.default_rng(1)
    low, high = {"u8": (0, 9), "u4": (0, 16), "s4": (-8, 8), "b1": (0, 2)}.get(kind, (-4, 5))
    a, b = draw.integers(low, high, (m, k)), draw.integers(low, high, (k, n))
    c, stride = draw.integers(-9, 9, (m, n)), 40
    if kind == "b1":
        want = c + (a[:, :, None] ^ b[None]).sum(axis=1)
    else:
        want = c + a @ b
    arrays = [
        packed(stored(x, layout), BITS[kind])
        if kind in BITS
        else stored(x, layout).astype(TYPES[kind])
        for x, layout in ((a, layouts[0]), (b, layouts[1]))
    ]
    given = stored(c, layouts[2], stride).astype(TYPES[of_c])
    out = np.zeros(given.shape, TYPES[of_d])
    ptx = kernel(shape, kind, of_c, of_d, layouts)
    assert assemble(ptx)
    report = run_ptx(ptx, grid=1, block=32, args=[*arrays, given, out, np.uint32(stride)])
    assert report.ok, str(report)
    np.testing.assert_array_equal(out, stored(want, layouts[2], stride).astype(TYPES[of_d]))


@pytest.mark.parametrize("space", ["", ".shared"])
def test_a_variable_is_where_it_was_declared(space: str, assemble: Callable[[str], Any]) -> None:
    """Its name is no generic address without a state space."""
    ptx = kernel("m16n16k16", "f16", "f32", "f32", ("row", "col", "row"))
    load = "wmma.load.c.sync.aligned.row.m16n16k16.global.f32"
    held = ptx.split(load)[1].split("}")[0] + "}"
    store = "wmma.store.d.sync.aligned.row.m16n16k16"
    tile = f"{store}{space}.f32 [tile], {held}; {load.replace('.global', space)} {held}, [tile];"
    ptx = ptx.replace(" wmma.mma", f" bar.warp.sync -1; {tile} wmma.mma").replace(
        "[%p2], %ld;", "[%p2], 16;"
    )
    ptx = ptx.replace("{\n", "{\n .shared .align 32 .b8 tile[1024];\n", 1)
    if not space:
        ptx = ptx.replace("[tile]", "[%t]").replace(
            ".reg .b32 %ld;",
            ".reg .b32 %ld; .reg .b64 %t; mov.u64 %t, tile; cvta.shared.u64 %t, %t;",
        )
    assert assemble(ptx)
    a, c, out = np.zeros(256, np.float16), np.arange(256, dtype=np.float32), np.zeros(4096, "f4")
    report = run_ptx(ptx, grid=1, block=32, args=[a, a, c, out, np.uint32(16)])
    assert not report.errors, str(report)
    np.testing.assert_array_equal(out[:256], c)
    if not space:
        direct = ptx.replace("[%t]", "[tile]")
        report = run_ptx(direct, grid=1, block=32, args=[a, a, c, out, np.uint32(16)])
        assert not report.errors, str(report)


LANE = ".reg .b32 %ld, %lane; mov.u32 %lane, %laneid; or.b32 %lane, %lane, 64;"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("f32.f32\n", "f16.f32\n", "no rule for C of f32 and D of f16"),
        ("mma.sync.aligned.row.col", "mma.sync.aligned.row", "expected two layouts"),
        ("[%p0];", "[%p0], %lane;", "expected the same stride in all lanes"),
        ("a.sync.aligned.row.m16n16k16", "a.sync.aligned.row.m16n16k8", "expected one of .tf32"),
    ],
)
def test_what_is_wrong(old: str, new: str, words: str) -> None:
    ptx = kernel("m16n16k16", "f16", "f32", "f32", ("row", "col", "row"))
    assert old in ptx
    ptx = ptx.replace(old, new, 1).replace(".reg .b32 %ld;", LANE)
    buffers = [np.ones(4096, np.float16) for _ in range(4)]
    try:
        report = run_ptx(ptx, grid=1, block=32, args=[*buffers, np.uint32(16)])
    except Error as error:
        assert words in str(error), error
    else:
        assert not report.ok and words in str(report), str(report)
