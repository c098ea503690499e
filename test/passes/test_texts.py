"""Texts of a kernel, one for each pass: kept as bytecode, and printed when they are read."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import tcir
from tcir._mlir import ir
from tcir.passmanager.pipeline import Pass, as_pipeline
from tcir.program.source import load_module, mlir_context
from tcir.session.session import Session, Watcher
from tcir.session.texts import MOST_BYTECODE, PRINTED_ELEMENTS, Texts, text_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = [
    ("matmul.mlir", "layers", "sm_90a"),
    ("resnet50_conv2_3x3.mlir", "conv-shift-reuse", "sm_100a"),
    ("nvfp4_gemv_7168x2048x4.mlir", "gemv-simt{reorder=true}", "sm_100a"),
]


class _Printed(Watcher):
    """The text after each pass that changed it, printed at once."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def after_pass(self, index: int, item: Pass, module: ir.Module, changed: bool) -> None:
        if changed:
            self.texts.append(text_of(module))


def _states(kernel: tcir.Kernel) -> dict[str, str | bytes]:
    assert isinstance(kernel.ir, Texts)
    return kernel.ir.states


@pytest.mark.parametrize(("program", "pipeline", "target"), PROGRAMS)
def test_a_text_is_that_of_its_state(program: str, pipeline: str, target: str) -> None:
    printed = _Printed()
    with mlir_context() as context:
        module = load_module(EXAMPLES / program, context)
        printed.texts.append(text_of(module))
        Session(module, as_pipeline(pipeline), target=target, watcher=printed).run_passes()
    kernel = tcir.compile(EXAMPLES / program, pipeline, target=target, cache=False)
    first, *others = _states(kernel).values()
    assert isinstance(first, str) and {type(each) for each in others} == {bytes}
    assert list(kernel.ir.values()) == printed.texts
    copied = pickle.loads(pickle.dumps(kernel)).ir
    assert copied == kernel.ir and list(copied.values()) == printed.texts


@dataclass(frozen=True)
class _OfOthers(Pass):
    """Does nothing."""

    name: ClassVar[str] = "test-of-others"

    def run(self, module: ir.Module) -> None:
        pass


def test_states_of_others_passes_are_texts() -> None:
    passes = [*as_pipeline("gemm"), _OfOthers()]
    kernel = tcir.compile(EXAMPLES / "matmul.mlir", passes, cache=False)
    assert {type(each) for each in _states(kernel).values()} == {str}


def test_large_constants_are_not_kept_for_each_pass() -> None:
    rows = MOST_BYTECODE // 4096 + 1
    number = "".join(f"{n & 255:02X}{n >> 8 & 255:02X}0000" for n in range(rows * 1024))
    shape = f"tensor<{rows}x1024xf32>"
    program = f"""func.func @f(%x: {shape}) -> {shape} {{
      %c = arith.constant dense<"0x{number}"> : {shape}
      %y = arith.addf %x, %c : {shape}
      return %y : {shape}
    }}"""
    assert rows * 1024 > PRINTED_ELEMENTS
    kernel = tcir.compile(program, "simt-elementwise", cache=False)
    kept = sum(map(len, _states(kernel).values()))
    assert kept < MOST_BYTECODE and "_elided_" in kernel.ir["(input)"]
