"""Predictions for a Hopper GPU: frozen, of enough kernels, measured as they were made."""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from tcir.codegen import assemble

BENCH = Path(__file__).parents[2] / "bench"
FILE = BENCH / "predictions_sm90.json"


def test_the_file_is_the_one_that_its_hash_names() -> None:
    said, name = FILE.with_suffix(".sha256").read_text().split()
    assert name == FILE.name and said == sha256(FILE.read_bytes()).hexdigest()


def test_there_are_enough_kernels_and_they_are_modelled() -> None:
    document = json.loads(FILE.read_text())
    assert document["modelled"] is True and document["target"] == "sm_90"
    names = [kernel["name"] for kernel in document["kernels"]]
    assert len(names) == len(set(names)) >= 12
    assert {name.split()[0] for name in names} == {"matmul-warp", "gemv-simt", "TMA"}
    for kernel in document["kernels"]:
        assert kernel["us"] == pytest.approx(kernel["cycles"] / 1980, abs=0.006)


def test_the_copies_copy() -> None:
    """On the machine, with every check; and ptxas takes them and the kernel that counts."""
    sys.path.insert(0, str(BENCH))
    import numpy as np
    import time_hopper

    from tcir import run_ptx

    for what, kib, stages in (("load", 1, 4), ("copy", 1, 4), ("copy", 1, 5)):
        ptx, box = time_hopper.copy_ptx(what, kib << 10, stages), kib << 10
        source = np.random.default_rng(0).integers(0, 256, time_hopper.BOXES * box, np.uint8)
        target = np.zeros_like(source)
        report = run_ptx(ptx, grid=1, block=32, dynamic_smem=box * stages, args=[source, target])
        assert report.ok, report
        assert np.array_equal(target, source if what == "copy" else np.zeros_like(source))
    assemble(time_hopper.copy_ptx("copy", 8192, 4), target="sm_90")
    assemble(time_hopper.CLOCK_PTX, target="sm_90")
