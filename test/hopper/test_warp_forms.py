"""mma.sync and mma.sp: what is refused. What they compute is in test_hopper (`warp_`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.codegen import assemble
from tcir.errors import Error
from tcir.run import run_ptx

from . import warp_forms

HEAD = warp_forms.HEADER.replace("8.6", "8.8").replace("sm_90a", "sm_100a")
SPARSE = warp_forms.FORMS["m16n8k32_s32_s8_u8_s32_row_col_sp1"]
DOUBLE = warp_forms.FORMS["m8n8k4_f64_f64_f64_f64_row_col"]
VOLTA = warp_forms.FORMS["m8n8k4_f32_f16_f16_f32_row_col"]


def launch(form: warp_forms.Form, ptx: str, inputs: list[Any] | None = None) -> Any:
    wide = form.types[0] == "f64"
    out = np.zeros((warp_forms.WARPS, form.counts[0], 32), np.uint64 if wide else np.uint32)
    return run_ptx(ptx, grid=1, block=32, args=[*(inputs or form.inputs()), out])


@pytest.mark.parametrize("name", warp_forms.FORMS)
def test_forms_assemble_for_blackwell(name: str) -> None:
    assemble(HEAD + warp_forms.FORMS[name].entry)


@pytest.mark.parametrize(
    "form,old,new",
    [(SPARSE, ", 1;", ", 2;"), (SPARSE, ".s8.u8", ".e4m3.e4m3"), (DOUBLE, ".row.col", ".col.col"),
     (DOUBLE, "m8n8k4", "m8n8k8"), (DOUBLE, ".row.col", ".row.col.satfinite"),
     (VOLTA, ".f32.f16.f16.f32", ".f16.f16.f16.f32")],
)  # fmt: skip
def test_forms_that_do_not_exist(form: warp_forms.Form, old: str, new: str) -> None:
    ptx = HEAD + form.entry.replace(form.instruction, form.instruction.replace(old, new))
    assert new in ptx
    with pytest.raises(ValueError, match="expected"):
        launch(form, ptx)
    with pytest.raises(Error):
        assemble(ptx)


def test_what_only_other_targets_have() -> None:
    ptx = (HEAD + VOLTA.entry).replace("sm_100a", "sm_70")
    assert "sm_70" in str(launch(VOLTA, ptx).incomplete[0])
    scaled = SPARSE.instruction.replace("mma.sp::ordered_metadata", "mma")
    scaled = scaled.replace(".s32.s8.u8.s32", ".kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0")
    report = launch(SPARSE, HEAD + SPARSE.entry.replace(SPARSE.instruction, scaled))
    assert "sm_120a" in str(report.incomplete[0])


def test_metadata_that_names_a_place_twice() -> None:
    inputs = SPARSE.inputs()
    assert launch(SPARSE, HEAD + SPARSE.entry, inputs).ok
    inputs[3][0, 0, 2] = inputs[3][0, 0, 2] & ~np.uint32(15) | np.uint32(5)
    report = launch(SPARSE, HEAD + SPARSE.entry, inputs)
    assert [e.code for e in report.errors] == ["sparse-metadata"]
    inputs[3][0, 0, 2] ^= np.uint32(5 ^ 4)
    inputs[3][0, 0, 0] = 0  # a lane that the selector does not name
    assert launch(SPARSE, HEAD + SPARSE.entry, inputs).ok
