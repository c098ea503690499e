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


PROBES = BENCH / "probes_sm90.json"


@pytest.mark.parametrize("file", [FILE, PROBES], ids=lambda file: file.stem)
def test_the_file_is_the_one_that_its_hash_names(file: Path) -> None:
    said, name = file.with_suffix(".sha256").read_text().split()
    assert name == file.name and said == sha256(file.read_bytes()).hexdigest()


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

    for what, kib, stages in (("load", 1, 4), ("copy", 1, 4), ("copy", 1, 5), ("store", 1, 4)):
        ptx, box = time_hopper.copy_ptx(what, kib << 10, stages), kib << 10
        source = np.random.default_rng(0).integers(0, 256, time_hopper.BOXES * box, np.uint8)
        target = np.zeros_like(source)
        report = run_ptx(ptx, grid=1, block=32, dynamic_smem=box * stages, args=[source, target])
        assert report.ok, report
        boxes = source.reshape(-1, box)
        in_turn = np.resize(boxes[:stages], boxes.shape).ravel()
        want = {"load": np.zeros_like(source), "copy": source, "store": in_turn}
        assert np.array_equal(target, want[what])
    assemble(time_hopper.copy_ptx("copy", 8192, 4), target="sm_90")
    assemble(time_hopper.CLOCK_PTX, target="sm_90")


def test_the_buffers_on_the_gpu_are_those_of_the_prediction() -> None:
    """A smaller one is written beyond its end, which the machine finds and the H200 did."""
    sys.path.insert(0, str(BENCH))
    import numpy as np
    import time_hopper
    import time_probes

    from tcir import run_ptx

    rng = np.random.default_rng(0)
    for dtype in ("|u1", "<u2", "<u4", "<f2", "<f4"):
        filled = time_hopper._filled((3, 8), dtype, rng)
        assert (filled.shape, filled.dtype) == ((3, 8), np.dtype(dtype)) and filled.all()
        assert filled.flags.c_contiguous
    short = np.zeros((time_probes.ROWS // 2, time_probes.N), "<u4")
    report = run_ptx(time_probes.store_ptx(4, False), grid=1, block=256, args=[short])
    (error,) = report.errors
    assert str(error).startswith("out-of-bounds: ")


def test_the_probes_store_every_element_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two CTAs, by pieces and by rows; ptxas takes both; little K is that of the program."""
    sys.path.insert(0, str(BENCH))
    import numpy as np
    import time_probes

    from tcir import run_ptx

    monkeypatch.setattr(time_probes, "TILES", 1)
    shape = (time_probes.N, time_probes.N)
    for itemsize in (4, 2):
        for pieces in (True, False):
            out = np.full(shape, 777, f"<u{itemsize}")
            ptx = time_probes.store_ptx(itemsize, pieces)
            report = run_ptx(ptx, grid=2, block=256, args=[out])
            assert report.ok, report
            stored = out != 777
            assert stored[:128, :512].all() and stored.sum() == 128 * 512
            assert report.counters["global_store"] == stored.sum() * itemsize
            assemble(ptx, target="sm_90")
    text = time_probes.matmul(256, "f16")
    assert "%a: tensor<2048x256xf16>, %b: tensor<256x2048xf16>" in text
    assert "ins(%a, %b : tensor<2048x256xf16>, tensor<256x2048xf16>)" in text
