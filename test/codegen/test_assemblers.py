"""PTX to cubin: by ptxas and by nvJitLink, what each refuses, and what is said when one dies."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import tcir
from tcir import codegen
from tcir.codegen import cubin
from tcir.codegen.worker import WORKER
from tcir.errors import Error, MissingDependencyError, NativeCrashError, UnknownNameError
from tcir.mlir import ir
from tcir.passmanager.pipeline import Pass, as_pipeline

KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
.maxntid 384
{
	.reg .b64 %a;
	.reg .b32 %t;
	ld.param.u64 %a, [out];
	mov.u32 %t, %tid.x;
	st.global.b32 [%a], %t;
	ret;
}
"""
MAXNREG = KERNEL.replace("\tmov", "\tsetmaxnreg.dec.sync.aligned.u32 24;\n\tmov").replace(
    ".maxntid 384", ".maxntid 384\n.maxnreg 168"
)

MATMUL = """func.func @mm(%a: tensor<128x64xf16>, %b: tensor<64x32xf16>) -> tensor<128x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x32xf32>) -> tensor<128x32xf32>
  %r = linalg.matmul ins(%a, %b : tensor<128x64xf16>, tensor<64x32xf16>)
    outs(%f : tensor<128x32xf32>) -> tensor<128x32xf32>
  return %r : tensor<128x32xf32>
}"""


@pytest.mark.parametrize("assembler", cubin.ASSEMBLERS)
def test_both_make_a_cubin_of_the_same_registers(assembler: str) -> None:
    made = codegen.assemble(KERNEL, assembler=assembler)
    assert made.data[:4] == b"\x7fELF" and made.registers == 8
    assert "STG" in codegen.disassemble(made.data)


@pytest.mark.parametrize("assembler", cubin.ASSEMBLERS)
def test_both_say_what_they_refuse(assembler: str) -> None:
    with pytest.raises(Error, match=r"rejected the kernel: .*Unknown modifier '.bogus'"):
        codegen.assemble(KERNEL.replace("st.global", "st.global.bogus"), assembler=assembler)


def test_a_directive_that_nvjitlink_ignores_is_an_error() -> None:
    assert "USETMAXREG" in codegen.disassemble(codegen.assemble(MAXNREG).data)
    with pytest.raises(Error, match=r"nvJitLink dropped .*setmaxnreg.*; assembler=ptxas may"):
        codegen.assemble(MAXNREG, assembler="nvjitlink")


def test_an_unknown_one_is_refused_before_anything_is_compiled() -> None:
    with pytest.raises(UnknownNameError, match="expected one of ptxas, nvjitlink, got 'nvjit'"):
        tcir.compile("no such program", "gemm", assembler="nvjit")


def test_without_the_library_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKER, "call", lambda *_, **__: (b"", "", "no libnvJitLink.so"))
    with pytest.raises(MissingDependencyError, match=r"no libnvJitLink.so\); `pip install tcir"):
        codegen.assemble(KERNEL, assembler="nvjitlink")


def test_a_kernel_keeps_its_assembler() -> None:
    kernel = tcir.compile(MATMUL, "gemm", assembler="nvjitlink")
    other = tcir.compile(MATMUL, "gemm")
    assert (kernel.assembler, other.assembler) == ("nvjitlink", "ptxas")
    assert kernel.ptx == other.ptx and kernel.cubin[:4] == b"\x7fELF"


def test_a_death_of_ptxas_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dies = tmp_path / "ptxas"
    dies.write_text('#!/bin/sh\n[ "$1" = --version ] && echo V13.0.88 || kill -SEGV $$\n')
    dies.chmod(dies.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(cubin, "find_tool", lambda name: dies)
    with pytest.raises(NativeCrashError, match=r"ptxas 13.0.88: .* died \(SIGSEGV\)") as caught:
        codegen.assemble(KERNEL)
    way_out = r"is in (\S+\.ptx) \(.*report it .*another version .*nvjitlink"
    kept = re.search(way_out, str(caught.value))
    assert kept is not None and Path(kept[1]).read_text() == KERNEL
    Path(kept[1]).unlink()


def test_a_death_in_the_worker_is_no_refusal() -> None:
    with pytest.raises(NativeCrashError, match=r"died \(SIGABRT\): LLVM ERROR: Invalid") as caught:
        codegen.emit_ptx(
            'define ptx_kernel void @f() { call void asm "mov.u32 $7, 1;", ""() ret void }'
        )
    found = re.search(r"is in (\S+\.ll) \(tc-opt --validate-each names", str(caught.value))
    assert found is not None
    Path(found[1]).unlink()


@dataclass(frozen=True)
class BadAsm(Pass):
    """Leaves inline assembly with an operand that it does not have."""

    name: ClassVar[str] = "bad-asm"

    def run(self, module: ir.Module) -> None:
        def spoil(op: ir.Operation) -> ir.WalkResult:
            if op.name == "llvm.inline_asm":
                op.attributes["asm_string"] = ir.StringAttr.get("mov.u32 $19, $18;")
            return ir.WalkResult.ADVANCE

        module.operation.walk(spoil)


def test_such_a_pass_is_different_and_the_report_is_kept() -> None:
    """LLVM aborts on what it left, when PTX is made after the verdict."""
    passes = [*as_pipeline("gemm"), BadAsm()]
    kernel = tcir.compile(MATMUL, passes, target="sm_90a", validate=True)
    failure = kernel.report.first_failure()
    assert kernel.report.verdict == "different" and failure is not None
    assert failure.name == "bad-asm" and "bad-inline-asm" in failure.compared
    assert "native library died" in str(kernel.report.error) and kernel.ptx == ""
    with pytest.raises(tcir.VerdictError, match=r"different: first at pass .*bad-asm"):
        _ = kernel.cubin
    for saved in re.findall(r"is in (\S+\.ll)", str(kernel.report.error)):
        os.unlink(saved)


def test_a_death_of_llvm_alone_is_the_verdict_of_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when every pass was executed, and the code generator dies all the same."""

    def dies(*_: object, **__: object) -> str:
        raise NativeCrashError("emit_ptx: the native library died (SIGSEGV)")

    monkeypatch.setattr("tcir.codegen.ptx.emit_ptx", dies)
    kernel = tcir.compile(MATMUL, "gemm", validate=True)
    failure = kernel.report.first_failure()
    assert failure is not None and failure.name == "llvm-to-ptx"
    assert failure.compared.startswith("native code died: emit_ptx")
    with pytest.raises(NativeCrashError):
        tcir.compile(MATMUL, "gemm", cache=False)
