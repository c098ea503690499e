"""SASS of GEMM kernels: at most that of the other compilers in the table of
docs/explanation/gemm.md."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tcir

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gemm_sass", ROOT / "bench/gemm_sass.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


SASS = """
\t.section\t.text.f,"ax",@progbits
.L_x_0:
        /*0000*/                   MOV R1, R2 ;                  /* 0x0000 */
                                                                 /* 0x0001 */
.L_x_1:
        /*0010*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R3+URZ], R8 ;
        /*0020*/              @!P0 BRA `(.L_x_2) ;
.L_x_3:
        /*0030*/                   UTCHMMA gdesc[UR6], gdesc[UR8], tmem[UR20], UP1 ;
        /*0040*/              @!UP0 BRA `(.L_x_1) ;
        /*0050*/                   EXIT ;
.L_x_2:
        /*0060*/                   YIELD ;
        /*0070*/                   BRA `(.L_x_3) ;
.L_x_4:
        /*0080*/                   BRA `(.L_x_4);
        /*0090*/                   NOP;
\t.section\t.nv.shared.f,"aw",@nobits
"""


def test_the_loop_is_the_shortest_around_the_mma(bench: ModuleType) -> None:
    code, labels = bench.instructions(SASS)
    assert bench.inner_loop(code, labels) == range(1, 5)
    assert bench.whole(code) == 8


@pytest.mark.parametrize("problem", ["f16", "nvfp4"])
def test_at_most_the_best_of_the_others(bench: ModuleType, problem: str) -> None:
    title, program = bench.PROBLEMS[problem]
    _, _, after = (ROOT / "docs/explanation/gemm.md").read_text().partition(f"\n{title}:\n\n")
    _, _, _, *others = after.split("\n\n")[0].splitlines()  # heads, a rule, ours
    cells = [[re.findall(r"[\d.]+", cell)[0] for cell in row.split("|")[2:-1]] for row in others]
    assert len(cells) == len(bench.PEERS[problem])
    ours = bench.row("tcir", tcir.compile(program, "gemm", n_tile=128).ptx, None)
    got = (round(ours.per_mma, 1), ours.whole, ours.registers, ours.spilled)
    least = [min(map(float, column)) for column in zip(*cells, strict=True)]
    assert all(mine <= other for mine, other in zip(got, least, strict=True)), (got, least)
