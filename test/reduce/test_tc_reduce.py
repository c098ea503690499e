"""tc-reduce from the shell: failures of broken passes, of PTX, and its own mistakes."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import Ended, Setting, run

from tcir.passmanager.pipeline import named_pipeline

from .broken import BROKEN

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "tc-reduce.md"

PLUGIN = """\
from dataclasses import dataclass
from typing import ClassVar
import tcir

@tcir.register_pass
@dataclass(frozen=True)
class NoTanh(tcir.Pass):
    '''Cannot do tanh.'''
    name: ClassVar[str] = "no-tanh"
    def run(self, module):
        if "math.tanh" in str(module):
            {}["math.tanh"]
"""
RACE = """\
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .shared .align 4 .b32 tile[64];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, tile;
  add.u32 %r4, %r3, %r2;
  st.shared.u32 [%r4], %r1;   // a bar.sync is missing behind it
  xor.b32 %r5, %r2, 128;
  add.u32 %r6, %r3, %r5;
  ld.shared.u32 %r7, [%r6];
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r7;
  ret;
}
"""


def tc_reduce(place: Path, *words: str, seconds: float = 2700) -> Ended:
    return run(["tc-reduce", *words], place, Setting(seconds=seconds))


def sizes(text: str) -> dict[str, tuple[int, int]]:
    """What is counted, before and after."""
    rows = re.findall(r"^  (\w+) +(\d+) -> (\d+)$", text, re.M)
    return {name: (int(before), int(now)) for name, before, now in rows}


def test_a_pass_that_raises(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(PLUGIN)
    (tmp_path / "m.mlir").write_text(BROKEN["a crash"].program)
    words = ["m.mlir", "--pass-pipeline=builtin.module(fold-empty,cse,no-tanh,raise-to-tc)"]
    ended = tc_reduce(tmp_path, *words, "--load-pass-plugin=p.py")
    assert ended.status == 0, ended.err
    assert "KeyError: 'math.tanh'" in ended.out and "at no-tanh" in ended.out
    found = sizes(ended.out)
    assert found["passes"] == (4, 1) and found["ops"][1] < found["ops"][0] == 13
    left = (tmp_path / "m.reduced.mlir").read_text()
    assert "math.tanh" in left and "arith.addf" not in left and "192" not in left
    again = re.search(r"^again: (.*)$", ended.out, re.M)
    assert again is not None
    same = run(again[1].split(), tmp_path, Setting())
    assert same.status == 4 and "KeyError: 'math.tanh'" in same.err


def test_ptx_with_a_race(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(RACE)
    np.save(tmp_path / "out.npy", np.zeros(64, np.uint32))
    words = ["k.ptx", "--grid=1", "--block=64", "--arg=out.npy"]
    ended = tc_reduce(tmp_path, "-o", "small.ptx", *words)
    assert ended.status == 0, ended.err
    assert ended.out.startswith("race at the run"), ended.out
    assert sizes(ended.out)["statements"][0] == 17
    left = (tmp_path / "small.ptx").read_text()
    assert "st.shared" in left and "st.global" not in left
    same = run(["tc-run", "small.ptx", *words[1:]], tmp_path, Setting())
    assert same.status == 1 and "race" in same.out


def test_a_script_says_what_is_of_interest(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(BROKEN["a crash"].program)
    script = tmp_path / "t.py"
    script.write_text("import sys\nsys.exit('linalg.matmul' in open(sys.argv[1]).read())\n")
    ended = tc_reduce(tmp_path, f"--test={sys.executable} t.py", "m.mlir")
    assert ended.status == 0, ended.err
    assert sizes(ended.out) == {"ops": (13, 2), "elements": (98560, 3)}, ended.out
    left = (tmp_path / "m.reduced.mlir").read_text()
    assert "linalg.matmul ins(%arg0, %arg1 : tensor<1x1xf16>, tensor<1x1xf16>)" in left


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["m.mlir"], "expected a program that fails, got one that passes everything"),
        (["k.ptx"], "expected a program that fails when it runs, got"),
        (["m.txt"], "expected a file NAME.mlir or NAME.ptx, got 'm.txt'"),
        (["missing.mlir"], "missing.mlir"),
        (["bad.mlir"], "bad.mlir: expected one module that verifies; try tc-opt bad.mlir"),
        (["m.mlir", "--pipeline=gemx"], "unknown pipeline 'gemx'; did you mean 'gemm'?"),
        (["--test=true", "m.mlir", "--cse"], "expected no flags after the file"),
        (["-o", "no/where.mlir", "m.mlir"], "cannot write 'no/where.mlir'"),
        ([], "required: FILE"),
    ],
)
def test_mistakes(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "m.mlir").write_text(BROKEN["a crash"].program)
    (tmp_path / "bad.mlir").write_text("func.func @f( {")
    (tmp_path / "k.ptx").write_text(RACE)
    before = sorted(tmp_path.iterdir())
    ended = tc_reduce(tmp_path, *words)
    assert ended.status == 3 and said in ended.err, ended.err
    assert "Traceback" not in ended.err and sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it(number: signal.Signals, status: int, tmp_path: Path) -> None:
    """It reaches the attempt, too, which is not the last one then."""
    (tmp_path / "m.mlir").write_text(BROKEN["a constant of log"].program)
    (tmp_path / "p.py").write_text(BROKEN["a constant of log"].plugin)
    words = ["tc-reduce", "m.mlir", "--pipeline=gemm", "--load-pass-plugin=p.py"]
    ended = run(words, tmp_path, Setting(send=(number, 1.5), seconds=90))
    assert (ended.status, ended.hung, ended.orphans) == (status, False, 0), ended


def rows() -> dict[str, list[str]]:
    """The table of the page, by what is broken."""
    cells = [line.strip("| \n").split(" | ") for line in PAGE.read_text().splitlines()]
    return {each[0]: each[1:] for each in cells if each[0] in BROKEN}


def test_the_page_has_every_failure() -> None:
    assert set(rows()) == set(BROKEN)
    for name, (_, _, passes, _) in rows().items():
        pipeline = named_pipeline(BROKEN[name].flags[0].removeprefix("--pipeline="))
        assert passes.split(" → ")[0] == str(len(pipeline)), name


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("name", BROKEN)
def test_broken_passes(name: str, tmp_path: Path) -> None:
    """Each is reduced to what docs/reference/tc-reduce.md says; that fails, and without the plugin
    holds."""
    broken = BROKEN[name]
    (tmp_path / "m.mlir").write_text(broken.program)
    (tmp_path / "p.py").write_text(broken.plugin)
    ended = tc_reduce(tmp_path, "m.mlir", *broken.flags, "--load-pass-plugin=p.py")
    assert ended.status == 0, ended.err
    assert broken.failure in ended.out
    found = [f"{before} → {now}" for before, now in sizes(ended.out).values()]
    assert rows()[name][:3] == found
    again = re.search(r"^again: (.*)$", ended.out, re.M)
    assert again is not None
    words = again[1].split()
    assert run(words, tmp_path, Setting()).status != 0
    sound = [word for word in words if not word.startswith("--load-pass-plugin")]
    assert run(sound, tmp_path, Setting()).status == 0  # it is the broken pass that fails
