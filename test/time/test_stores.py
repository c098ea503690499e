"""Bytes a store and sectors a request, against patterns whose sectors can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

import tcir
from tcir import run_ptx
from tcir.machine.events import Recording
from tcir.time.stores import StoreSites, global_stores

KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
	.reg .b64 %a, %d;
	.reg .b32 %t, %x;
	.reg .pred %p;
	ld.param.u64 %a, [out];
	mov.u32 %t, %tid.x;
	setp.lt.u32 %p, %t, LANES;
	mul.wide.u32 %d, %t, STRIDE;
	add.u64 %a, %a, %d;
	mov.b32 %x, 0;
	@%p STORE;
	ret;
}
"""
WIDE = "st.global.v4.b32 [%a], {%x, %x, %x, %x}"
CASES = {
    "neighbours": ("st.global.b32 [%a]", 4, 64, (2, 4, 4.0, 4.0)),
    "neighbours, 16 bytes": (WIDE, 16, 64, (2, 16, 16.0, 16.0)),
    "a line apart": ("st.global.b32 [%a]", 128, 64, (2, 4, 32.0, 4.0)),
    "half of each sector": (WIDE, 32, 64, (2, 16, 32.0, 16.0)),
    "two bytes": ("st.global.b16 [%a]", 2, 64, (2, 2, 2.0, 2.0)),
    "8 lanes": ("st.global.b32 [%a]", 4, 8, (1, 4, 1.0, 1.0)),
    "all at one place": ("st.global.b32 [%a]", 0, 1, (1, 4, 1.0, 1.0)),
}


@pytest.mark.parametrize("case", CASES)
def test_sectors_of_a_pattern(case: str) -> None:
    store, stride, lanes, expected = CASES[case]
    if "b16" in store:
        store = store.replace("[%a]", "[%a], %h")
    elif "{" not in store:
        store += ", %x"
    text = (
        KERNEL.replace("STORE", store).replace("STRIDE", str(stride)).replace("LANES", f"{lanes}")
    )
    text = text.replace(".reg .pred", ".reg .b16 %h;\n\t.reg .pred").replace(
        "mov.b32 %x, 0;", "mov.b32 %x, 0;\n\tmov.b16 %h, 0;"
    )
    recording = Recording()
    out = np.zeros(1 << 12, np.uint32)
    assert run_ptx(text, grid=1, block=64, args=[out], events=recording).ok
    (found,) = global_stores(recording.streams)
    assert (found.requests, found.bytes, found.sectors, found.least) == expected
    assert text.splitlines()[found.line - 1].lstrip().startswith("@%p st.global")


def test_a_validated_kernel_s_report_has_them() -> None:
    program = """func.func @f(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %r = arith.addf %a, %a : tensor<64x64xf32>
      return %r : tensor<64x64xf32>
    }"""
    report = tcir.validate(program, "simt-elementwise")
    assert report.ok and report.code is not None
    (store,) = (StoreSites(**each) for each in report.code["global_stores"])
    assert store.kernel == "f_0_addf" and store.sectors == store.least > 0
    assert "bytes" in report.as_dict()["code"]["global_stores"][0]
