"""Time and memory of a validation, said before it starts; what is too large is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tcir
from tcir.interp import OutputSpec
from tcir.program import capacity
from tcir.program.signature import Signature
from tcir.validation.estimate import Estimate, duration

from .linalg_text import Matmul


def tc_opt(*words: str, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tcir.tools.tc_opt", *words],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_product_that_no_machine_holds_is_refused_with_an_estimate_and_a_way_out() -> None:
    text = Matmul(100_000, 100_000, 100_000).text()
    result = tc_opt("--pipeline=gemm", "--validate-each", "--emit=ptx", text=text)
    assert result.returncode == 2
    (error,) = [line for line in result.stderr.splitlines() if line.startswith("error")]
    assert "got at least 960 GB for arrays of 30000000000 elements" in error
    assert "(would take about 105 days)" in error
    assert "compile without executing (no --validate-each), or execute smaller shapes" in error
    assert "Traceback" not in result.stderr and "reference" not in result.stderr


def test_the_same_product_compiles() -> None:
    text = Matmul(100_000, 100_000, 100_000).text()
    result = tc_opt("--pipeline=gemm", "--emit=ptx", text=text)
    assert result.returncode == 0 and "tcgen05.mma" in result.stdout


def test_what_is_named_as_fitting_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of 3 * 128 * 128 elements where there is room for exactly that, and for one less."""
    elements = 3 * 128 * 128
    text = Matmul(128, 128, 128).text()
    monkeypatch.setattr(capacity, "host_memory", lambda: capacity.ELEMENT * elements)
    assert tcir.validate(text).ok
    monkeypatch.setattr(capacity, "host_memory", lambda: capacity.ELEMENT * elements - 1)
    with pytest.raises(tcir.IncompleteError, match=f"up to {elements - 1} elements together"):
        tcir.validate(text)


def test_a_long_validation_says_so_before_it_starts(tmp_path: Path) -> None:
    """Here of the tensor level only, which is quick whatever the estimate is."""
    report = tmp_path / "r.json"
    words = ("--canonicalize", f"--validate-each={report}", "-o", "/dev/null")
    result = tc_opt(*words, text=Matmul(1024, 1024, 1024).text())
    header, estimate, first, *_ = result.stderr.splitlines()
    assert header.split()[:2] == ["#", "pass"] and "reference" in first
    assert estimate.startswith("estimate: about 16 s and 0.929 GB of memory to execute all states")
    said = json.loads(report.read_text())["estimate"]
    assert round(said["seconds"]) == 16 and round(said["bytes"] / 1e6) == 929
    short = tc_opt(*words, text=Matmul(128, 128, 128).text())
    assert short.returncode == 0 and "estimate" not in short.stderr


def test_an_estimate_beyond_this_machine_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = OutputSpec((1024, 1024), np.dtype(np.float32))
    estimate = Estimate.of(Signature("f", "tensor", (spec, spec), (spec,)), 1 << 30, 1)
    monkeypatch.setattr("tcir.validation.estimate.host_memory", lambda: estimate.nbytes)
    assert "this machine" not in str(estimate)
    monkeypatch.setattr("tcir.validation.estimate.host_memory", lambda: estimate.nbytes - 1)
    assert str(estimate).endswith("elements); this machine has 0.929 GB")


def test_estimates_grow_with_sums_arrays_and_orders() -> None:
    spec = OutputSpec((1024, 1024), np.dtype(np.float32))

    def of(points: int, arrays: int, orders: int) -> Estimate:
        signature = Signature("f", "tensor", (spec,) * arrays, (spec,))
        return Estimate.of(signature, points, orders)

    base = of(1 << 30, 2, 1)
    assert of(1 << 31, 2, 1).seconds > 1.4 * base.seconds
    assert of(1 << 30, 5, 1).nbytes > 1.3 * base.nbytes
    assert of(1 << 30, 2, 9).seconds > 1.8 * base.seconds


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1.6, "2 s"), (119, "119 s"), (121, "2 minutes"), (7300, "2 hours"), (9e6, "104 days")],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == f"about {words}"
