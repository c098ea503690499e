"""What no program knows beforehand: where its memory lies, and which lane is elected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.errors import LaunchError
from tcir.machine import Assumptions
from tcir.run import RunReport, run_ptx

from .conftest import HEADER

SEEDS = range(1, 9)
SHARED = """.shared .align 4 .b8 a[4];
.shared .align 16 .b8 b[16];
.extern .shared .align 16 .b8 dyn[];
"""


def run(body: str, out: np.ndarray, declared: str = "", **options: Any) -> RunReport:
    text = f"""{HEADER}{declared}.visible .entry k(.param .u64 p) {{
 .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<4>; ld.param.u64 %d0, [p]; {body} ret; }}"""
    return run_ptx(text, grid=1, block=options.pop("block", 32), args=[out], **options)


def codes(report: RunReport) -> list[str]:
    return [error.code for error in report.errors]


def places(seed: int | None, **options: Any) -> tuple[int, ...]:
    """The addresses of a, b and dyn."""
    out = np.zeros(3, np.uint32)
    body = "".join(
        f"mov.u32 %r1, {name}; st.global.u32 [%d0+{4 * n}], %r1;"
        for n, name in enumerate(("a", "b", "dyn"))
    )
    assert run(body, out, SHARED, dynamic_smem=64, order_seed=seed, **options).ok
    return tuple(out.tolist())


def test_shared_memory_begins_where_ptxas_begins_it() -> None:
    assert places(None) == (0x400, 0x410, 0x420)
    found = [places(seed) for seed in SEEDS]
    assert len({dyn for *_, dyn in found}) > 3 and {a < b for a, b, _ in found} == {True, False}
    for a, b, dyn in found:
        assert dyn % 1024 == 0x20 and max(a, b) < dyn and min(a, b) >= 0x400 and b % 16 == 0
    fixed = Assumptions(shared_start="reserved")
    assert {places(seed, assumptions=fixed) for seed in SEEDS} == {(0x400, 0x410, 0x420)}


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("mov.u32 %r1, dyn; st.shared.u32 [%r1], 1; ld.shared.u32 %r2, [%r1];", []),
        ("mov.u32 %r1, 0; st.shared.u32 [%r1], 1;", ["reserved-shared-memory"]),
        ("st.shared.u32 [0x3fc], 1;", ["reserved-shared-memory"]),
        ("mbarrier.init.shared.b64 [0], 1;", ["reserved-shared-memory"]),
        ("mov.u32 %r1, a; ld.shared.u32 %r2, [%r1-4];", ["reserved-shared-memory"]),
    ],
)
def test_what_is_in_front_is_the_systems(body: str, found: list[str], seed: int | None) -> None:
    fixed = Assumptions(shared_start="reserved")  # so that a comes first
    report = run(
        body, np.zeros(1), SHARED, dynamic_smem=64, order_seed=seed, block=1, assumptions=fixed
    )
    assert codes(report) == found


@pytest.mark.parametrize(("target", "most"), [("sm_80", 48 << 10), ("sm_100a", 227 << 10)])
def test_as_much_static_memory_as_ptxas_takes(target: str, most: int) -> None:
    def launch(nbytes: int) -> RunReport:
        text = f"""{HEADER.replace("sm_100a", target)}.shared .align 4 .b8 a[{nbytes}];
.visible .entry k() {{ .reg .b32 %r1; mov.u32 %r1, a; st.shared.u32 [%r1], 1; ret; }}"""
        return run_ptx(text, grid=1, block=1)

    assert launch(most).ok
    with pytest.raises(
        LaunchError, match=f"static shared memory: expected at most {most} bytes, which ptxas"
    ):
        launch(most + 1)


ELECT = """elect.sync %r1|%p1, {mask}; elect.sync %r2|%p2, {mask};
 @%p1 st.global.u32 [%d0], %r1; @%p2 st.global.u32 [%d0+4], %r2;"""


def test_another_lane_is_elected_under_a_seed() -> None:
    def leader(mask: int, **options: Any) -> int:
        out = np.full(2, 99, np.uint32)
        masked = f"mov.u32 %r3, %laneid; shr.u32 %r3, {mask:#x}, %r3; and.b32 %r3, %r3, 1; "
        only = masked + "setp.eq.u32 %p3, %r3, 0; @%p3 bra OUT; "
        assert run(only + ELECT.format(mask=hex(mask)) + " OUT:", out, **options).ok
        assert out[0] == out[1] and mask >> int(out[0]) & 1
        return int(out[0])

    for mask, lowest, highest in ((0xFFFFFFFF, 0, 31), (0x00F0, 4, 7)):
        assert leader(mask) == lowest and leader(mask, placement="adverse") == highest
        assert len({leader(mask, order_seed=n) for n in SEEDS}) > 2
        fixed = Assumptions(elected_lane="lowest")
        assert leader(mask, order_seed=1, assumptions=fixed) == lowest


ALLOC = """.shared .align 4 .b32 w; mov.u32 %r1, w;
 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 64;
 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; bar.warp.sync -1;
 ld.shared.u32 %r2, [w]; st.global.u32 [%d0], %r2;
 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 64;"""


def test_columns_that_another_cta_may_hold() -> None:
    """By default those of a CTA that is alone on its SM begin at 0."""

    def column(seed: int | None, nbytes: int, **options: Any) -> int:
        out = np.zeros(32, np.uint32)
        declared = ".extern .shared .b8 dyn[];\n"
        keep = " mov.u32 %r3, dyn;"
        report = run(
            ALLOC + keep, out[:1], declared, dynamic_smem=nbytes, order_seed=seed, **options
        )
        assert not report.errors
        return int(out[0])

    assert column(None, 1024) == 0 and column(None, 1024, placement="adverse") == 448
    small, large = ({column(n, size) for n in SEEDS} for size in (1024, 200 << 10))
    assert 0 not in small and len(small) > 2 and large == {0}
    every = Assumptions(alloc_place="any")
    assert 0 not in {column(n, 200 << 10, assumptions=every) for n in SEEDS}
    assert {column(n, 1024, assumptions=Assumptions(alloc_place="lowest")) for n in SEEDS} == {0}


def vector(promise: str, array: np.ndarray, **options: Any) -> list[str]:
    text = f"""{HEADER}.visible .entry k(.param .u64 {promise} p) {{
 .reg .b32 %r<5>; .reg .b64 %d<2>; ld.param.u64 %d0, [p];
 ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%d0]; ret; }}"""
    return codes(run_ptx(text, grid=1, block=32, args=[array], **options))


@pytest.mark.parametrize("promise", ["", ".ptr", ".ptr .global .align 8"])
def test_a_buffer_lies_at_what_its_parameter_promises(promise: str) -> None:
    array = np.zeros(64, np.uint32)
    assert vector(promise, array) == vector(promise, array[4:]) == []
    assert vector(promise, array, placement="adverse") == ["misaligned-address"]
    assert vector(".ptr .global .align 16", array, placement="adverse") == []


def test_a_view_keeps_its_offset() -> None:
    array = np.zeros(64, np.uint32)
    assert vector("", array[2:]) == ["misaligned-address"]
    assert vector(".ptr .align 16", array[8:]) == []
    with pytest.raises(LaunchError, match=r"multiple of 16.*begins 8 bytes into its array"):
        vector(".ptr .align 16", array[2:])


LOCAL = """.local .align 4 .b8 l[8]; mov.u32 %r1, %laneid; mov.u64 %d1, l; cvta.local.u64 %d2, %d1;
 st.local.u32 [l], %r1; st.u32 [%d2+4], %r1; mov.b64 {%r2, %r3}, %d2; SHARED
 mov.b64 %d3, {%r2, %r3}; ld.u32 %r4, [%d3]; cvta.to.local.u64 %d4, %d3;
 ld.local.u32 %r5, [%d4+4];
 mul.wide.u32 %d5, %r1, 4; add.u64 %d5, %d0, %d5; add.u32 %r4, %r4, %r5;
 st.global.u32 [%d5], %r4;"""


@pytest.mark.parametrize(
    ("shared", "found"),
    [
        ("", []),
        ("shfl.sync.idx.b32 %r2, %r2, %r1, 31, -1;", []),  # each its own
        ("shfl.sync.idx.b32 %r2, %r2, 0, 31, -1;", ["foreign-local-memory"]),
    ],
)
def test_each_thread_has_its_own_local_memory(shared: str, found: list[str]) -> None:
    out = np.zeros(32, np.uint32)
    report = run(LOCAL.replace("SHARED", shared), out)
    assert codes(report) == found
    if not found:
        assert (out == 2 * np.arange(32)).all()
    else:
        assert "got one of thread 0" in str(report.errors[0])
