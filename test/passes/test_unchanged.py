"""Passes that change nothing have no line: they are found by what they left, and it is the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.passmanager.pipeline import Pass, as_pipeline
from tcir.program.source import digest_of, load_module, mlir_context
from tcir.session import session as sessions
from tcir.session.session import Session, Watcher
from tcir.validation import executed
from tcir.validation.report import Report

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = [
    ("matmul.mlir", "gemm", "sm_100a"),
    ("matmul.mlir", "layers", "sm_90a"),
    ("matmul.mlir", "matmul-warp", "sm_100a"),
    ("matmul.mlir", "simt-elementwise", "sm_100a"),
    ("resnet50_conv2_3x3.mlir", "conv-shift-reuse", "sm_100a"),
    ("resnet50_conv2_3x3.mlir", "conv", "sm_90a"),
    ("nvfp4_linear.mlir", "gemm", "sm_100a"),
    ("nvfp4_gemv_7168x2048x4.mlir", "gemv-simt{reorder=true}", "sm_100a"),
    ("attention_projections.mlir", "gemm", "sm_100a"),
]
SMALL = """func.func @f(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %o = tensor.empty() : tensor<8x16xf32>
  %y = linalg.exp ins(%x : tensor<8x16xf32>) outs(%o : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}"""
NOTHING = "fold-empty"


@tcir.register_pass
@dataclass(frozen=True)
class DoesNothing(Pass):
    """Does nothing."""

    name: ClassVar[str] = "test-does-nothing"

    def run(self, module: ir.Module) -> None:
        pass


@tcir.register_pass
@dataclass(frozen=True)
class AddsWhatIsUnused(Pass):
    """Adds a constant that nothing uses to each function."""

    name: ClassVar[str] = "test-adds-what-is-unused"

    def run(self, module: ir.Module) -> None:
        for function in module.body.operations:
            with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
                arith.ConstantOp(ir.IndexType.get(), 0, loc=function.location)


class _Complete(Watcher):
    """The complete text after each pass, and whether the pass is said to have changed it."""

    def __init__(self) -> None:
        self.text, self.wrong = "", list[str]()

    def after_pass(self, index: int, item: Pass, module: ir.Module, changed: bool) -> None:
        before, self.text = self.text, _complete(module)
        if not changed and self.text != before:
            self.wrong.append(item.name)


def _complete(module: ir.Module) -> str:
    return str(module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True))


def _watched(program: str, pipeline: str, target: str) -> tuple[_Complete, Report]:
    watcher = _Complete()
    with mlir_context() as context:
        module = load_module(EXAMPLES / program, context)
        session = Session(module, as_pipeline(pipeline), target=target, watcher=watcher)
        watcher.text = _complete(module)
        session.run_passes()
    return watcher, session.report


@pytest.mark.parametrize(("program", "pipeline", "target"), PROGRAMS)
def test_what_is_left_out_changed_nothing(program: str, pipeline: str, target: str) -> None:
    watcher, report = _watched(program, pipeline, target)
    assert not watcher.wrong
    assert report.unchanged
    ran = sorted(step.index for step in (*report.passes, *report.unchanged))
    assert ran == list(range(1, len(as_pipeline(pipeline)) + 1))  # each once


def test_the_text_notices_a_digest_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "digest_of", lambda bytecode: b"always")
    assert "tile-gemm" in _watched(*PROGRAMS[0])[0].wrong


@pytest.mark.parametrize(
    ("program", "pipeline"), [(p, n) for p, n, t in PROGRAMS if t == "sm_100a"]
)
def test_no_state_is_there_twice(program: str, pipeline: str) -> None:
    texts = list(tcir.compile(EXAMPLES / program, pipeline, cache=False).ir.values())
    assert len(set(texts)) == len(texts)


def test_a_state_has_one_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a pass changed the program and whether it was executed before are asked of the same
    one; of the input each asks by itself."""
    count = 0

    def counted(bytecode: bytes) -> bytes:
        nonlocal count
        count += 1
        return digest_of(bytecode)

    for room in (sessions, executed):
        monkeypatch.setattr(room, "digest_of", counted)
    assert tcir.validate(SMALL, "simt-elementwise").verdict == "held"
    assert count == len(as_pipeline("simt-elementwise")) + 2


def test_a_pass_that_changed_nothing_can_be_asked_for() -> None:
    kernel = tcir.compile(SMALL, "simt-elementwise", validate=True)
    assert kernel.ir[NOTHING] == kernel.ir["(input)"] and NOTHING not in list(kernel.ir)
    assert kernel.ir["reconcile-unrealized-casts"] == list(kernel.ir.values())[-1]
    assert kernel.report["reconcile-unrealized-casts"] is kernel.report.passes[-2]  # then PTX
    told = [line for line in str(kernel.report).splitlines() if NOTHING in line]
    assert told == [
        f"{len(kernel.report.unchanged)} passes changed nothing: "
        + ", ".join(step.name for step in kernel.report.unchanged)
    ]
    with pytest.raises(KeyError):
        kernel.ir["no-pass"]
    with pytest.raises(KeyError):
        kernel.report["no-pass"]


def test_the_cache_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCIR_CACHE_DIR", str(tmp_path))
    made, kept = (tcir.compile(SMALL, "simt-elementwise") for _ in range(2))
    assert kept.report.notes != made.report.notes  # it says that it is from the cache
    assert kept.ir == made.ir and kept.ir[NOTHING] == kept.ir["(input)"]
    assert kept.report.unchanged == made.report.unchanged


def test_a_pass_from_outside_always_has_a_line() -> None:
    program = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    report = tcir.validate(program, "builtin.module(test-does-nothing,cse,cse)")
    assert [line.name for line in report.passes] == ["(input)", "test-does-nothing", "cse"]
    assert [step.name for step in report.unchanged] == ["cse"]
    assert report["test-does-nothing"].compared.endswith("unchanged since (input)")


def test_a_name_is_the_first_pass_that_has_it() -> None:
    passes = f"{NOTHING},canonicalize,test-adds-what-is-unused,canonicalize"
    report = tcir.validate(SMALL, f"builtin.module({passes})")
    assert [step.name for step in report.steps][1:] == passes.split(",")
    assert [step.name for step in report.unchanged] == [NOTHING, "canonicalize"]
    assert report["canonicalize"] is report.passes[0]
