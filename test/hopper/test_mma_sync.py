"""`mma.sync` on the machine against the words that a Hopper GPU wrote, digests in mma_sync.json."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import numpy as np
import pytest

from tcir.codegen import assemble, disassemble

from . import mma_sync
from .mma_sync import FLOATS, FORMS
from .test_hopper import hopper  # noqa: F401  (the fixture)

RECORD: dict[str, Any] = json.loads((mma_sync.HERE / "mma_sync.json").read_text())


@cache
def cubin(target: str = "sm_90") -> bytes:
    """The kernels of all forms."""
    return assemble(mma_sync.ptx(target), target=target).data


@pytest.mark.parametrize(
    "name",
    FORMS,
)
def test_machine_gives_the_words_of_silicon(name: str) -> None:
    report, words = mma_sync.on_machine(FORMS[name])
    assert report.ok and not report.incomplete, str(report)
    assert mma_sync.digest(words) == RECORD["digests"][name]


def test_every_form_was_recorded() -> None:
    assert set(RECORD["digests"]) == set(FORMS)
    assert sum(mma_sync.elements(form) for form in FLOATS) > 10**6


def test_a_window_of_24_bits_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ampere's constants do not give Hopper's words."""
    form = FORMS["k16_f32_f16_f16"]
    _, words = mma_sync.on_machine(form, target="sm_80")
    assert mma_sync.digest(words) != RECORD["digests"][form.name]


def test_inputs_reach_every_kind_of_value() -> None:
    """Finite, subnormal, infinite and NaN results, and sums that cancelled."""
    _, words = mma_sync.on_machine(FORMS["k16_f32_bf16_bf16"])
    values = words.view(np.float32)
    finite = values[np.isfinite(values)]
    assert len(finite) > 0.8 * values.size and len(np.unique(finite)) > 0.5 * values.size
    assert np.isnan(values).sum() > 100 and np.isinf(values).sum() > 100
    assert ((finite != 0) & (np.abs(finite) < 2.0**-126)).sum() > 100
    a, b, _ = mma_sync.inputs(FORMS["k16_f32_bf16_bf16"])
    assert a.dtype == b.dtype == np.uint32 and (a != 0).any()


@pytest.mark.parametrize("target", ["sm_90", "sm_100a"])
def test_ptxas_spells_fp8_with_f16(target: str) -> None:
    """What `warp_mma._through_f16` of the machine describes: two HMMA of f16 for each mma."""
    sass = disassemble(cubin(target))
    kernels = re.split(r"\.section\s+\.text\.|Function : ", sass)
    fp8 = [k for k in kernels if re.match(r"k32_f32_e\dm\d_e\dm\d", k)]
    assert len(fp8) == 4
    for kernel in fp8:
        assert "QMMA" not in kernel
        assert len(re.findall(r"HMMA\.16816\.F32", kernel)) * 6 == len(
            re.findall(r"F2FP\.F16\.E\dM\d\.UNPACK_B", kernel)
        )


@pytest.mark.gpu
def test_silicon(hopper: Any) -> None:  # noqa: F811
    """The words recorded are still those of this GPU (one test: a skip should be one line)."""
    found = {n: mma_sync.digest(mma_sync.on_gpu(f, cubin())) for n, f in FORMS.items()}
    assert [n for n in FORMS if found[n] != RECORD["digests"][n]] == []
