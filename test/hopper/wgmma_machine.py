"""The probes of `wgmma_cases` on the machine, as `wgmma_run` has them on a GPU."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tcir.run import RunReport, run_ptx

from .mma_sync import HERE
from .wgmma_cases import Probe, read_at
from .wgmma_forms import ptx
from .wgmma_run import digest, threads_of

RECORD: dict[str, Any] = json.loads((HERE / "wgmma.json").read_text())
"""Digests of the words that an H200 wrote: `GROUP/NAME`."""


def run(
    probe: Probe, text: str | None = None, hazards: str = "off", **options: Any
) -> tuple[RunReport, Any]:
    """The report, and D's words after; text: another program than the probe's; options: of
    `run_ptx`."""
    d = probe.d.copy()
    args = [probe.cases.view(np.uint8).reshape(-1).copy(), probe.images, probe.a, probe.m, d]
    report = run_ptx(
        text or ptx((probe.form.name,)), entry=probe.form.name, grid=len(d), block=128,
        args=[*args, np.uint32(probe.images.shape[1])], hazards=hazards, **options,
    )  # fmt: skip
    return report, d


def summary(group: str, probe: Probe, words: Any) -> str:
    """Summary of a result, as `wgmma.json` stores it."""
    if not group.startswith("addresses"):
        return digest(words)
    return digest(threads_of(probe, read_at(words, probe.form)))
