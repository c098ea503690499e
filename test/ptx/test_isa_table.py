"""The ISA table in docs/reference/ptx-coverage.md: what runs is tested, what does not is
refused."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcir.run import PtxSyntaxError, run_ptx
from tcir.tools.dev.ptx_isa import ABSENT, REFUSED, rows

from .conftest import HEADER

HEAD = HEADER.replace("8.8", "9.1")
HERE = Path(__file__).resolve()
TESTS = [p for p in HERE.parents[1].rglob("*") if p.suffix in (".py", ".ptx", ".txt") and p != HERE]


def kernel(body: str) -> str:
    return f"""{HEAD}.global .texref T0; .global .surfref S0;
.visible .entry k(.param .u64 x)
{{
.reg .pred %p<4>; .reg .b32 %r<32>; .reg .b64 %d<8>; .reg .f32 %f<32>; .reg .f64 %g<2>;
.shared .align 128 .b8 sm[1024];
ld.param.b64 %d0, [x]; mov.u32 %r2, sm;
{body}
ret;
}}
"""


def _fragment(letter: str, first: int, count: int) -> str:
    return "{" + ", ".join(f"%{letter}{first + n}" for n in range(count)) + "}"


REFUSALS: dict[str, str] = {
    "istypep": "istypep.texref %p0, %d0;",
    "sured": "sured.b.add.1d.u32.trap [%d0, {%r5}], %r4;",
    "multimem.ld_reduce": "multimem.ld_reduce.relaxed.sys.global.add.u32 %r4, [%d0];",
    "multimem.st": "multimem.st.relaxed.sys.global.u32 [%d0], %r4;",
    "multimem.red": "multimem.red.relaxed.sys.global.add.u32 [%d0], %r4;",
    "multimem.cp.async.bulk":
        "multimem.cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], %r1;",
    "multimem.cp.reduce.async.bulk":
        "multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], [%r2], %r1;",
    "rcp.approx.ftz.f64": "rcp.approx.ftz.f64 %g0, %g1;",
    "rsqrt.approx.ftz.f64": "rsqrt.approx.ftz.f64 %g0, %g1;",
}  # fmt: skip


def test_every_refusal_is_shown() -> None:
    assert REFUSALS.keys() == REFUSED.keys() == {r.name for r in rows() if r.verdict == "refused"}


def test_what_is_refused_assembles(assemble: Any) -> None:
    """All of them in one program; the refusal names the line of each."""
    text = kernel("\n".join(REFUSALS.values()))
    assemble(text)
    report = run_ptx(text, grid=1, block=32, args=[np.zeros(64, np.uint32)])
    first = text[: text.index(next(iter(REFUSALS.values())))].count("\n") + 1
    found = [(i.line, i.instruction, i.why) for i in report.incomplete]
    assert found == [
        (first + n, line.split()[0], REFUSED[name])
        for n, (name, line) in enumerate(REFUSALS.items())
    ]
    assert not report.ok and not report.instructions


GONE: dict[str, str] = {
    "tcgen05.ld.red": "tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {%r4,%r5}, %r6, [%r7];",
    "shfl": "shfl.idx.b32 %r4, %r5, %r6, %r7;",
    "vote": "vote.any.pred %p0, %p1;",
}  # fmt: skip


def test_every_absence_is_shown() -> None:
    assert GONE.keys() == ABSENT.keys()


@pytest.mark.parametrize("name", GONE)
def test_what_is_absent(name: str, assemble: Any) -> None:
    text = kernel(GONE[name])
    with pytest.raises(AssertionError, match="error"):
        assemble(text)
    report = run_ptx(text, grid=1, block=32, args=[np.zeros(64, np.uint32)])
    assert [i.instruction for i in report.incomplete] == [GONE[name].split()[0].rstrip(";")]


def _pattern(name: str) -> str:
    """How an instruction is spelled in a program: its words, others perhaps between them."""
    words = [re.escape(word) for word in name.split(".")]
    return r"(?<![\w.%])" + r"[\w.:{}]*\.".join(words) + r"(?![\w])"


def untested(names: list[str], texts: list[str]) -> list[str]:
    return [n for n in names if not any(re.search(_pattern(n), text) for text in texts)]


def programs(path: Path) -> str:
    """What a file holds of programs: all of it, or the strings of Python that document nothing."""
    if path.suffix != ".py":
        return path.read_text()
    tree = ast.parse(path.read_text())
    told = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    strings = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in told)
    return "\n".join(n.value for n in strings if isinstance(n.value, str))


def test_what_runs_is_in_a_test() -> None:
    texts = [programs(p) for p in TESTS if {"ptx", "hopper"} & set(p.parts)]
    assert not untested([r.name for r in rows() if r.verdict == "runs"], texts)
    assert untested(["prmt.f5e", "mbarrier.jump"], texts) == ["prmt.f5e", "mbarrier.jump"]


def test_selectors_elsewhere_are_named() -> None:
    report = run_ptx(
        kernel("add.u32 %r4, %r5.b0, %r6;"), grid=1, block=32, args=[np.zeros(64, np.uint32)]
    )
    assert "selector .b0" in str(report.incomplete[0])
    with pytest.raises(PtxSyntaxError, match="declared register"):
        run_ptx(kernel("vadd.u32.u32.u32 %r4, %r99.b0, %r6;"), grid=1, block=32, args=[])
