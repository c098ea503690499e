"""Wrong inputs to tc-opt: a clear diagnostic at a location, exit code 3, nothing written."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tcir.opt.command import main

from .linalg_text import Conv, Matmul

CONV = Conv(1, 9, 34, 32, 24, 3, 3, (1, 1, 1, 1)).text()
BAD_INPUT = 3


def _named(op: str, x: str, w: str, out: str) -> str:
    return f"""func.func @f(%x: tensor<{x}>, %w: tensor<{w}>) -> tensor<{out}> {{
  %e = tensor.empty() : tensor<{out}>
  %z = arith.constant 0.0 : f32
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<{out}>) -> tensor<{out}>
  %o = linalg.{op} ins(%x, %w : tensor<{x}>, tensor<{w}>) outs(%i : tensor<{out}>) -> tensor<{out}>
  return %o : tensor<{out}>
}}
"""


TMEM_OVER_BUDGET = """func.func @f() attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>,
    tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  %a = "tc.tmem_alloc"() {columns = 256 : i64} : () -> !tc.tmem_base
  %b = "tc.tmem_alloc"() {columns = 32 : i64} : () -> !tc.tmem_base
  %c = "tc.tmem_alloc"() {columns = 32 : i64} : () -> !tc.tmem_base
  %d = "tc.tmem_alloc"() {columns = 256 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%d) {columns = 256 : i64} : (!tc.tmem_base) -> ()
  "tc.tmem_dealloc"(%c) {columns = 32 : i64} : (!tc.tmem_base) -> ()
  "tc.tmem_dealloc"(%b) {columns = 32 : i64} : (!tc.tmem_base) -> ()
  "tc.tmem_dealloc"(%a) {columns = 256 : i64} : (!tc.tmem_base) -> ()
  return
}
"""

DYNAMIC = """func.func @f(%x: tensor<?x9x9x32xf16>, %w: tensor<3x3x32x16xf16>,
    %out: tensor<?x7x7x16xf32>) -> tensor<?x7x7x16xf32> {
  %z = arith.constant 0.0 : f32
  %i = linalg.fill ins(%z : f32) outs(%out : tensor<?x7x7x16xf32>) -> tensor<?x7x7x16xf32>
  %o = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<?x9x9x32xf16>, tensor<3x3x32x16xf16>)
      outs(%i : tensor<?x7x7x16xf32>) -> tensor<?x7x7x16xf32>
  return %o : tensor<?x7x7x16xf32>
}
"""


RAISED_ODD = """
func.func @f(%a: tensor<8x17xf16>, %b: tensor<17x8xf16>) -> tensor<8x8xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<8x17xf16>, tensor<17x8xf16>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}
"""
"""Not repacked by repack-gemm."""


@dataclass(frozen=True)
class Wrong:
    """An input and what the diagnostic must say (regular expressions, all of them)."""

    name: str
    text: str
    flags: tuple[str, ...]
    says: tuple[str, ...]
    at: str = r"input\.mlir:\d+:\d+: error: "
    example: bool = True
    errors: int = 1


REUSE = ("--pipeline=conv-shift-reuse",)
CASES = [
    Wrong("f6E2M3FN", CONV.replace("f16", "f6E2M3FN"), REUSE, ("f16, bf16", "f6E2M3FN")),
    Wrong("f8E8M0FNU", _named("matmul", "8x8xf8E8M0FNU", "8x8xf8E8M0FNU", "8x8xf32"),
          ("--pipeline=gemm",), ("f16, bf16", "got f8E8M0FNU")),
    Wrong("n_tile 20", CONV, ("--pipeline=conv-shift-reuse{n-tile=20}",),
          ("20", "multiple of 16", "tcgen05.mma", "16 or 32"), example=False),
    Wrong("dynamic", DYNAMIC, REUSE, ("static", r"\?")),
    Wrong("one convolution without channels", _named("conv_2d", "9x9xf16", "3x3xf16", "7x7xf32"),
          ("--raise-to-tc",), ("expected the indexing maps of a convolution",)),
    Wrong("tensor memory over budget", TMEM_OVER_BUDGET, ("--verify-tc-kernel",),
          (r"256 \+ 32 \+ 32 \+ 256", "at most 512", "must not be larger"),
          example=False, errors=2),
    Wrong("K = 17", RAISED_ODD, ("--tile-gemm",), ("=17", "multiple of 8")),
    Wrong("accumulating in fp8", _named("conv_2d_nhwc_hwcf", "1x9x9x32xf16", "3x3x32x16xf16",
          "1x7x7x16xf8E4M3FN").replace("0.0 : f32", "0.0 : f8E4M3FN")
          .replace("%z : f32", "%z : f8E4M3FN"), REUSE, ("f32", "f8E4M3FN")),
    Wrong("lanes too far apart", Conv(1, 9, 64, 8, 16, 3, 3, dilations=(1, 9)).text(), REUSE,
          ("at most 8 input columns apart", "got 9", "packed|conv-implicit-gemm")),
    Wrong("padding with one", CONV.replace("arith.constant 0.0 : f16", "arith.constant 1.0 : f16"),
          ("--raise-to-tc",), ("0.0", r"1\.0", "TMA")),
    Wrong("no contraction", "func.func @f() { return }\n", REUSE, ("contraction",)),
    Wrong("empty file", "", REUSE, ("empty",), at=r"input\.mlir: error: "),
    Wrong("a matrix product for a convolution", Matmul(8, 8, 8).text(), REUSE, ("conv",)),
    Wrong("malformed", CONV[:300], REUSE, ("expected",), example=False),
    Wrong("unregistered op", "foo.bar()\n", REUSE, ("foo",), example=False),
    Wrong("too many stages", CONV, ("--pipeline=conv-shift-reuse{stages=40}",),
          ("227 KB", "stages"), example=False),
    Wrong("unknown pipeline", CONV, ("--pipeline=conv-shift-resue",),
          ("conv-shift-resue", "conv-shift-reuse"), at="error: ", example=False),
    Wrong("unknown option", CONV, ("--pipeline=conv-shift-reuse{ntile=16}",),
          ("ntile", "n-tile|n_tile"), at="error: ", example=False),
    Wrong("unknown pass", CONV, ("--pass-pipeline=builtin.module(canonicalise)",),
          ("canonicalise", "canonicalize"), at="error: ", example=False),
    Wrong("unknown flag", CONV, ("--frobnicate",), ("--frobnicate",), at="error: ", example=False),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_wrong_input(
    case: Wrong, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("input.mlir").write_text(case.text)
    status = main(["input.mlir", "-o", "output.ptx", "--emit=ptx", *case.flags])
    said = capfd.readouterr().err
    assert status == BAD_INPUT, said
    assert re.search(case.at, said), said
    for words in case.says:
        assert re.search(words, said), f"{words!r} is not in: {said}"
    assert "Traceback" not in said
    assert said.count("error:") == case.errors, said
    if case.example:
        assert "smallest accepted example" in said
    assert sorted(os.listdir()) == ["input.mlir"], "something was left behind"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["missing.mlir", "--pipeline=matmul"], "cannot read 'missing.mlir'"),
        (["input.mlir", "--pipeline=conv-shift-reuse", "-o", "nowhere/out"], "cannot write"),
        ([".", "--pipeline=matmul"], "cannot read"),
    ],
)
def test_files(
    words: list[str],
    says: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("input.mlir").write_text(CONV)
    assert main(words) == BAD_INPUT
    said = capfd.readouterr().err
    assert says in said
    assert "Traceback" not in said
    assert os.listdir() == ["input.mlir"]


def test_a_failed_run_keeps_the_old_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("input.mlir").write_text(CONV.replace("f16", "f6E2M3FN"))
    Path("out.ptx").write_text("of the run before")
    assert main(["input.mlir", "--pipeline=conv-shift-reuse", "--emit=ptx", "-o", "out.ptx"]) == 3
    capfd.readouterr()
    assert Path("out.ptx").read_text() == "of the run before"


def test_the_smallest_accepted_example_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for pipeline, bad in (("conv-shift-reuse", CONV), ("matmul", Matmul(8, 8, 8).text())):
        Path("input.mlir").write_text(bad.replace("f16", "f6E2M3FN"))
        main(["input.mlir", f"--pipeline={pipeline}"])
        example = capfd.readouterr().err.split("smallest accepted example: ")[1].split("\nnote:")[0]
        Path("example.mlir").write_text(example)
        assert main(["example.mlir", f"--pipeline={pipeline}", "--emit=ptx", "-o", "o.ptx"]) == 0
        capfd.readouterr()
