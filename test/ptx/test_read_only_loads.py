"""ld.global.nc and ldu of bytes that the same launch writes (PTX ISA 9.7.9.9): whole kernels are in
`test/corpus`, class nc."""

from __future__ import annotations

import numpy as np
import pytest

from tcir.run import RunReport, run_ptx

KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 out)
{
  .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b16 %h<2>; .reg .b64 %a, %out, %d;
  ld.param.u64 %a, [a]; ld.param.u64 %out, [out];
  mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 32; mov.u32 %r2, 7;
BODY
  ret;
}
"""
READ, WRITE = "@%p1 LOAD [%a];", "@%p2 STORE [%a+BYTES];"


def run(load: str, store: str, bytes_: int, first: str, dtype: type) -> RunReport:
    """Warp 0 loads element 0, warp 1 writes at a byte offset, a barrier in between."""
    steps = [READ, WRITE] if first == "load" else [WRITE, READ]
    body = "\n  bar.sync 0;\n  ".join(steps).replace("LOAD", load).replace("STORE", store)
    words = store.split()
    body = body.replace(f"{store} [%a+BYTES]", f"{words[0]} [%a+{bytes_}], {words[1]}")
    arrays = [np.zeros(64, dtype), np.zeros(64, np.uint32)]
    return run_ptx(KERNEL.replace("BODY", "  " + body), grid=1, block=64, args=arrays)


@pytest.mark.parametrize("first", ["load", "store"])
@pytest.mark.parametrize(
    ("load", "store", "dtype"),
    [
        ("ld.global.nc.u32 %r3,", "st.global.u32 %r2", np.uint32),
        ("ld.global.L1::no_allocate.nc.u32 %r3,", "red.global.add.u32 %r2", np.uint32),
        ("ldu.global.u32 %r3,", "st.global.u32 %r2", np.uint32),
        ("ld.global.nc.u8 %r3,", "st.global.u8 %r2", np.uint8),
    ],
)
def test_a_read_only_load_of_what_the_launch_writes(
    load: str, store: str, dtype: type, first: str
) -> None:
    report = run(load, store, 0, first, dtype)
    assert {f.code for f in report.findings} == {"non-coherent-load"}, str(report)
    (finding,) = report.findings
    assert load.split()[0] in finding.first and store.split()[0] in finding.second
    beside = run(load, store, np.dtype(dtype).itemsize, first, dtype)
    assert beside.ok and not beside.findings, str(beside)


def test_a_plain_load_may_read_what_the_launch_wrote() -> None:
    for first in ("load", "store"):
        report = run("ld.global.u32 %r3,", "st.global.u32 %r2", 0, first, np.uint32)
        assert report.ok and not report.findings, str(report)
