"""Waits of compiled kernels block at every level below tiles, and are not polled 64 times."""

from __future__ import annotations

from tcir.interp.ptx.layout import lay_out
from tcir.interp.ptx.op import TRY_WAIT
from tcir.interp.ptx.parser import parse
from tcir.interp.ptx.program import decode
from tcir.interp.thread import spell
from tcir.passmanager.pipeline import as_pipeline
from tcir.program.programs import find_programs
from tcir.program.source import load_module, mlir_context

from .linalg_text import Matmul


def waits(ptx: str) -> list[bool]:
    """For each wait whether its loop does nothing else."""
    module = parse(ptx)
    (function,) = (f for f in module.functions.values() if f.entry)
    code = decode(module, function, lay_out(module, function), {}).code
    return [op.idle for op in code if op.kind == TRY_WAIT]


def test_loops_around_waits_do_nothing_else() -> None:
    levels = 0
    with mlir_context() as context:
        module = load_module(Matmul(128, 64, 64).text(), context)
        for item in as_pipeline("gemm"):
            item.apply(module)
            (program,) = find_programs(module)
            if program.level == "thread":
                found = waits(spell(module, program.name).ptx)
                assert found and all(found), item.name
                levels += 1
    assert levels > 5
