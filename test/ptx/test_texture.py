"""tex, tld4, txq, suld, sust and suq of objects: what is legal, and what is not. Values:
test/cuda_programs/test_textures.py."""

from __future__ import annotations

import numpy as np
import pytest

import tcir.interp.ptx.lockstep.launch as lockstep
from tcir.machine.textures import FLOAT, MAGIC, RECORD, SIGNED
from tcir.run import RunReport, run_ptx

from .conftest import HEADER

TEXELS = np.arange(16, dtype=np.float32).reshape(4, 4) / 8


def descriptor(data: np.ndarray, **fields: object) -> np.ndarray:
    """128 bytes that describe the array as a texture of two dimensions."""
    out = np.zeros(128, np.uint8)
    record = out[: RECORD.itemsize].view(RECORD)[0]
    height, width = data.shape
    made = {
        "magic": MAGIC, "dims": 2, "base": data.ctypes.data, "pitch": data.strides[0],
        "size": (width, height, 1), "bits": 8 * data.itemsize, "channels": 1,
        "format": FLOAT if data.dtype.kind == "f" else SIGNED, "modes": (1, 1, 1),
    }  # fmt: skip
    for name, value in {**made, **fields}.items():
        record[name] = value
    return out


def execute(
    body: str,
    data: np.ndarray = TEXELS,
    unwritten: np.ndarray | None = None,
    handle: int = 0,
    grid: int = 1,
    lockstep: bool = True,
    **fields: object,
) -> tuple[RunReport, np.ndarray]:
    """Report, and what 32 threads stored; %d0: the handle, %d1: their output, 16 bytes each, %d2:
    the texels, %r0: the thread."""
    data = data.copy()
    about = descriptor(data, **fields)
    out = np.zeros((32 * grid, 4), np.uint32)
    text = f"""{HEADER}.global .texref T0;
.visible .entry k(.param .u64 handle, .param .u64 out, .param .u64 texels)
{{
.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .f32 %f<16>;
ld.param.b64 %d0, [handle]; ld.param.b64 %d1, [out]; ld.param.b64 %d2, [texels];
mov.u32 %r0, %tid.x; mad.wide.u32 %d1, %r0, 16, %d1;
and.b32 %r1, %r0, 3; shr.u32 %r2, %r0, 2; and.b32 %r2, %r2, 3; shl.b32 %r3, %r1, 2;
cvt.rn.f32.u32 %f0, %r1; cvt.rn.f32.u32 %f1, %r2; mov.b32 %r4, 0; mov.b32 %r5, 0; mov.b32 %r6, 0;
{body}
ret;
}}
"""
    written = [] if unwritten is None else [(data.reshape(-1).view(np.uint8), unwritten)]
    args = [np.uint64(handle or about.ctypes.data), out, np.uint64(data.ctypes.data)]
    report = run_ptx(
        text, grid=grid, block=32, args=args, lockstep=lockstep,
        addressed=[about, data.reshape(-1).view(np.uint8)], written=written,
    )  # fmt: skip
    return report, out


FETCH = "tex.2d.v4.f32.f32 {%r4, _, _, _}, [%d0, {%f0, %f1}]; st.global.b32 [%d1], %r4;"
LOAD = "suld.b.2d.b32.trap {%r4}, [%d0, {%r3, %r2}]; st.global.b32 [%d1], %r4;"


def test_a_fetch_and_a_load() -> None:
    for body, surface in ((FETCH, 0), (LOAD, 1)):
        report, out = execute(body, surface=surface)
        assert report.ok, report
        np.testing.assert_array_equal(out[:16, 0].view(np.float32), TEXELS.reshape(-1))


def test_a_gather_and_queries() -> None:
    body = """tld4.r.2d.v4.f32.f32 {%r4, %r5, %r6, %r7}, [%d0, {%f0, %f1}];
        st.global.v4.b32 [%d1], {%r4, %r5, %r6, %r7};"""
    report, out = execute(body)
    assert report.ok, report
    np.testing.assert_array_equal(out[5].view(np.float32), TEXELS[[1, 1, 0, 0], [0, 1, 1, 0]])
    for name, surface in (("txq", 0), ("suq", 1)):
        body = f"""{name}.width.b32 %r4, [%d0]; {name}.height.b32 %r5, [%d0];
            st.global.v2.b32 [%d1], {{%r4, %r5}};"""
        report, out = execute(body, TEXELS[:3].copy(), surface=surface)
        assert report.ok and out[7].tolist() == [4, 3, 0, 0]


STORE = """setp.lt.u32 %p0, %r0, 16; @%p0 sust.b.2d.b32.trap [%d0, {%r3, %r2}], {%r0};
    mul.wide.u32 %d3, %r0, 4; add.u64 %d3, %d2, %d3; bar.warp.sync -1;
    @%p0 ld.global.b32 %r4, [%d3]; st.global.b32 [%d1], %r4;"""


def test_stores_to_a_surface() -> None:
    report, out = execute(STORE, surface=1)
    assert report.ok, report
    assert out[:16, 0].tolist() == list(range(16))
    report, _ = execute(STORE.replace("@%p0 sust", "sust"), surface=1)  # two threads for each
    assert "race" in {finding.code for finding in report.findings}


OUTSIDE = (
    "add.s32 %r2, %r2, 1; suld.b.2d.b32.{} {{%r4}}, [%d0, {{%r3, %r2}}]; st.global.b32 [%d1], %r4;"
)


def test_coordinates_outside_a_surface() -> None:
    below = TEXELS[[1, 2, 3, 3]]
    report, out = execute(OUTSIDE.format("clamp"), surface=1)
    assert report.ok
    np.testing.assert_array_equal(out[:16, 0].view(np.float32), below.reshape(-1))
    report, out = execute(OUTSIDE.format("zero"), surface=1)
    assert report.ok
    below[3] = 0
    np.testing.assert_array_equal(out[:16, 0].view(np.float32), below.reshape(-1))
    report, _ = execute(OUTSIDE.format("trap"), surface=1)
    assert [error.code for error in report.errors] == ["surface-out-of-bounds"]
    report, _ = execute(
        "suld.b.2d.b32.trap {%r4}, [%d0, {%r1, %r2}]; st.global.b32 [%d1], %r4;", surface=1
    )
    assert [error.code for error in report.errors] == ["misaligned-address"]


def test_a_linear_filter_reads_texels_of_weight_0_not_at_all() -> None:
    written = np.ones(64, bool)
    written[4:8] = False  # texel (1, 0)
    at = "mov.b32 %f0, 0f{}; mov.b32 %f1, 0f3F000000; "
    for x, ok in (
        ("3F000000", True),
        ("3F004000", True),
        ("3F200000", False),
    ):  # 0.5, 0.50098, 0.625
        report, _ = execute(at.format(x) + FETCH, unwritten=written.copy(), linear=1)
        assert report.ok == ok
        assert ["undefined-read"] * (not ok) == [f.code for f in report.findings]


@pytest.mark.parametrize(
    ("body", "fields", "code"),
    [
        (FETCH, {"handle": 64}, "bad-texture"),
        (FETCH, {"magic": 0}, "bad-texture"),
        (FETCH, {"surface": 1}, "wrong-texture"),
        (FETCH, {"dims": 1}, "wrong-texture"),
        (FETCH, {"layers": 2}, "wrong-texture"),
        (FETCH, {"faces": 6}, "wrong-texture"),
        (FETCH, {"format": SIGNED}, "wrong-texture"),
        (FETCH.replace(".f32.f32", ".s32.f32"), {}, "wrong-texture"),
        (LOAD, {}, "wrong-texture"),
        ("tld4.g.2d.v4.f32.f32 {%r4,_,_,_}, [%d0, {%f0,%f1}];", {}, "wrong-texture"),
    ],
)
def test_objects_of_another_kind(body: str, fields: dict[str, object], code: str) -> None:
    report, _ = execute(body, **fields)
    assert [error.code for error in report.errors] == [code], report


def test_a_texture_that_the_launch_writes() -> None:
    report, _ = execute("st.global.b32 [%d2], %r0; " + FETCH.replace("st.global", "st.global"))
    assert "non-coherent-load" in {finding.code for finding in report.findings}


def test_channels_that_the_format_lacks_are_undefined() -> None:
    report, _ = execute(FETCH.replace("{%r4, _, _, _}", "{_, %r4, _, _}"))
    assert [finding.code for finding in report.findings] == ["undefined-register"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("tex.2d.v4.f32.f32 {%r4,_,_,_}, [T0, {%f0,%f1}];", ".texref"),
        ("tex.2d.v4.f32.f32 {%r4,_,_,_}, [%d0, %d1, {%f0,%f1}];", ".samplerref"),
        ("tex.2d.v4.f32.f32 {%r4,_,_,_}, [%d0, {%f0,%f1}], {%r1,%r2};", "offsets"),
        ("txq.channel_order.b32 %r4, [%d0];", "not documented"),
        ("suld.p.2d.b32.trap {%r4}, [%d0, {%r3,%r2}];", ".b"),
    ],
)
def test_forms_without_a_rule(body: str, why: str) -> None:
    if ".p." in body:
        with pytest.raises(Exception, match=r"expected one of \.b"):
            execute(body)
        return
    report, _ = execute(body)
    assert len(report.incomplete) == 1 and why in report.incomplete[0].why


VARYING = """mov.u32 %r7, %ctaid.x; cvt.rn.f32.u32 %f2, %r7; fma.rn.f32 %f0, %f2, 0f3EB33333, %f0;
tex.2d.v4.f32.f32 {%r4, _, _, _}, [%d0, {%f0, %f1}]; mad.lo.u32 %r8, %r7, 512, 0;
cvt.u64.u32 %d4, %r8; add.u64 %d1, %d1, %d4; st.global.b32 [%d1], %r4;"""
LOCKSTEP: dict[str, tuple[str, dict[str, object], int]] = {
    "nearest": (VARYING, {}, 7),
    "linear": (VARYING, {"linear": 1}, 7),
    "border": (VARYING, {"linear": 1, "modes": (3, 3, 3), "border": (9, 0, 0, 0)}, 7),
    "guarded": (VARYING.replace("tex.2d", "setp.lt.f32 %p0, %f0, 0f40400000; @%p0 tex.2d"), {}, 7),
    "uniform": (VARYING.replace("fma.rn.f32 %f0, %f2, 0f3EB33333, %f0;", ""), {}, 7),
    "written": (VARYING + " cvt.u64.u32 %d4, %r7; st.global.b8 [%d2], %r7;", {}, 0),
    "undefined": (VARYING, {"unwritten": 40}, -1),
}
"""Body, descriptor, and how many of the 8 CTAs follow the first."""


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", LOCKSTEP)
def test_lockstep(name: str, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "COMPILED", compiled)
    body, fields, followers = LOCKSTEP[name]
    fields = dict(fields)
    unwritten = fields.pop("unwritten", None)
    mask = None if unwritten is None else np.arange(64) != unwritten
    found = [
        execute(body, unwritten=mask, grid=8, lockstep=together, **fields)
        for together in (False, True)
    ]
    (apart, values), (together, again) = found
    np.testing.assert_array_equal(values, again)
    assert apart.findings == together.findings and apart.counters == together.counters
    assert apart.instructions == together.instructions and not apart.lockstep
    assert together.lockstep == followers if followers >= 0 else True
    if name == "nearest":
        column = np.floor(np.arange(4) + np.arange(8)[:, None] * np.float32(0.35)).astype(int)
        expected = TEXELS[:, column.clip(0, 3)].transpose(1, 0, 2).reshape(8, 16)
        np.testing.assert_array_equal(again.reshape(8, 32, 4)[:, :16, 0].view(np.float32), expected)
