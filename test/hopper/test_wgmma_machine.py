"""`wgmma` on the machine against the words that an H200 wrote, digests in wgmma.json."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tcir.machine.numerics import wgmma

from . import wgmma_cases, wgmma_sparse
from .wgmma_cases import Probe, exact, sums
from .wgmma_forms import FORMS
from .wgmma_machine import RECORD, run, summary
from .wgmma_run import GROUPS

QUICK = (
    "exact/n8_f32_f16_f16",
    "exact/n8_f32_tf32_tf32_rs",
    "exact/n256_f16_e4m3_e5m2",
    "exact/n16_f32_bf16_bf16_mnab",
    "exact/n8_f32_f16_f16_nega",
    "exact/n8_s32_s8_u8_sat",
    "exact/n8_s32_b1_b1_rs",
    "sums/n8_f32_f16_f16",
    "sums/n8_f16_f16_f16",
    "sums/n8_f32_tf32_tf32",
    "sums/n8_f32_e4m3_e5m2",
    "sums/n8_f16_e5m2_e4m3",
    "addresses_of_b/n8_f32_tf32_tf32_b",
    "addresses_sparse/n8_f32_tf32_tf32_sp0_a",
    "sparse/n8_f32_f16_f16_sp1",
    "sparse/n8_f16_f16_f16_rs_sp0",
    "sparse/n16_f32_bf16_bf16_mna_sp0",
    "sparse/n64_f32_f16_f16_mnb_sp0",
    "sparse/n8_f32_tf32_tf32_rs_sp1",
    "sparse/n8_f32_e4m3_e4m3_nega_sp0",
    "sparse/n8_f16_e5m2_e4m3_rs_sp0",
    "sparse/n8_s32_s8_u8_sat_sp0",
    "sparse/n8_s32_u8_s8_rs_sp0",
    "sparse_sums/n8_f32_bf16_bf16_sp0",
    "sparse_sums/n8_f32_e4m3_e5m2_sp0",
    "any_order/n8_f32_f16_f16_rs_sp1",
    "any_order/n8_s32_s8_s8_sp0",
)
"""One of each arithmetic; the rest are marked slow."""


@cache
def probes(group: str) -> dict[str, Probe]:
    """Those of a group by name."""
    return {probe.name: probe for probe in GROUPS[group](False)}


def probe_of(key: str) -> Probe:
    """What was recorded under a key of wgmma.json."""
    group, name = key.split("/")
    if group.startswith("addresses"):
        return probes(group)[name]
    return {**vars(wgmma_cases), **vars(wgmma_sparse)}[group](FORMS[name])


@pytest.mark.parametrize(
    "key",
    [k if k in QUICK else pytest.param(k, marks=pytest.mark.slow) for k in RECORD["digests"]],
)
def test_machine_gives_the_words_of_silicon(key: str) -> None:
    probe = probe_of(key)
    report, words = run(probe)
    assert report.ok and not report.incomplete, str(report)
    assert summary(key.split("/")[0], probe, words) == RECORD["digests"][key]
    if probe.expected is not None:
        assert np.array_equal(words, probe.expected)


def test_every_probe_was_recorded() -> None:
    probed = {f"{group}/{probe.name}" for group in GROUPS for probe in probes(group).values()}
    assert probed == set(RECORD["digests"]) and set(QUICK) <= probed
    assert {f"exact/{f.name}" for f in FORMS.values() if f.selector is None} <= probed
    assert {f"sparse/{f.name}" for f in FORMS.values() if f.selector is not None} <= probed
    assert sum(key.startswith("sums/") for key in probed) == 12
    assert sum(key.startswith("sparse_sums/") for key in probed) == 12


@pytest.mark.parametrize("window", [12, 14])
def test_another_window_of_fp8_is_noticed(monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    monkeypatch.setattr(wgmma, "FP8_WINDOW", window)
    key = "sums/n8_f32_e4m3_e4m3"
    probe = probe_of(key)
    _, words = run(probe)
    assert summary("sums", probe, words) != RECORD["digests"][key]


def test_inputs_of_sums_reach_every_kind_of_value() -> None:
    probe = sums(FORMS["n8_f32_bf16_bf16"])
    values = run(probe)[1].view(np.float32)
    assert np.isnan(values).any() and np.isinf(values).any()
    assert ((values != 0) & (np.abs(values) < 2.0**-126)).any()


def test_a_descriptor_of_tcgen05_is_refused() -> None:
    probe = exact(FORMS["n8_f32_f16_f16"])
    probe.cases["a"] |= np.uint64(1 << 46)
    report, _ = run(probe)
    assert not report.ok and "0b001 is tcgen05's" in str(report)
