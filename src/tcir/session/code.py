"""Generated code: its assembly with ptxas or nvJitLink, and its instruction counts."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from tcir.errors import MissingDependencyError
from tcir.program.launch import LaunchSequence
from tcir.validation.report import Line, Report


@dataclass
class Code:
    """Generated code, up to the form that was requested; `launches` describes how to launch its
    kernels.
    """

    launches: LaunchSequence
    llvm: str
    ptx: str = ""
    cubin: bytes = b""
    sass: str = ""


def assemble(code: Code, report: Report, *, required: str, sass: bool, assembler: str) -> Line:
    """Assembles PTX to a cubin and, with `sass`, disassembles it; puts statistics into
    ``report.code``.

    required: "cubin" or "sass": raises `MissingDependencyError` only if the tool for this form is
        missing
    """
    from tcir import codegen

    assert report.code is not None
    started = time.perf_counter()
    line = Line(report.next_index, assembler)
    line.verdict, line.compared = "-", "assembled; SASS is counted, not executed"
    try:
        cubin = codegen.assemble(code.ptx, report.target, assembler)
        line.pass_seconds = time.perf_counter() - started
        code.cubin = cubin.data
        dynamic = max((each.dynamic_smem for each in code.launches.launches), default=0)
        report.code |= {
            "registers": cubin.registers,
            "spill_bytes": cubin.spill_bytes,
            "shared_bytes": cubin.shared_bytes + dynamic,
        }
        if sass:
            code.sass = codegen.disassemble(code.cubin)
            report.code["sass"] = codegen.sass_counts(code.sass)
    except MissingDependencyError as error:
        report.code.setdefault("missing", []).append(str(error))
        if not code.cubin or required == "sass":
            raise
    return line


def tmem_columns(ptx: str) -> int | None:
    """Number of columns of tensor memory that a kernel allocates; None if the number is in a
    register whose value is not a constant.
    """
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
