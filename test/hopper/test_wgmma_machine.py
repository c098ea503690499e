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
    RECORD["digests"],
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
    assert probed == set(RECORD["digests"])
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
