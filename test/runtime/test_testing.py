"""`tcir.testing`, on a driver that executes kernels on the simulated machine."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from endtoend.product_text import program

import tcir
from tcir.errors import InputError
from tcir.program.inputs import make_inputs
from tcir.testing import assert_same_as_gpu

from . import fake_driver

TEXT = program(72, 24, 40, "f16", out="f16")


@pytest.fixture(autouse=True)
def afterwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # ends in front of it
    yield
    fake_driver.forget()


def on_hopper(monkeypatch: pytest.MonkeyPatch, kernel: tcir.Kernel, ptx: str) -> None:
    """A device of capability 9.0 that executes `ptx` for the kernel's code."""
    sizes = {
        launch.name: ([128 if p["kind"] == "tensor_map" else 8 for p in launch.params], ptx)
        for launch in kernel.launches.launches
    }
    fake_driver.install(monkeypatch, sizes, (9, 0))


def test_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tcir.compile(TEXT, "gemm", target="sm_90a")
    on_hopper(monkeypatch, kernel, kernel.ptx)
    assert_same_as_gpu(kernel, *make_inputs(kernel.signature.inputs, 1, "random"), order_seed=2)


def test_other_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that truncates where the program rounds."""
    kernel = tcir.compile(TEXT, "gemm", target="sm_90a")
    assert "cvt.rn.f16x2.f32" in kernel.ptx
    on_hopper(monkeypatch, kernel, kernel.ptx.replace("cvt.rn.f16x2", "cvt.rz.f16x2"))
    inputs = make_inputs(kernel.signature.inputs, 1, "random")
    with pytest.raises(AssertionError, match=r"result 0\[\d+, \d+\]: .* of 1728 elements differ"):
        assert_same_as_gpu(kernel, *inputs)


def test_approximate_functions_have_no_bits() -> None:
    kernel = SimpleNamespace(name="f", ptx="\t@%p1 ex2.approx.ftz.f32 \t%r1, %r2;\n")
    with pytest.raises(InputError, match=r"got ex2\.approx\.ftz\.f32 .*--bundle DIR"):
        assert_same_as_gpu(kernel, np.zeros(1))  # type: ignore[arg-type]
