"""`wgmma.mma_async.sp` on the machine: metadata, text, and what it must be ordered with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tcir.interp.ptx.errors import PtxSyntaxError

from .wgmma_cases import Probe
from .wgmma_edits import FENCE, OVERWRITE, WAIT, WRITE_METADATA, edited
from .wgmma_forms import BITS, FORMS, Form, ptx
from .wgmma_machine import run
from .wgmma_sparse import SPARSE, places, sparse

F16 = FORMS["n8_f32_f16_f16_sp0"]


def test_every_type_selector_and_source_has_a_form() -> None:
    assert {f.a for f in SPARSE} == set(BITS) - {"b1"}
    for wide in ("f16", "bf16", "tf32"):
        found = {(f.selector, f.registers) for f in SPARSE if f.a == wide}
        assert found == {(s, rs) for s in (0, 1) for rs in (False, True)}


# --- metadata ------------------------------------------------------------------------------------


def one(form: Form, codes: int) -> Probe:
    """Only the first case, whose metadata is the same code in every chunk."""
    probe = sparse(form)
    m = np.full((1, 128), codes, np.uint32)
    return replace(probe, cases=probe.cases[:1], d=probe.d[:1], a=probe.a[:1], m=m)


@pytest.mark.parametrize("code", [0b0000, 0b0101, 0b1010, 0b1111])
def test_one_place_twice_is_an_error(code: int) -> None:
    report, _ = run(one(F16, 0x11111111 * code))
    assert not report.ok and "sparse-metadata" in str(report)
    assert "PTX ISA 9.7.15.6.1" in str(report)


@pytest.mark.parametrize("code", [0b0100, 0b1110])
def test_codes_of_tf32(code: int) -> None:
    form = FORMS["n8_f32_tf32_tf32_sp0"]
    report, _ = run(one(form, 0x11111111 * code))
    assert report.ok, str(report)
    report, _ = run(one(form, 0x11111111 * (code ^ 0b1100)))
    assert not report.ok and "expected one of 0b0100, 0b1110 for each chunk" in str(report)


@pytest.mark.parametrize("name", ["n8_f32_f16_f16_sp0", "n8_f32_f16_f16_sp1", "n8_s32_s8_s8_sp0"])
def test_only_the_selected_lanes_need_metadata(name: str) -> None:
    """The others' registers may be undefined; one of the selected ones that is, is a finding."""
    form = FORMS[name]
    load = "ld.global.b32 %m, [%d5];"
    text = ptx((name,))
    assert load in text
    selected = sorted({int(t) % 4 for t in places(form)[0].reshape(-1)})
    for missing in range(4):
        guard = f"and.b32 %r9, %r0, 3; setp.ne.u32 %q, %r9, {missing}; @%q {load}"
        report, _ = run(sparse(form), text.replace(load, guard), hazards="report")
        assert ("undefined" in str(report)) == (missing in selected), str(report)
        assert report.ok == (missing not in selected)


# --- text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("n8_f32_f16_f16_sp0", "%m, 0,", "%m, 2,", "0 (lanes 0 and 1 of each four) or 1"),
        ("n8_f32_tf32_tf32_sp0", "%m, 0,", "%m, 3,", "0 (lanes 0 and 1 of each four) or 1"),
        ("n8_s32_s8_s8_sp0", "%m, 0,", "%m, 1,", "expected a sparsity selector of 0 (all lanes)"),
        ("n8_f32_f16_f16_sp0", "%m, 0,", "%m, %r0,", "expected an integer constant"),
        ("n8_f32_f16_f16_sp0", "%m, 0,", "0x44444444, 0,", "expected a register of metadata"),
        ("n8_f32_f16_f16_sp0", "k32", "k16", "expected m64n8k32 of .f16"),
        (
            "n8_f32_f16_f16_sp0",
            "%m, 0, %p, 1, 1, 0, 0",
            "%p",
            "expected D, A, B, metadata, selector",
        ),
        ("n8_f32_f16_f16_sp0", ".version 8.7", ".version 8.1", "expected .version 8.2 or later"),
        ("n8_s32_s8_s8_sp0", "k64.s32.s8.s8", "k512.s32.b1.b1.and.popc", "no sparse A of .b1"),
    ],
)
def test_refused(name: str, old: str, new: str, message: str) -> None:
    text = ptx((name,))
    assert text.count(old) == 1
    with pytest.raises(PtxSyntaxError) as refused:
        run(sparse(FORMS[name]), text.replace(old, new))
    assert message in str(refused.value)


# --- order ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "registers"),
    [
        (WAIT, WAIT, False),
        (WAIT, WAIT, True),
        (WAIT, WAIT + WRITE_METADATA, False),
        (FENCE, " xor.b32 %m, %m, 1; xor.b32 %m, %m, 1;\n" + FENCE, True),
        (WAIT, WAIT + " bar.sync 0;\n" + OVERWRITE, False),
    ],
)
def test_ordered(old: str, new: str, registers: bool) -> None:
    ok, report, equal = edited(
        sparse(FORMS["n8_f32_f16_f16" + "_rs" * registers + "_sp0"]), old, new
    )
    assert ok and equal, report
    assert "error" not in report and "warning" not in report


@pytest.mark.parametrize(
    ("old", "new", "registers", "finding"),
    [
        (FENCE, "", True, "missing-wgmma-fence"),
        (FENCE, FENCE + WRITE_METADATA, False, "missing-wgmma-fence"),
        (WAIT, WRITE_METADATA + WAIT, False, "wgmma-in-flight"),
        (WAIT, WRITE_METADATA + WAIT, True, "wgmma-in-flight"),
        (WAIT, OVERWRITE + WAIT, False, "wgmma reads shared memory, then generic overwrites it"),
        (WAIT, "", False, "never-awaited"),
    ],
)
def test_not_ordered(old: str, new: str, registers: bool, finding: str) -> None:
    ok, report, _ = edited(sparse(FORMS["n8_f32_f16_f16" + "_rs" * registers + "_sp0"]), old, new)
    assert not ok and finding in report, report
