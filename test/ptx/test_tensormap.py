"""Tensor maps that a kernel changes: tensormap.replace and the fences of the tensormap proxy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tcir.machine import TensorMap
from tcir.run import RunReport, run_ptx

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
COPY_RELEASE = (
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
    "[%rd3], [%rd4], 128;"
)
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%rd3], 128;"
RELEASE = "fence.proxy.tensormap::generic.release.gpu;"

KERNEL = """
.visible .entry copy(.param .align 64 .b8 map[128], .param .u64 data, .param .u64 other,
                     .param .u64 maps)
.reqntid 64
{{
 .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
 .shared .align 1024 .b8 tile[512]; .shared .align 128 .b8 fresh[128]; .shared .align 8 .b64 bar;
 mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 32; mov.u32 %r2, tile; mov.u32 %r3, bar;
 setp.lt.u32 %p2, %r1, 32; mov.u32 %r4, fresh; cvt.u64.u32 %rd4, %r4;
 mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1; ld.param.u64 %rd2, [other];
 ld.param.u64 %rd3, [maps];
 @%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
 @%p1 fence.mbarrier_init.release.cluster;
 @!%p2 bra SYNC;
 shl.b32 %r5, %r1, 2; cvt.u64.u32 %rd5, %r5; add.s64 %rd5, %rd5, %rd1; add.u32 %r5, %r5, %r4;
 ld.param.b32 %r6, [%rd5]; st.shared.b32 [%r5], %r6;
 bar.warp.sync -1;
 setp.eq.u32 %p3, %r1, 0;
 @%p3 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r4], %rd2;
 @%p3 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r4], 1, 3;
 @%p3 tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r4], 0;
 bar.warp.sync -1;
 {publish}
SYNC: bar.sync 0;
 {acquire}
 @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 512;
 @%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
      [%r2], [%rd3, {{0, 0}}], [%r3];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0; @!%p3 bra WAIT;
 ld.param.u64 %rd6, [data]; shl.b32 %r5, %r1, 3; cvt.u64.u32 %rd5, %r5; add.s64 %rd6, %rd6, %rd5;
 add.u32 %r5, %r5, %r2; ld.shared.b64 %rd5, [%r5]; st.global.b64 [%rd6], %rd5;
 ret;
}}
"""
BY_HAND = "ld.shared.b32 %r6, [%r5]; sub.u32 %r5, %r5, %r4; cvt.u64.u32 %rd5, %r5; " + (
    "add.s64 %rd5, %rd5, %rd3; st.global.b32 [%rd5], %r6; "
)


def launch(
    publish: str, acquire: str, assemble: Callable[[str], bytes], copied: int = 32
) -> tuple[RunReport, np.ndarray, np.ndarray]:
    x = np.arange(1, 257, dtype=np.uint16).reshape(4, 64)
    other = (1000 + np.arange(256, dtype=np.uint16)).reshape(4, 64)
    tensor = TensorMap.tiled(
        x, dtype="u16", dims=[64, 4], strides_bytes=[128], box=[64, 4], swizzle="128B"
    )
    ptx = HEADER + KERNEL.format(publish=publish, acquire=acquire)
    ptx = ptx.replace("ld.param.b32 %r6, [%rd5]", "ld.b32 %r6, [%rd5]")
    copy = "st.shared.b32 [%r5], %r6;"
    ptx = ptx.replace(copy, f"setp.lt.u32 %p3, %r1, {copied}; @%p3 {copy}", 1)
    assemble(ptx)
    data, maps = np.zeros((4, 64), np.uint16), np.zeros(128, np.uint8)
    report = run_ptx(ptx, grid=1, block=64, args=[tensor, data, other, maps])
    other[3] = 0  # the new map has three rows
    return report, data, other


@pytest.mark.parametrize(
    ("publish", "acquire"),
    [
        (COPY_RELEASE, ACQUIRE),
        (BY_HAND + RELEASE, ACQUIRE),
        (f"{COPY_RELEASE} {ACQUIRE}", ""),
        (f"{BY_HAND}{RELEASE} {ACQUIRE}", ""),
        (COPY_RELEASE.replace("%rd4", "%r4"), ACQUIRE),  # an address of 32 bits
    ],
)
def test_a_replaced_map_is_used(
    publish: str, acquire: str, assemble: Callable[[str], bytes]
) -> None:
    """Acquired by the warp that uses it, or by its writer before the barrier."""
    report, data, want = launch(publish, acquire, assemble)
    assert report.ok and not report.findings, str(report)
    np.testing.assert_array_equal(data, want)


@pytest.mark.parametrize("copied", [15, 16])
def test_the_half_that_the_hardware_uses(copied: int, assemble: Callable[[str], bytes]) -> None:
    """CuTe DSL's kernels copy 64 bytes of a map that they change, 16 words."""
    report, data, want = launch(COPY_RELEASE, ACQUIRE, assemble, copied)
    if copied == 16:
        assert report.ok and not report.findings, str(report)
        np.testing.assert_array_equal(data, want)
    else:
        assert "undefined-read" in {f.code for f in report.findings} or report.errors, str(report)


@pytest.mark.parametrize(
    ("publish", "acquire", "missing"),
    [
        (COPY_RELEASE, "", "generic.acquire on the map by its user"),
        (BY_HAND, ACQUIRE, "generic.release (or tensormap.cp_fenceproxy) by the writer"),
        (BY_HAND, "", "generic.release (or tensormap.cp_fenceproxy) by the writer"),
        (RELEASE + BY_HAND, ACQUIRE, "generic.release (or tensormap.cp_fenceproxy) by the writer"),
        (f"{ACQUIRE} {COPY_RELEASE}", "", "generic.acquire on the map by its user"),
    ],
)
def test_a_missing_fence_is_named(
    publish: str, acquire: str, missing: str, assemble: Callable[[str], bytes]
) -> None:
    report, _, _ = launch(publish, acquire, assemble)
    found = [f for f in report.findings if f.code == "missing-tensormap-fence"]
    assert found and all(missing in f.missing for f in found), str(report)


def test_a_missing_barrier_is_a_race(assemble: Callable[[str], bytes]) -> None:
    """The map's writer is another warp than its user."""
    x = np.arange(1, 257, dtype=np.uint16).reshape(4, 64)
    tensor = TensorMap.tiled(
        x, dtype="u16", dims=[64, 4], strides_bytes=[128], box=[64, 4], swizzle="128B"
    )
    ptx = HEADER + KERNEL.format(publish=COPY_RELEASE, acquire=ACQUIRE)
    ptx = ptx.replace("ld.param.b32 %r6, [%rd5]", "ld.b32 %r6, [%rd5]")
    ptx = ptx.replace("SYNC: bar.sync 0;", "SYNC:")
    args = [tensor, np.zeros((4, 64), np.uint16), x.copy(), np.zeros(128, np.uint8)]
    report = run_ptx(ptx, grid=1, block=64, args=args)
    assert "race" in {f.code for f in report.findings} or report.errors, str(report)


def test_a_field_out_of_range(assemble: Callable[[str], bytes]) -> None:
    bad = COPY_RELEASE + " tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r4], 1, 300;"
    report, _, _ = launch(bad, ACQUIRE, assemble)
    assert "box_dim: expected 1..256, got 300" in str(report)


FROM_HOST = """
VARIABLE
.visible .entry copy(PARAMETER .param .u64 out) .reqntid 32
{
 .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<6>;
 .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;
 mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; ld.param.u64 %rd1, [out]; ADDRESS
 @%p1 mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
 ACQUIRE
 @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
 @%p1 cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes
      [tile], [%rd3, {0}], [bar];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra WAIT;
 mul.wide.u32 %rd4, %r1, 4; add.s64 %rd1, %rd1, %rd4; shl.b32 %r2, %r1, 2; mov.u32 %r3, tile;
 add.u32 %r3, %r3, %r2; ld.shared.b32 %r2, [%r3]; st.global.b32 [%rd1], %r2;
 ret;
}
"""
ACQUIRE_SYS = "fence.proxy.tensormap::generic.acquire.sys [%rd3], 128;"


@pytest.mark.parametrize("profile", ["silicon", "isa"])
@pytest.mark.parametrize("place", ["global", "const"])
def test_a_map_of_the_host_is_acquired(place: str, profile: str) -> None:
    """In global memory; the constant bank and parameters need no fence (PTX ISA 8.9.4)."""
    x = np.arange(32, dtype=np.uint32)
    tensor = TensorMap.tiled(x, dtype="u32", dims=[32], strides_bytes=[], box=[32])
    raw = tensor.encode(x.__array_interface__["data"][0])
    if place == "const":
        values = ", ".join(map(str, raw))
        variable = f".visible .const .align 64 .b8 map[128] = {{{values}}};"
        parameter, address = "", "mov.u64 %rd3, map; cvta.const.u64 %rd3, %rd3;"
        arrays: list[np.ndarray] = []
    else:
        variable, parameter, address = "", ".param .u64 map,", "ld.param.u64 %rd3, [map];"
        arrays = [np.frombuffer(raw, np.uint8).copy()]
    for acquire in (ACQUIRE_SYS, ""):
        text = HEADER + FROM_HOST.replace("VARIABLE", variable).replace("PARAMETER", parameter)
        text = text.replace("ADDRESS", address).replace("ACQUIRE", acquire)
        out = np.zeros(32, np.uint32)
        report = run_ptx(text, grid=1, args=[*arrays, out], addressed=[x], ordering=profile)
        found = [(f.severity, f.code) for f in report.findings]
        missing = place == "global" and not acquire
        assert found == [("error", "missing-tensormap-fence")] * missing, str(report)
        np.testing.assert_array_equal(out, x)


UNDER_A_STORE = """
.visible .entry store(.param .u64 map, .param .u64 other) .reqntid 32
{
 .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<6>;
 .shared .align 128 .b8 tile[128];
 mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; shl.b32 %r2, %r1, 2; mov.u32 %r3, tile;
 add.u32 %r4, %r3, %r2; st.shared.b32 [%r4], %r1; fence.proxy.async.shared::cta; bar.warp.sync -1;
 ld.param.u64 %rd3, [map]; ld.param.u64 %rd1, [other]; cvt.u64.u32 %rd2, %r2;
 add.s64 %rd1, %rd1, %rd2; ld.global.b32 %r5, [%rd1]; add.s64 %rd4, %rd3, %rd2;
 fence.proxy.tensormap::generic.acquire.sys [%rd3], 128;
 @%p1 bra REPLACE;
 cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd3, {0}], [tile];
 cp.async.bulk.commit_group; WAIT
REPLACE: bar.warp.sync -1; st.global.b32 [%rd4], %r5;
 DRAIN ret;
}
"""


@pytest.mark.parametrize(
    "wait", ["", "cp.async.bulk.wait_group.read 0;", "cp.async.bulk.wait_group 0;"]
)
def test_a_map_replaced_under_a_store(wait: str) -> None:
    """NVIDIA/cutlass#2162: the store reads its map until its group has read all."""
    x, y = (np.zeros(32, np.uint32) for _ in range(2))
    maps = [
        np.frombuffer(
            TensorMap.tiled(each, dtype="u32", dims=[32], strides_bytes=[], box=[32]).encode(
                each.__array_interface__["data"][0]
            ),
            np.uint8,
        ).copy()
        for each in (x, y)
    ]
    text = HEADER + UNDER_A_STORE.replace("WAIT", wait)
    text = text.replace("DRAIN", "" if wait else "@!%p1 cp.async.bulk.wait_group 0;")
    report = run_ptx(text, grid=1, args=maps, addressed=[x, y])
    assert [(f.severity, f.code) for f in report.findings] == [("error", "race")] * (not wait)
    assert not report.errors
