"""What a call on the machine says on a terminal: an estimate, what is left; elsewhere nothing."""

from __future__ import annotations

import contextlib
import os
import pty
import sys
from collections.abc import Callable

import numpy as np
import pytest

import tcir
from tcir import progress

TEXT = """func.func @twice(%a: tensor<4096xf32>) -> tensor<4096xf32> {
  %b = arith.addf %a, %a : tensor<4096xf32>
  return %b : tensor<4096xf32>
}"""
ONES = np.ones(4096, np.float32)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> tcir.Kernel:
    """Of 4 CTAs, each of which is estimated to take ten seconds."""
    monkeypatch.setattr(progress, "PER_CTA", 10.0)
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    return tcir.compile(TEXT, "simt-elementwise")


def said(kernel: tcir.Kernel, asked: bool | None = None, terminal: bool = True) -> str:
    """What a call writes to standard error."""
    return written(lambda: kernel.run(ONES, progress=asked), terminal)


def written(action: Callable[[], object], terminal: bool) -> str:
    """What is written to standard error, a pseudo-terminal or a pipe."""
    leader, follower = pty.openpty() if terminal else os.pipe()
    before, sys.stderr = sys.stderr, os.fdopen(follower, "w")
    try:
        action()
    finally:
        sys.stderr.close()
        sys.stderr = before
    found = b""
    with contextlib.suppress(OSError):  # with which a pseudo-terminal ends
        while part := os.read(leader, 1 << 16):
            found += part
    os.close(leader)
    return found.decode()


def test_on_a_terminal(kernel: tcir.Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _, rest = said(kernel).partition("\r\n")
    assert first == ("@twice on the simulated machine: 1 launch, 4 CTAs, about 40 s (estimated)")
    assert "@twice: " in rest and " of 4 CTAs, about " in rest and " left" in rest
    assert rest.endswith("\r\x1b[K")
    assert "CTAs, about 40 s" not in said(kernel)  # it is known now, and not worth saying
    monkeypatch.setattr(progress, "WORTH_SAYING", 0.0)
    assert "(as before)" in said(kernel)


def test_asked_without_a_terminal(kernel: tcir.Kernel) -> None:
    text = said(kernel, True, terminal=False)
    assert "(estimated)\n" in text and "\r" not in text and "left" not in text


def test_quiet(kernel: tcir.Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(kernel, False) == "" and said(kernel, None, terminal=False) == ""
    monkeypatch.setenv("TCIR_PROGRESS", "0")
    assert said(kernel) == ""


def test_a_compilation() -> None:
    def compile() -> None:
        with progress.compiling("tcir.onnx", 12):
            pass

    assert written(compile, terminal=False) == ""
    lines = written(compile, terminal=True).splitlines()
    assert lines == ["tcir.onnx: compiling 12 ops", "tcir.onnx: compiled in 0.0 s"]


def test_what_is_left() -> None:
    left = progress.ProgressLine("f", 100.0)
    assert left.left(0.0, 50.0) == 100.0  # nothing is done: the estimate
    assert left.left(0.5, 50.0) == 50.0  # the rate so far
    assert left.left(0.125, 25.0) == 0.875 * (0.5 * 200 + 0.5 * 100)


def test_of_several_launches_all_ctas_are_counted() -> None:
    from tcir.program.execution import run_sequence

    two = """func.func @f(%a: tensor<16xf32>) -> (tensor<16xf32>, tensor<8192xf32>) {
      %b = arith.addf %a, %a : tensor<16xf32>
      %e = tensor.empty() : tensor<8192xf32>
      %z = arith.constant 1.0 : f32
      %c = linalg.fill ins(%z : f32) outs(%e : tensor<8192xf32>) -> tensor<8192xf32>
      return %b, %c : tensor<16xf32>, tensor<8192xf32>
    }"""
    kernel, told = tcir.compile(two, "simt-elementwise"), list[tuple[int, int]]()
    given = [np.ones(16, np.float32)]
    run_sequence(
        kernel.ptx,
        kernel.launches,
        given,
        kernel.signature.outputs,
        progress=lambda *numbers: told.append(numbers),
    )
    assert len(kernel.launches.launches) == 2 and told == sorted(told) and told[-1] == (9, 9)
