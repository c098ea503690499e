"""What a report says when nothing was executed, of fast numerics, and of its steps."""

from __future__ import annotations

from pathlib import Path

import tcir
from tcir.opt.command import main
from tcir.validation.report import Report

SMALL = """func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
MATMUL = Path(__file__).parents[2] / "examples" / "matmul.mlir"


def test_a_compilation_that_was_not_executed_does_not_claim_to_hold() -> None:
    report = tcir.compile(MATMUL, "matmul").report
    assert report.summary() == f"not executed: {len(report.passes)} steps"
    assert report.verdict == "not executed" and not report.ok
    assert report.exit_code == 0


def test_steps_are_numbered_once() -> None:
    report = tcir.compile(MATMUL, "matmul").report
    assert [line.index for line in report.passes] == list(range(1, len(report.passes) + 1))
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


def test_an_empty_validated_report_is_incomplete() -> None:
    assert Report(seed=0).verdict == "incomplete"
