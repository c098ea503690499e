"""From a lowered module to PTX, cubin and SASS, with a report line for each step."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcir.errors import InputError, MissingDependencyError
from tcir.program.launch import LaunchSequence
from tcir.program.signature import find_programs
from tcir.target import DEFAULT_TARGET
from tcir.validation.report import Line, Report

if TYPE_CHECKING:
    from tcir.validation.validator import Validator


@dataclass
class Code:
    """Generated code, as far as was asked for; `launches` says how to start it."""

    launches: LaunchSequence
    llvm: str
    ptx: str = ""
    cubin: bytes = b""
    sass: str = ""


def set_target(module: Any, target: str) -> None:
    """Says in the module what it is compiled for (``tc.target``), where it is not the default."""
    from tcir._mlir import ir

    if target != DEFAULT_TARGET.name:
        with module.context:
            module.operation.attributes["tc.target"] = ir.StringAttr.get(target)


def _check_target(module: Any, target: str) -> None:
    """Refuses to generate code for another target than the kernel was made for."""
    for program in find_programs(module):
        attributes = program.op.operation.attributes
        made_for = (
            attributes["tc.target"].value if "tc.target" in attributes else DEFAULT_TARGET.name
        )
        if made_for != target:
            raise InputError(
                f"expected target {made_for}, for which this kernel was made, got {target}; of "
                "the pipelines matmul-warp makes kernels for sm_80 and sm_90, gemv-simt for sm_90"
            )


def generate(
    module: Any,
    report: Report,
    validator: Validator | None = None,
    *,
    upto: str = "sass",
    on_line: Callable[[Line], None] | None = None,
    before: Callable[[str], None] | None = None,
) -> Code:
    """Generates code for the kernel in `module`, up to "llvm", "ptx", "cubin" or "sass".

    PTX is executed when there is a `validator`. A missing assembler is noted in ``report.code``
    and raised only when the cubin itself was asked for.
    """
    from tcir import codegen

    level = next((p.level for p in find_programs(module) if p.level != "thread"), None)
    if level is not None:
        raise InputError(
            f"expected a program lowered to llvm and nvvm (a pipeline such as conv-shift-reuse "
            f"ends there), got level '{level}'"
        )
    _check_target(module, report.target)
    tell = on_line or (lambda line: None)
    note = before or (lambda name: None)
    note("translate-to-llvm-ir")
    launches = LaunchSequence.from_module(module)
    started = time.perf_counter()
    code = Code(launches, codegen.translate(module))
    if upto == "llvm":
        return code
    note("llvm-to-ptx")
    code.ptx = codegen.emit_ptx(code.llvm, target=report.target)
    line = Line(len(report.passes), "llvm-to-ptx", pass_seconds=time.perf_counter() - started)
    line.ops = sum(1 for text in code.ptx.splitlines() if text.rstrip().endswith(";"))
    if validator is None:
        line.verdict = "-"
    elif report.verdict != "different":
        validator.check_ptx(code.ptx, launches, line)
    report.passes.append(line)
    tell(line)
    report.code = {"ptx_lines": code.ptx.count("\n"), "tmem_columns": tmem_columns(code.ptx)}
    if upto in ("cubin", "sass"):
        note("ptxas")
        _assemble(code, report, upto, tell)
    return code


def _assemble(code: Code, report: Report, upto: str, tell: Callable[[Line], None]) -> None:
    from tcir import codegen

    assert report.code is not None
    started = time.perf_counter()
    try:
        cubin = codegen.assemble(code.ptx, target=report.target)
        line = Line(len(report.passes), "ptxas", pass_seconds=time.perf_counter() - started)
        line.verdict, line.compared = "-", "assembled; SASS is counted, not executed"
        report.passes.append(line)
        tell(line)
        code.cubin = cubin.data
        report.code |= {
            "registers": cubin.registers,
            "spill_bytes": cubin.spill_bytes,
            "shared_bytes": cubin.shared_bytes
            + max(launch.dynamic_smem for launch in code.launches.launches),
        }
        code.sass = codegen.disassemble(code.cubin)
        report.code["sass"] = codegen.sass_counts(code.sass)
    except MissingDependencyError as error:
        report.code.setdefault("missing", []).append(str(error))
        if not code.cubin or upto == "sass":
            raise


def tmem_columns(ptx: str) -> int | None:
    """Columns of tensor memory a kernel allocates; None when PTX keeps them in a register."""
    total = 0
    for operand in re.findall(r"tcgen05\.alloc\S*\s+\[[^\]]*\],\s*([%\w]+)\s*;", ptx):
        value = operand
        if operand.startswith("%"):
            moved = re.findall(rf"mov\.[bu]32\s+{re.escape(operand)},\s*(\d+)\s*;", ptx)
            if len(moved) != 1:
                return None
            value = moved[0]
        total += int(value, 0)
    return total
