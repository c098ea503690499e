"""The probes of `wgmma.mma_async`: what a GPU is given, before one has answered."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tcir.codegen import assemble

from .wgmma_cases import code, exact, from_d, octets, to_a, to_d
from .wgmma_forms import BITS, FORMS, INTEGER_N, Form, ptx
from .wgmma_run import GROUPS

QUICK = ("n8_f32_f16_f16", "n256_f16_e4m3_e5m2", "n8_s32_b1_b1_rs", "n16_s32_u8_u8_sp0")


def test_quick_forms_assemble() -> None:
    assert assemble(ptx(QUICK), target="sm_90a").data


def test_every_form_assembles() -> None:
    assert assemble(ptx(), target="sm_90a").data


def test_every_type_and_n_is_probed() -> None:
    plain = [form for form in FORMS.values() if form.selector is None]
    assert {form.a for form in plain if form.registers} == set(BITS)
    assert {form.n for form in plain if form.a == form.b == "s8"} == set(INTEGER_N)
    assert {form.n for form in plain if form.a == form.b == "f16"} == set(range(8, 257, 8))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("e5m2", ml_dtypes.float8_e5m2),
     ("e4m3", ml_dtypes.float8_e4m3fn), ("f32", np.float32)],
)  # fmt: skip
def test_codes_are_those_of_ml_dtypes(name: str, kind: type) -> None:
    values = np.array([0, 1, -1, 1.75, -3, 64, 2.0**-6, -(2.0**-7), 2.0**-9])
    made = values.astype(kind)
    assert (code(values, name) == made.view(f"u{made.itemsize}")).all()


@pytest.mark.parametrize("name", ["n8_f32_f16_f16", "n24_f16_e4m3_e4m3", "n256_f32_tf32_tf32"])
def test_registers_hold_every_element_of_d_once(name: str) -> None:
    form = FORMS[name]
    top = 1 << (16 if form.d == "f16" else 32)
    matrix = np.arange(64 * form.n).reshape(1, 64, form.n) * 7919 % top
    assert (from_d(to_d(matrix, form), form) == matrix).all()


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_registers_hold_every_element_of_a_once(bits: int) -> None:
    k = 256 // bits
    matrix = (1 + np.arange(64 * k).reshape(1, 64, k)) * 2654435761 % (1 << bits)
    words = to_a(matrix, bits)
    held = np.sort(words.reshape(-1).view(f"u{bits // 8}"))
    assert (held == np.sort(octets(matrix, bits).reshape(-1).view(f"u{bits // 8}"))).all()


def test_probes_are_whole() -> None:
    probes = [probe for make in GROUPS.values() for probe in make(False)]
    assert {probe.form.name for probe in probes} == set(FORMS)
    for probe in probes:
        shape = (len(probe.cases), probe.form.words, 128)
        assert probe.d.shape == shape, probe.name
        assert probe.images.shape[1] <= 32768
        assert probe.cases["image"].max() < len(probe.images)


def test_expected_words_of_a_saturated_product() -> None:
    form = Form(8, "s32", "s8", "s8", saturate=True)
    probe = exact(form)
    assert probe.expected is not None
    assert (from_d(probe.expected, form)[0] == 0x7FFFFFFF).any()
    assert (from_d(probe.expected, form)[0] == 0x80000000).any()
