"""What ptxas refuses is refused: .version too low, .target without the instruction, no rounding."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tcir.interp.ptx.requirements import REQUIREMENTS, RequiredTarget
from tcir.run import PtxSyntaxError, run_ptx

from .conftest import PTXAS

KERNEL = """.version {version}
.target {target}
.address_size 64
.visible .entry k() {{
 .reg .pred %p<4>; .reg .b16 %h<8>; .reg .b32 %r<12>; .reg .b64 %rd<8>;
 .reg .f32 %f<8>; .reg .f64 %fd<8>;
 ret;
 {body}
}}
"""

FORMS = [
    ("tcgen05.fence::after_thread_sync;", "8.6", "sm_100a", "sm_100"),
    ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;", "8.6", "sm_100a",
     "sm_120a"),
    ("tcgen05.shift.cta_group::1.down [%r1];", "8.6", "sm_100a", "sm_100f"),
    ("cp.async.bulk.commit_group;", "8.0", "sm_90", "sm_80"),
    ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
     "[%rd1, {%r2, %r3}], [%r4];", "8.0", "sm_90", "sm_80"),
    ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [%r3];",
     "8.6", "sm_90", "sm_80"),
    ("cp.async.commit_group;", "7.0", "sm_80", "sm_75"),
    ("mbarrier.init.shared.b64 [%r1], 1;", "7.0", "sm_80", "sm_75"),
    ("mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;", "7.8", "sm_90", "sm_80"),
    ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r2;", "8.0", "sm_90", "sm_80"),
    ("fence.proxy.async;", "8.0", "sm_90", "sm_80"),
    ("fence.mbarrier_init.release.cluster;", "8.0", "sm_90", "sm_80"),
    ("barrier.cluster.arrive;", "7.8", "sm_90", "sm_80"),
    ("elect.sync %r1|%p1, 0xffffffff;", "8.0", "sm_90", "sm_80"),
    ("setmaxnreg.inc.sync.aligned.u32 128;", "8.0", "sm_90a", "sm_90"),
    ("wgmma.fence.sync.aligned;", "8.0", "sm_90a", "sm_100a"),
    ("wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.s8 {%r1, %r2, %r3, %r4}, %rd1, %rd2, %r5, "
     "0, %p1;", "8.2", "sm_90a", "sm_100a"),
    ("redux.sync.add.s32 %r1, %r2, 0xffffffff;", "7.0", "sm_80", "sm_75"),
    ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r1};", "7.8", "sm_90", "sm_80"),
    ("fma.rn.f32x2 %rd1, %rd2, %rd3, %rd4;", "8.6", "sm_100", "sm_90"),
    ("cvt.rn.bf16x2.f32 %r1, %f1, %f2;", "7.0", "sm_80", "sm_75"),
    ("cvt.rs.bf16x2.f32 %r1, %f1, %f2, %r3;", "8.7", "sm_100a", "sm_100f"),
]  # fmt: skip
"""Instruction, the first .version that has it, a .target that has it, and one that has not."""
TARGET_SINCE = {
    "sm_75": "6.3", "sm_80": "7.0", "sm_90": "7.8", "sm_90a": "8.0", "sm_100": "8.6",
    "sm_100a": "8.6", "sm_100f": "8.8", "sm_120a": "8.7",
}  # fmt: skip
EARLIER = {"8.2": "8.1", "7.0": "6.5", "7.8": "7.7", "8.0": "7.8", "8.6": "8.5", "8.7": "8.6"}


def accepted(body: str, version: str, target: str) -> bool:
    """Whether tcir takes a kernel that has an instruction, unreached, in it."""
    try:
        report = run_ptx(
            KERNEL.format(version=version, target=target, body=body), grid=1, block=32, args=[]
        )
    except PtxSyntaxError as error:
        assert "expected" in str(error)
        return False
    assert report.ok, str(report)
    return True


def by_ptxas(body: str, version: str, target: str, folder: Path) -> bool:
    source = folder / "kernel.ptx"
    source.write_text(KERNEL.format(version=version, target=target, body=body))
    command = [PTXAS, f"-arch={target}", source, "-o", folder / "kernel.cubin"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(("body", "version", "target", "without"), FORMS, ids=lambda x: x[:40])
def test_version_and_target(
    body: str, version: str, target: str, without: str, tmp_path: Path
) -> None:
    late = max("9.0", version, key=lambda v: tuple(map(int, v.split("."))))
    cases = [(version, target, True), (EARLIER[version], target, False), (late, without, False)]
    for of, on, right in cases:
        assert accepted(body, of, on) == right, (of, on)
        since = TARGET_SINCE[on].split(".")
        if PTXAS.exists() and list(map(int, of.split("."))) >= list(map(int, since)):
            assert by_ptxas(body, of, on, tmp_path) == right, (of, on)


ROUNDED = [
    ("div.f32 %f1, %f2, %f3;", "div.rn"), ("div.f64 %fd1, %fd2, %fd3;", "div.rz"),
    ("div.f32 %f1, %f2, %f3;", "div.full"), ("rcp.f32 %f1, %f2;", "rcp.approx"),
    ("sqrt.f64 %fd1, %fd2;", "sqrt.rn"), ("rsqrt.f32 %f1, %f2;", "rsqrt.approx"),
    ("ex2.f32 %f1, %f2;", "ex2.approx"), ("sin.f32 %f1, %f2;", "sin.approx"),
    ("fma.f32 %f1, %f2, %f3, %f4;", "fma.rn"), ("fma.f16x2 %r1, %r2, %r3, %r4;", "fma.rn"),
    ("mad.f32 %f1, %f2, %f3, %f4;", "mad.rn"), ("cvt.f32.s32 %f1, %r1;", "cvt.rn"),
    ("cvt.f64.u32 %fd1, %r1;", "cvt.rn"), ("cvt.f16.f32 %h1, %f1;", "cvt.rn"),
    ("cvt.s32.f32 %r1, %f1;", "cvt.rzi"), ("cvt.tf32.f32 %r1, %f1;", "cvt.rna"),
    ("cvt.f16x2.f32 %r1, %f1, %f2;", "cvt.rn"),
    ("cvt.satfinite.e4m3x2.f32 %h1, %f1, %f2;", "cvt.rn"), ("cvt.f16x2.e4m3x2 %r1, %h1;", "cvt.rn"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "rounded"), ROUNDED)
def test_the_rounding_is_said(body: str, rounded: str, tmp_path: Path) -> None:
    """ptxas has no default; for add, sub and mul it is .rn."""
    legal = body.replace(rounded.partition(".")[0], rounded, 1)
    for text, right in ((body, False), (legal, True)):
        assert accepted(text, "9.0", "sm_100a") == right
        if PTXAS.exists():
            assert by_ptxas(text, "9.0", "sm_100a", tmp_path) == right


def test_a_default_rounding_needs_no_modifier() -> None:
    for body in ("add.f32 %f1, %f2, %f3;", "mul.f64 %fd1, %fd2, %fd3;", "cvt.f32.f16 %f1, %h1;"):
        assert accepted(body, "9.0", "sm_100a")


def test_messages_name_the_reason() -> None:
    with pytest.raises(PtxSyntaxError, match=r"expected \.version 8\.6 or later, got 8\.0: ptxas"):
        run_ptx(
            KERNEL.format(version="8.0", target="sm_90a", body=FORMS[0][0]),
            grid=1,
            block=32,
            args=[],
        )
    with pytest.raises(PtxSyntaxError, match=r"expected \.target sm_100a or sm_100f .*got sm_90a"):
        run_ptx(
            KERNEL.format(version="8.8", target="sm_90a", body=FORMS[0][0]),
            grid=1,
            block=32,
            args=[],
        )


def test_targets() -> None:
    family = RequiredTarget(100, "af", below=120)
    assert [family.has(f"sm_{t}") for t in ("100a", "100f", "103a", "110a")] == [True] * 4
    assert not any(family.has(f"sm_{t}") for t in ("90a", "100", "120a"))
    assert RequiredTarget(90).has("sm_90a, debug")
    assert len({row[:2] for row in REQUIREMENTS}) == len(REQUIREMENTS)
