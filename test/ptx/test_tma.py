"""Tensor copies in PTX: every form moves the right bytes, assembles, and has its hazards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tcir.machine import Assumptions, TensorMap
from tcir.run import RunReport, run_ptx

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
SIZE = 20480
LOAD = (
    "cp.async.bulk.tensor.{form}.mbarrier::complete_tx::bytes [%r2], [%rd1, {{{at}}}], [%r3]{info};"
)

KERNEL = """
.visible .entry copy(.param .align 64 .b8 map[128], .param .u64 data)
.reqntid 32
{{
 .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .b16 %h<4>;
 .shared .align 1024 .b8 tile[{size}]; .shared .align 8 .b64 bar;
 mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, tile; mov.u32 %r3, bar;
 mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1; ld.param.u64 %rd2, [data];
 {before}
 @%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
 @%p1 fence.mbarrier_init.release.cluster;
 bar.sync 0;
 {body}
 ret;
}}
"""
EACH = """
 shl.b32 %r4, %r1, 2;
{name}: add.u32 %r5, %r4, %r2; cvt.u64.u32 %rd3, %r4; add.s64 %rd3, %rd3, %rd2;
 {move}
 add.u32 %r4, %r4, 128; setp.lt.u32 %p2, %r4, {size}; @%p2 bra {name};
"""
IN = EACH.format(name="IN", size=SIZE, move="ld.global.b32 %r6, [%rd3]; st.shared.b32 [%r5], %r6;")
OUT = EACH.format(
    name="OUT", size=SIZE, move="ld.shared.b32 %r6, [%r5]; st.global.b32 [%rd3], %r6;"
)
FENCE = "fence.proxy.async.shared::cta;"
WAIT = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0; @!%p3 bra WAIT;"
FIRST = np.arange(SIZE, dtype=np.uint32).view(np.uint8)[:SIZE] ^ 0x5A


def load_kernel(form: str, at: str, info: str, nbytes: int) -> str:
    """Fills the tile from `data`, loads a box over it, copies the tile back to `data`."""
    copy = LOAD.format(form=form, at=at, info=info)
    body = (
        f"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {nbytes};\n@%p1 {copy}\n"
        f"{WAIT}\n{OUT}"
    )
    return HEADER + KERNEL.format(size=SIZE, before=IN + FENCE, body=body)


def store_kernel(
    copy: str, after: str = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
) -> str:
    """Fills the tile from `data` and stores a box of it."""
    body = f"@!%p1 bra END;\n{copy}\n{after}\nEND:"
    return HEADER + KERNEL.format(size=SIZE, before=IN + FENCE, body=body)


def run(ptx: str, tensor: TensorMap, data: np.ndarray, **more: Any) -> RunReport:
    return run_ptx(ptx, grid=1, block=32, args=[tensor, data], **more)


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).integers(1, 60000, shape).astype(np.uint16)


def swizzled(at: int, swizzle: str) -> int:
    """By the pictures of PTX ISA 5.5.7: which 16 bytes of a 128-byte line."""
    line, chunk, byte = at // 128, at // 16 % 8, at % 16
    mask, step = {"NONE": (0, 1), "32B": (1, 1), "64B": (3, 1), "128B": (7, 1)}.get(
        swizzle, {"128B_ATOM_64B": (1, 4)}.get(swizzle, (3, 2))
    )
    if swizzle.endswith("FLIP_8B") and line % 2:
        byte ^= 8
    return line * 128 + (chunk ^ (line & mask) * step) * 16 + byte


def placed(rows: Any, swizzle: str = "NONE", pitch: int | None = None) -> np.ndarray:
    """The tile after rows of bytes have arrived."""
    out = FIRST.copy()
    for r, row in enumerate(rows):
        raw = np.ascontiguousarray(row).view(np.uint8).reshape(-1)
        for i, byte in enumerate(raw):
            out[swizzled(r * (pitch or len(raw)) + i, swizzle)] = byte
    return out


X = noise(9, 64)
PLAIN = {"dtype": "u16", "dims": [64, 9], "strides_bytes": [128]}
IMAGES = noise(4, 5, 9, 64)  # N, H, W, C
WIDE = {
    "dtype": "u16", "dims": [64, 9, 5, 4], "strides_bytes": [128, 1152, 5760],
    "lower_corner_width": 0, "upper_corner_width": 0, "channels_per_pixel": 64,
    "pixels_per_column": 12, "mode": "W", "swizzle": "128B",
}  # fmt: skip
WALK = [IMAGES[i // 9, 3, i % 9] if i < 36 else 0 * X[0] for i in range(2, 142)]
SLICED = noise(2, 3, 6, 10, 8)  # N, C/8, H, W, 8 channels
NAN = np.pad(X.view(np.float16), ((0, 4), (0, 64)), constant_values=0).view(np.uint16)
NAN[9:] = NAN[:, 64:] = 0x7FF7
ODD = np.array([0x3F801000, 0x3F803000, 0x7F800001, 0x7F7FFFFF, 1, 0x807FFFFF, 0, 5], np.uint32)
TF32 = np.array([0x3F800000, 0x3F804000, 0x7FFFE000, 0x7F800000, 0, 0x80800000, 0, 0], np.uint32)

CASES: dict[str, Any] = {
    **{
        f"tile, {s}": (
            TensorMap.tiled(X, box=[64, 9], swizzle=s, **PLAIN),
            "2d.shared::cta.global.tile", "0, 0", "", 64 * 9 * 2, placed(X, s),
        )
        for s in ("128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B")
    },
    "short rows": (
        TensorMap.tiled(X, box=[16, 9], swizzle="64B", **PLAIN),
        "2d.shared::cluster.global", "16, 0", "", 288, placed(X[:, 16:32], "64B", 64),
    ),
    "NaN fill": (
        TensorMap.tiled(X, box=[32, 4], oob_fill="nan", **PLAIN | {"dtype": "f16"}),
        "2d.shared::cta.global.tile", "48, 7", "", 256, placed(NAN[7:11, 48:80]),
    ),
    "tf32": (
        TensorMap.tiled(ODD, dtype="tf32", dims=[8], strides_bytes=[], box=[8]),
        "1d.shared::cta.global.tile", "0", "", 32, placed([TF32]),
    ),
    "interleave 16B": (
        TensorMap.tiled(
            SLICED, dtype="u16", dims=[10, 6, 3, 2], strides_bytes=[160, 960, 2880],
            box=[8, 2, 1, 2], interleave="16B",
        ),
        "4d.shared::cta.global.tile", "1, 2, 1, 0", "", 512,
        placed(SLICED[:, 1, 2:4, 1:9].reshape(1, -1)),
    ),
    "gather4": (
        TensorMap.tiled(X, box=[16, 1], **PLAIN),
        "2d.shared::cta.global.tile::gather4", "8, 7, 0, 9, 3", "", 128,
        placed([X[7, 8:24], X[0, 8:24], 0 * X[0, 8:24], X[3, 8:24]]),
    ),
    "im2col::w": (
        TensorMap.im2col_wide(IMAGES, **WIDE),
        "4d.shared::cta.global.im2col::w", "0, 2, 3, 0", ", {2, 0}", 14 * 128,
        placed(WALK[:14], "128B"),
    ),
    "im2col::w::128": (
        TensorMap.im2col_wide(IMAGES, **WIDE | {"mode": "W128"}),
        "4d.shared::cluster.global.im2col::w::128", "0, 2, 3, 0", ", {1, 0}", 132 * 128,
        placed([*WALK[:128], WALK[32], WALK[64], WALK[96], WALK[128]], "128B"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_loads(name: str, assemble: Callable[[str], bytes]) -> None:
    tensor, form, at, info, nbytes, want = CASES[name]
    ptx = load_kernel(form, at, info.replace("{", "{ ").replace("}", " }"), nbytes)
    assemble(ptx)
    for seed in (None, 3):
        data = FIRST.copy()
        report = run(ptx, tensor, data, order_seed=seed)
        assert report.ok and not report.findings, str(report)
        np.testing.assert_array_equal(data, want)
    for wrong in (nbytes - 16, nbytes + 16):  # the whole box counts, no more and no less
        report = run(load_kernel(form, at, info, wrong), tensor, FIRST.copy())
        assert not report.ok


@pytest.mark.parametrize("dtype", ["u4_align16b", "u6_align16b"])
def test_gaps_of_padded_types_are_undefined(dtype: str) -> None:
    inner = 64 if dtype == "u4_align16b" else 96
    x = noise(4, inner // 2).view(np.uint8)
    tensor = TensorMap.tiled(x, dtype=dtype, dims=[128, 4], strides_bytes=[inner], box=[128, 4])
    data = FIRST.copy()
    ptx = load_kernel("2d.shared::cta.global.tile", "0, 0", "", 4 * inner)
    report = run(ptx, tensor, data)
    assert {f.code for f in report.findings} == {"undefined-read"}
    # Announcing the gaps, too, waits for bytes that never come; if they counted, not.
    gaps = load_kernel("2d.shared::cta.global.tile", "0, 0", "", 512)
    assert [e.code for e in run(gaps, tensor, FIRST.copy()).errors] == ["deadlock"]
    padded = Assumptions(padded_bytes="padded")
    assert not run(gaps, tensor, FIRST.copy(), assumptions=padded).errors
    used = inner // 8
    got = data[:512].reshape(32, 16)
    np.testing.assert_array_equal(got[:, :used], x.reshape(32, used))
    shape = {"dims": [128, 4], "strides_bytes": [64], "box": [128, 4]}
    packed = TensorMap.tiled(x, dtype="u4_align8b", **shape)
    report = run(load_kernel("2d.shared::cta.global.tile", "0, 0", "", 256), packed, FIRST.copy())
    assert report.ok and not report.findings


# --- stores --------------------------------------------------------------------------------------


def stored(form: str, at: str) -> str:
    return f"cp.async.bulk.tensor.{form}.bulk_group [%rd1, {{{at}}}], [%r2];"


def test_scatter4_and_im2col_no_offs(assemble: Callable[[str], bytes]) -> None:
    source = FIRST.view(np.uint16)
    x = X.copy()
    ptx = store_kernel(stored("2d.global.shared::cta.tile::scatter4", "8, 7, 0, 9, 3"))
    assemble(ptx)
    report = run(ptx, TensorMap.tiled(x, box=[16, 1], **PLAIN), FIRST.copy())
    assert report.ok and not report.findings, str(report)
    want = X.copy()
    for k, row in enumerate((7, 0, None, 3)):
        if row is not None:
            want[row, 8:24] = source[16 * k : 16 * k + 16]
    np.testing.assert_array_equal(x, want)
    y = IMAGES.copy()
    shape = {k: WIDE[k] for k in ("dtype", "dims", "strides_bytes")}
    tensor = TensorMap.im2col(
        y,
        lower_corner=[0, 0],
        upper_corner=[-1, 0],
        channels_per_pixel=8,
        pixels_per_column=10,
        **shape,
    )
    ptx = store_kernel(stored("4d.global.shared::cta.im2col_no_offs", "16, 6, 4, 1"))
    assemble(ptx)
    report = run(ptx, tensor, FIRST.copy())
    assert report.ok and not report.findings, str(report)
    want = IMAGES.copy()
    places = [(1, 4, 6), (1, 4, 7), *((2, 0, w) for w in range(8))]
    for k, place in enumerate(places):
        want[place][16:24] = source[8 * k : 8 * k + 8]
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("dtype", ["u32", "s32", "f16"])
@pytest.mark.parametrize("operation", ["add", "min", "max", "inc", "dec", "and", "or", "xor"])
def test_reductions(operation: str, dtype: str, assemble: Callable[[str], bytes]) -> None:
    kind = np.dtype({"u32": "u4", "s32": "i4", "f16": "f2"}[dtype])
    old = noise(64).view(kind).copy() if dtype != "f16" else (X[0] % 512).astype(kind)
    old[1] = 0
    data = FIRST.copy()
    new = data[: old.nbytes].view(kind)
    if dtype == "f16":
        new[:] = np.arange(len(new)) - 9
    else:
        new[::4], new[2::4] = old[::4], old[2::4] + 1  # equals and neighbours
    copy = (
        f"cp.reduce.async.bulk.tensor.1d.global.shared::cta.{operation}.tile.bulk_group "
        "[%rd1, {0}], [%r2];"
    )
    ptx = store_kernel(copy)
    assemble(ptx)
    x = old.copy()
    tensor = TensorMap.tiled(x, dtype=dtype, dims=[len(x)], strides_bytes=[], box=[len(x)])
    report = run(ptx, tensor, data)
    legal = (
        operation in ("add", "min", "max")
        if dtype == "f16"
        else (operation not in ("inc", "dec") or dtype == "u32")
    )
    if not legal:
        assert [e.code for e in report.errors] == ["bad-tensor-map"], str(report)
        return
    assert report.ok and not report.findings, str(report)
    want = {
        "add": lambda: old + new,
        "min": lambda: np.minimum(old, new),
        "max": lambda: np.maximum(old, new),
        "inc": lambda: np.where(old >= new, 0, old + 1),
        "dec": lambda: np.where((old == 0) | (old > new), new, old - 1),
        "and": lambda: old & new,
        "or": lambda: old | new,
        "xor": lambda: old ^ new,
    }[operation]()
    np.testing.assert_array_equal(x, want.astype(kind))


# --- hazards -------------------------------------------------------------------------------------

STORE = stored("2d.global.shared::cta.tile", "0, 0")
REUSE = "mov.b32 %r6, 7; st.shared.b32 [%r2], %r6;"


@pytest.mark.parametrize(
    ("after", "code"),
    [
        ("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; " + REUSE, None),
        ("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; " + REUSE, None),
        (REUSE + " cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;", "race"),
        ("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 1; " + REUSE, "race"),
        ("cp.async.bulk.commit_group;", "never-awaited"),
    ],
)
def test_the_source_of_a_store_is_reused(after: str, code: str | None) -> None:
    x = X.copy()
    tensor = TensorMap.tiled(x, box=[64, 9], **PLAIN)
    report = run(store_kernel(STORE, after), tensor, FIRST.copy())
    assert code in {f.code for f in report.findings} if code else report.ok and not report.findings


BULK = "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [{source}], 512;"
GROUP = " cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
OWN_SOURCE = "shl.b32 %r7, %r1, 7; add.u32 %r7, %r7, %r2; "
"""128 bytes on for each lane."""


@pytest.mark.parametrize("seed", [None, 0, 1, 3, 5])
@pytest.mark.parametrize(
    ("copy", "code"),
    [
        (STORE, None),
        (OWN_SOURCE + STORE.replace("[%r2]", "[%r7]"), "race"),
        (STORE + STORE, "same-value-race"),  # the same bytes twice
        (BULK.format(source="%r2"), None),
        (OWN_SOURCE + BULK.format(source="%r7"), "race"),
    ],
    ids=["tensor", "tensor, own source", "tensor, twice", "bulk", "bulk, own source"],
)
def test_lanes_with_the_same_operands_store_one_content(
    copy: str, code: str | None, seed: int | None
) -> None:
    """As epilogues of CUTLASS 4.2 to 4.8 do: one instruction, all 32 lanes."""
    x = X.copy()
    tensor = TensorMap.tiled(x, box=[64, 9], **PLAIN)
    ptx = HEADER + KERNEL.format(size=SIZE, before=IN + "fence.proxy.async;", body=copy + GROUP)
    data = FIRST.copy()
    report = run(ptx, tensor, data, order_seed=seed)
    assert {f.code for f in report.findings} == ({code} if code else set()), str(report)
    if code is None and copy == STORE:
        want = FIRST[: 64 * 9 * 2].view(np.uint16).reshape(9, 64)
        np.testing.assert_array_equal(x, want)
    elif code is None:
        np.testing.assert_array_equal(data[:512], FIRST[:512])


def test_prefetch_is_counted(assemble: Callable[[str], bytes]) -> None:
    ptx = store_kernel("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {0, 0}];", "")
    assemble(ptx)
    report = run(ptx, TensorMap.tiled(X, box=[64, 9], **PLAIN), FIRST.copy())
    assert report.ok and report.counters["tma_prefetches"] == 1, str(report)


@pytest.mark.parametrize(
    ("change", "at", "message"),
    [
        ({}, "-8, 0", "store coordinate 0: expected at least 0"),
        ({}, "4, 0", "coordinate 0: expected a multiple of 8"),
        ({"swizzle": "128B_ATOM_32B_FLIP_8B"}, "0, 0", "swizzle: expected another for a store"),
    ],
)
def test_stores_that_are_refused(change: dict[str, Any], at: str, message: str) -> None:
    tensor = TensorMap.tiled(X.copy(), box=[16, 2], **PLAIN | change)
    report = run(store_kernel(stored("2d.global.shared::cta.tile", at)), tensor, FIRST.copy())
    assert message in str(report.errors)
