"""Programs that crash MLIR's own code: an error in the process that asked, which lives on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

import tcir
from tcir._mlir import ir
from tcir.codegen.worker import WORKER
from tcir.passes.module.fuse_epilogue import FuseEpilogue
from tcir.program.source import load_module, mlir_context

EXTRACT = """llvm.func @g(%a: !llvm.struct<(i32, i32)>) -> i32 {
  %0 = llvm.extractvalue %a[POSITION] : !llvm.struct<(i32, i32)>
  llvm.return %0 : i32
}
"""
BEYOND = 1 << 40
"""Its low 32 bits are 0, a field of the struct: the verifier reads the type of field 2^40."""
PRODUCT = """func.func @f(%a: tensor<32x64xf16>, %b: tensor<64x16xf16>, %c: tensor<32x16xf32>)
    -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<32x64xf16>, tensor<64x16xf16>)
      outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}
"""
READS_BEYOND = "linalg-block-pack-matmul{block-factors=16,16,16 mnk-order=7,8,9}"
"""There are loops 0, 1 and 2."""


def extract(position: int) -> str:
    return EXTRACT.replace("POSITION", str(position))


@dataclass(frozen=True)
class AddsFunction(tcir.Pass):
    """A pass from outside that leaves an ``llvm.extractvalue`` of `position`, not verified."""

    name: ClassVar[str] = "adds-function"
    position: int

    def run(self, module: ir.Module) -> None:
        with ir.InsertionPoint(module.body):
            read = ir.Module.parse(extract(1))
            function = read.body.operations[0].operation.clone()
        op = function.regions[0].blocks[0].operations[0]
        op.operation.attributes["position"] = ir.DenseI64ArrayAttr.get([self.position])


def crash_of(call: Callable[[], Any], error: type[tcir.Error] = tcir.NativeCrashError) -> str:
    """The message of a crash, and the saved program removed."""
    with pytest.raises(error, match="the native library died") as caught:
        call()
    found = re.search(r"the program that caused it is in (\S+\.mlir)", str(caught.value))
    assert found is not None
    assert "llvm.extractvalue" in (text := Path(found[1]).read_text()) or "linalg.matmul" in text
    Path(found[1]).unlink()
    return str(caught.value)


@pytest.mark.parametrize("entry", [tcir.compile, tcir.validate])
def test_text_that_crashes_the_verifier_is_an_error(entry: Callable[..., Any]) -> None:
    message = crash_of(lambda: entry(extract(BEYOND), "gemm"))
    assert message.startswith("reading <text>: the native library died (SIGSEGV)")


def test_a_file_is_named_and_a_module_read_again(tmp_path: Path) -> None:
    (tmp_path / "bad.mlir").write_text(extract(BEYOND))
    with mlir_context() as context:
        message = crash_of(lambda: load_module(tmp_path / "bad.mlir", context))
        assert message.startswith(f"reading {tmp_path}/bad.mlir: ")
        module = ir.Module.parse(extract(1))
        AddsFunction(BEYOND).run(module)
        crash_of(lambda: load_module(module, context))


def test_what_the_verifier_accepts_or_refuses_is_read_in_place() -> None:
    with mlir_context() as context:
        assert "extractvalue" in str(load_module(extract(1), context))
        child = WORKER._process
        with pytest.raises(tcir.InputError, match=r"^<text>:3:\d+: error: .*out of bounds: 2"):
            load_module(extract(2), context)
    assert WORKER._process is child


def test_too_deep_a_nest_is_an_error() -> None:
    """The parser is recursive."""
    deep = 200_000
    text = f"#map = affine_map<(d0) -> ({'(' * deep}d0{')' * deep})>\nmodule {{}}"
    with mlir_context() as context, pytest.raises(tcir.NativeCrashError, match="SIGSEGV") as told:
        load_module(text, context)
    saved = re.search(r"is in (\S+\.mlir) \(MLIR crashes on that text", str(told.value))
    assert saved is not None
    Path(saved[1]).unlink()


def test_a_pass_from_outside_that_crashes_the_verifier_is_named() -> None:
    message = crash_of(lambda: tcir.compile(PRODUCT, [AddsFunction(BEYOND)]), tcir.PassError)
    assert message.startswith("pass 'adds-function' left invalid IR: its verification: the native")
    with pytest.raises(tcir.PassError, match=r"(?s)adds-function.*out of bounds: 2"):
        tcir.compile(PRODUCT, [AddsFunction(2)])


@pytest.mark.parametrize("before", [[], [AddsFunction(1)], [AddsFunction(1), FuseEpilogue()]])
def test_an_upstream_pass_that_crashes_on_ir_from_outside_is_named(before: list[tcir.Pass]) -> None:
    message = crash_of(lambda: tcir.compile(PRODUCT, [*before, READS_BEYOND]))
    assert message.startswith("pass 'linalg-block-pack-matmul': the native library died")
    with pytest.raises(tcir.InputError, match="expected a program lowered"):
        tcir.compile(PRODUCT, [*before, READS_BEYOND.replace("7,8,9", "0,1,2")])


def test_a_lowering_of_ours_asks_the_child_only_to_read_and_to_generate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    call = WORKER.call

    def listed(function: str, *words: Any, **options: Any) -> Any:
        asked.append(function)
        return call(function, *words, **options)

    monkeypatch.setattr(WORKER, "call", listed)
    assert tcir.compile(PRODUCT, "gemm").ptx
    assert asked == ["rehearse", "translate", "emit_ptx"]
