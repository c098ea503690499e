"""Arrays of which only some bytes hold values, and launches without the barrier of a grid."""

from __future__ import annotations

import numpy as np
import pytest
from corpus.program import find

from tcir.errors import LaunchError
from tcir.run import RunReport, run_ptx

COPY = """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry copy(.param .u64 out, .param .u64 in) {
  .reg .b64 %d<5>; .reg .b32 %r<5>;
  ld.param.u64 %d1, [out]; ld.param.u64 %d2, [in];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r1, %r2, 32, %r1;
  mul.wide.u32 %d3, %r1, 4; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;
  ld.global.u32 %r3, [%d2]; st.global.u32 [%d1], %r3; ret;
}
"""


def copied(out: np.ndarray, data: np.ndarray, masks: object, **options: object) -> RunReport:
    return run_ptx(COPY, grid=4, block=32, args=[out, data], written=masks, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{}, {"lockstep": False}, {"jobs": 2}, {"order_seed": 3}])
def test_the_launch_enters_what_it_writes(options: dict[str, object]) -> None:
    data, out = np.arange(130, dtype=np.uint32), np.zeros(130, np.uint32)
    masks = [(data, np.arange(520) < 512), (out, np.zeros(520, bool))]
    report = copied(out, data, masks, **options)
    assert report.ok and not report.findings, str(report)
    assert (out[:128] == data[:128]).all()
    assert (masks[0][1] == (np.arange(520) < 512)).all()
    assert (masks[1][1] == (np.arange(520) < 512)).all()


@pytest.mark.parametrize("options", [{}, {"lockstep": False}, {"jobs": 2}])
def test_a_byte_that_nobody_wrote(options: dict[str, object]) -> None:
    data, out = np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)
    mask = np.ones(512, bool)
    mask[400] = False
    report = copied(out, data, [(data, mask)], **options)
    assert [each.code for each in report.findings] == ["undefined-read"], str(report)
    assert "bytes 0x190..0x193" in str(report)


def test_views_and_arrays_by_address() -> None:
    whole = np.arange(256, dtype=np.uint32)
    mask = np.arange(1024) < 512
    out = np.zeros(128, np.uint32)
    assert copied(out, whole[:128], [(whole, mask)]).ok
    assert copied(out, whole[1:129], [(whole, mask)]).findings
    where = np.uint64(whole.ctypes.data)
    run = {"grid": 4, "block": 32, "addressed": [whole], "written": [(whole, mask)]}
    assert run_ptx(COPY, args=[out, where], **run).ok  # type: ignore[arg-type]
    assert run_ptx(COPY, args=[out, where + np.uint64(4)], **run).findings  # type: ignore[arg-type]


def test_a_mask_that_does_not_fit() -> None:
    data = np.zeros(128, np.uint32)
    with pytest.raises(LaunchError, match="expected a bool for each of 512 bytes, got bool of"):
        copied(data, data, [(data, np.zeros(128, bool))])


def test_the_barrier_of_a_grid_in_an_ordinary_launch() -> None:
    text = find("right/cuda_cg_grid_sync").text
    arrays = [np.zeros(64, np.uint32) for _ in range(2)]
    run = {"grid": 4, "block": 64, "args": arrays}
    assert run_ptx(text, **run).ok  # type: ignore[arg-type]
    ended = run_ptx(text, cooperative=False, **run)  # type: ignore[arg-type]
    assert [each.code for each in ended.errors] == ["trap"]
