"""Arrays that a kernel reaches by addresses in its data: `run_ptx(addressed=…)`."""

from __future__ import annotations

import numpy as np
import pytest

from tcir.run import run_ptx

from .conftest import HEADER

#: Each CTA adds one to what a pointer of the table names, an element a thread.
INCREMENT = (
    HEADER
    + """
.visible .entry increment(.param .u64 table)
{
 .reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .f32 %f<2>;
 ld.param.b64 %rd1, [table];
 mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
 mul.wide.u32 %rd2, %r1, 8; add.s64 %rd2, %rd1, %rd2;
 ld.global.b64 %rd3, [%rd2];
 mul.wide.u32 %rd4, %r2, 4; add.s64 %rd4, %rd3, %rd4;
 ld.global.f32 %f1, [%rd4]; add.f32 %f1, %f1, 0f3F800000; st.global.f32 [%rd4], %f1;
 ret;
}
"""
)


def at(array: np.ndarray) -> int:
    return int(array.ctypes.data)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("lockstep", [True, False])
def test_pointers_in_an_array(jobs: int, lockstep: bool) -> None:
    arrays = [np.arange(64, dtype=np.float32) * (n + 1) + 3 for n in range(6)]
    want = [array + 1 for array in arrays]
    want[5][:32] -= 1
    table = np.array([at(array) for array in arrays], np.uint64)
    table[5] += np.uint64(32 * 4)  # its second half
    report = run_ptx(
        INCREMENT, grid=5, block=64, args=[table], addressed=arrays, jobs=jobs, lockstep=lockstep
    )
    assert report.ok and not report.findings, report
    half = run_ptx(INCREMENT, grid=1, block=32, args=[table[5:].copy()], addressed=arrays)
    assert half.ok and not half.findings, half
    for got, right in zip(arrays, want, strict=True):
        np.testing.assert_array_equal(got, right)


def test_behind_the_end_of_one_is_found() -> None:
    arrays = [np.full(n, 7.0, np.float32) for n in (64, 60)]
    table = np.array([at(array) for array in arrays], np.uint64)
    report = run_ptx(INCREMENT, grid=2, block=64, args=[table], addressed=arrays)
    (error,) = report.errors
    assert error.code == "out-of-bounds", error
    assert f"the array at {at(arrays[1]):#x}" in str(error)


def test_an_address_of_none_is_found() -> None:
    report = run_ptx(INCREMENT, grid=1, block=32, args=[np.array([at(np.ones(32))], np.uint64)])
    (error,) = report.errors
    assert error.code == "out-of-bounds", error


def test_one_that_is_an_argument_too_has_one_address() -> None:
    """The table names itself: its own first half, read as floats, is incremented."""
    table = np.ones(32, np.float32).view(np.uint64)
    report = run_ptx(INCREMENT, grid=1, block=2, args=[table], addressed=[table])
    assert not report.ok  # 1.0, 1.0 is no address
    table[0] = at(table) + 64
    report = run_ptx(INCREMENT, grid=1, block=16, args=[table], addressed=[table])
    assert report.ok and not report.findings, report
    assert table[0] == at(table) + 64
    np.testing.assert_array_equal(table.view(np.float32)[16:], np.full(16, 2.0, np.float32))


def test_two_ctas_that_write_one_array_race() -> None:
    array = np.zeros(32, np.float32)
    table = np.array([at(array)] * 2, np.uint64)
    report = run_ptx(INCREMENT, grid=2, block=32, args=[table], addressed=[array])
    assert {finding.kind for finding in report.findings} == {"between CTAs"}
    assert "the array at" in report.findings[0].place
