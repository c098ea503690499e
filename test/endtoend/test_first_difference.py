"""A failed validation shows the first wrong element at both levels, and who wrote it."""

from __future__ import annotations

import math
import re

import pytest

import tcir
from tcir.program.source import load_module, mlir_context
from tcir.validation.report import Line
from tcir.validation.settings import Settings
from tcir.validation.validator import begin

from .linalg_text import Matmul

PROGRAM = Matmul(128, 32, 64)


def test_the_store_of_this_level_and_of_the_level_before() -> None:
    kernel = tcir.compile(PROGRAM.text(), "matmul")
    with mlir_context() as context:
        validation = begin(load_module(PROGRAM.text(), context), Settings(seed=7))
        assert validation.input.verdict == "reference"
        tile = Line(0, "assign-roles")
        validation.check(load_module(kernel.ir["assign-roles"], context), tile)
        assert tile.verdict == "equal", str(tile)
    stores = [*re.finditer(r"st\.global[^;]*;", kernel.ptx)]
    second = stores[1]
    # Another register into the first word of the second store of a thread.
    broken = re.sub(r"\{%(\w+?)(\d+),", lambda m: f"{{%{m[1]}{int(m[2]) - 1},", second[0], count=1)
    assert broken != second[0]
    ptx = kernel.ptx[: second.start()] + broken + kernel.ptx[second.end() :]
    line = Line(0, "llvm-to-ptx")
    validation.check_ptx(ptx, kernel.launches, line)
    assert line.verdict == "different" and line.difference is not None, str(line)
    number = kernel.ptx[: second.start()].count("\n") + 1
    site, row = line.difference.site, line.difference.index[0]
    assert f"written at line {number}: st.global" in site and f"by warp {row // 32} of CTA" in site
    assert f"before the pass {line.difference.expected}, CTA" in site and f"lane {row % 32}" in site
    assert site in str(line)


def test_what_nobody_wrote_is_said() -> None:
    kernel = tcir.compile(PROGRAM.text(), "matmul")
    with mlir_context() as context:
        validation = begin(load_module(PROGRAM.text(), context), Settings(seed=7))
    line = Line(0, "llvm-to-ptx")
    ptx = re.sub(r"st\.global[^;]*;", "", kernel.ptx)
    validation.check_ptx(ptx, kernel.launches, line)
    assert line.verdict == "different" and line.difference is not None
    assert line.difference.site == "nothing wrote it"


@pytest.mark.parametrize("used", [False, True])
def test_what_a_launch_leaves_reaches_the_next_one(used: bool) -> None:
    """A count that nobody sets back is no difference, until something depends on it."""
    kernel = tcir.compile(PROGRAM.text(), "matmul")
    launch = kernel.launch_config
    threads = math.prod((*launch.grid, *launch.block))
    count = ".reg .pred %q; .reg .b32 %c; atom.global.add.u32 %c, [arrived], 1;"
    leave = f" setp.ge.u32 %q, %c, {threads}; @%q ret;" if used else ""
    ptx = re.sub(r"(?m)^\{$", lambda m: f"{{\n{count}{leave}", kernel.ptx, count=1)
    ptx = ptx.replace(".visible .entry", ".global .align 4 .u32 arrived = 0;\n.visible .entry", 1)
    with mlir_context() as context:
        validation = begin(load_module(PROGRAM.text(), context), Settings(seed=7))
    line = validation.check_ptx(ptx, kernel.launches, Line(0, "llvm-to-ptx"))[0]
    assert line.held != used, str(line)
    assert ("the second time on the same memory" in line.compared) == used
