"""What a report says when nothing was executed, of fast numerics, and of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import tcir
from tcir._mlir import ir
from tcir.machine import Assumptions
from tcir.opt.command import main
from tcir.validation.report import Line, Report

SMALL = """func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
SMALL_MATMUL = """
func.func @f(%a: tensor<32x64xf16>, %b: tensor<64x16xf16>) -> tensor<32x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32x16xf32>) -> tensor<32x16xf32>
  %r = linalg.matmul ins(%a, %b : tensor<32x64xf16>, tensor<64x16xf16>)
      outs(%z : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %r : tensor<32x16xf32>
}
"""
MATMUL = Path(__file__).parents[2] / "examples" / "matmul.mlir"


@dataclass(frozen=True)
class DropFences(tcir.Pass):
    """Drops every tcgen05.fence::after_thread_sync."""

    name: ClassVar[str] = "test-drop-fences"

    def run(self, module: ir.Module) -> None:
        found = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name == "tc.fence" and op.attributes["kind"].value == "tcgen05.after":
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for op in found:
            op.erase()


def test_a_compilation_that_was_not_executed_does_not_claim_to_hold() -> None:
    report = tcir.compile(MATMUL, "matmul").report
    assert report.summary() == f"not executed: {len(report.passes)} steps"
    assert report.verdict == "not executed" and not report.ok
    assert report.exit_code == 0


def test_steps_are_numbered_once() -> None:
    report = tcir.compile(MATMUL, "matmul").report
    numbers = sorted(step.index for step in (*report.passes, *report.unchanged))
    assert numbers == list(range(1, len(numbers) + 1))
    assert report.passes[-1].name == "llvm-to-ptx"


def test_without_passes_nothing_is_compared(capfd, tmp_path: Path) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(SMALL)
    assert main([str(path), "--validate-each", "-o", str(tmp_path / "out")]) == 0
    assert "held: executed, no pass to compare" in capfd.readouterr().err


def test_fast_numerics_stand_in_every_table(capfd, tmp_path: Path) -> None:
    for numerics, marked in (("fast", True), ("exact", False)):
        report = tcir.validate(SMALL, ["canonicalize"], numerics=numerics)
        assert ("numerics fast (not bit-exact)" in str(report).splitlines()[0]) == marked
        path = tmp_path / "f.mlir"
        path.write_text(SMALL)
        words = ["--validate-each", "--canonicalize", "-o", str(tmp_path / "out")]
        assert main([str(path), *words, f"--numerics={numerics}"]) == 0
        assert ("numerics fast (not bit-exact)" in capfd.readouterr().err) == marked


def test_a_validation_says_which_conditions_are_not_the_default() -> None:
    chosen = Assumptions(alloc_place="any")
    report = tcir.validate(
        SMALL, ["canonicalize"], ordering="isa", assumptions=chosen, max_instructions=9
    )
    words = ", ordering isa, assumption alloc_place=any, at most 9 instructions"
    assert str(report).splitlines()[0].endswith(f"compared{words}")
    said = report.as_dict()
    assert (said["ordering"], said["assumptions"], said["max_instructions"]) == (
        "isa",
        {"alloc_place": "any"},
        9,
    )
    usual = tcir.validate(SMALL, ["canonicalize"])
    assert str(usual).splitlines()[0].endswith("compared")
    assert (usual.ordering, usual.assumptions, usual.max_instructions) == ("silicon", {}, None)


def test_the_profile_decides_what_a_validation_calls_different() -> None:
    def validated(ordering: str) -> Report:
        pipeline = tcir.named_pipeline("gemm")
        passes = [*pipeline.passes[: pipeline.index("assign-roles") + 1], DropFences()]
        return tcir.validate(SMALL_MATMUL, passes, ordering=ordering)

    relying, by_documents = validated("silicon"), validated("isa")
    assert relying.passes[-1].verdict == "equal"
    assert {f["severity"] for f in relying.passes[-1].findings} == {"warning"}
    assert {line.verdict for line in by_documents.passes[1:-1]} == {"equal"}
    assert by_documents.passes[-1].verdict == "different"
    assert "not promised by PTX ISA" in by_documents.passes[-1].findings[0]["text"]


@pytest.mark.parametrize("name", ["ordering", "numerics", "assumptions"])
@pytest.mark.parametrize("function", [tcir.validate, tcir.compile])
def test_a_condition_that_does_not_exist_is_named(function, name: str) -> None:
    with pytest.raises(tcir.InputError, match=rf"{name}: expected .+, got "):
        function(SMALL, ["canonicalize"], **{name: "no"})


def test_an_empty_validated_report_is_incomplete() -> None:
    assert Report(seed=0).verdict == "incomplete"


def test_validation_goes_down_to_ptx() -> None:
    whole = tcir.validate(SMALL_MATMUL, "matmul")
    assert (whole.passes[-1].name, whole.passes[-1].verdict) == ("llvm-to-ptx", "equal")
    assert whole and whole.check() is whole
    pipeline = tcir.named_pipeline("gemm")
    tiles = tcir.Pipeline(pipeline.passes[: pipeline.index("multi-buffer") + 1])
    assert tcir.validate(SMALL_MATMUL, tiles).passes[-1].level == "tile"


def test_what_was_not_executed_or_is_wrong_does_not_pass_its_check() -> None:
    report = tcir.compile(SMALL_MATMUL, "matmul").report
    assert not report
    with pytest.raises(tcir.VerdictError, match="not executed") as caught:
        report.check()
    assert caught.value.exit_code == 2
    wrong = Report(seed=0, passes=[Line(1, "a", verdict="different", compared="why")])
    assert not wrong
    with pytest.raises(tcir.VerdictError, match="different: first at pass 1, a") as caught:
        wrong.check()
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("body, status", [("ret;", 0), ("trap;", 1), ("wmma.none; ret;", 2)])
def test_a_run_report_is_a_bool_and_has_a_check(body: str, status: int) -> None:
    text = f".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k() {{ {body} }}"
    report = tcir.run_ptx(text, grid=1, block=32)
    assert (bool(report), report.exit_code) == (status == 0, status), str(report)
    if report:
        assert report.check() is report
        return
    with pytest.raises(tcir.VerdictError) as caught:
        report.check()
    assert caught.value.exit_code == status
