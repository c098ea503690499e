"""The command line of tc-run: arguments, saved outputs, exit statuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcir.machine import REGISTRY
from tcir.ptxrun.command import main, progress

from .conftest import HEADER
from .test_execution import SAXPY


@pytest.fixture
def saxpy(tmp_path: Path) -> list[str]:
    (tmp_path / "saxpy.ptx").write_text(HEADER + SAXPY)
    np.save(tmp_path / "x.npy", np.arange(64, dtype=np.float32))
    return [str(tmp_path / "saxpy.ptx"), "--grid", "2", "--block", "32",
            "--arg", str(tmp_path / "x.npy"),
            "--arg", "zeros=f32,64", "--arg", "f32=2.5"]  # fmt: skip


def test_a_run_that_is_ok(saxpy: list[str], tmp_path: Path, capsys: Any) -> None:
    out, report = tmp_path / "out.npy", tmp_path / "report.json"
    more = ["--arg", "u32=60", "--save", f"1={out}", "--json", str(report)]
    assert main(saxpy + more) == 0
    want = np.arange(64) * 2.5
    want[60:] = 0
    assert (np.load(out) == want).all()
    assert capsys.readouterr().out.startswith("ok: ")
    assert json.loads(report.read_text())["schema"] == 1


def test_hazards_incomplete_and_bad_input_have_their_own_status(
    saxpy: list[str], tmp_path: Path, capsys: Any
) -> None:
    assert main([*saxpy, "--arg", "u32=64", "--max-instructions", "5"]) == 1
    assert "instruction-budget" in capsys.readouterr().out
    assert main(saxpy) == 3
    assert "expected 4" in capsys.readouterr().err
    assert main([*saxpy, "--arg", "u33=1"]) == 3
    assert main([*saxpy, "--arg", "nothing.npy"]) == 3
    assert main([str(tmp_path / "absent.ptx"), *saxpy[1:]]) == 3
    ptx = tmp_path / "other.ptx"
    ptx.write_text((HEADER + SAXPY).replace("fma.rn.f32 %f4, %f1, %f2, %f3;", "dp9a %f4, %f1;"))
    assert main([str(ptx), *saxpy[1:], "--arg", "u32=64"]) == 2
    assert "dp9a" in capsys.readouterr().out
    ptx.write_text(HEADER + SAXPY + "}")
    assert main([str(ptx), *saxpy[1:], "--arg", "u32=64"]) == 3
    assert f"{ptx}:" in capsys.readouterr().err


def test_conditions_that_are_not_the_default_are_said(
    saxpy: list[str], tmp_path: Path, capsys: Any
) -> None:
    out = tmp_path / "report.json"
    run = [*saxpy, "--arg", "u32=60", "--json", str(out)]
    assert main(run) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("order as issued")
    more = ["--ordering", "isa", "--assume", "alloc_place=any", "--seed", "3",
            "--numerics", "fast", "--max-instructions", "900", "--hazards", "off"]  # fmt: skip
    assert main(run + more) == 0
    assert (
        capsys.readouterr()
        .out.splitlines()[0]
        .endswith(
            "order seed 3, hazards off, numerics fast (not bit-exact), ordering isa, "
            "assumption alloc_place=any, at most 900 instructions"
        )
    )
    report = json.loads(out.read_text())
    assert (report["ordering"], report["assumptions"]) == ("isa", {"alloc_place": "any"})
    assert main([*run, "--assume", "alloc_place=top"]) == 3
    said = capsys.readouterr().err
    assert "assumption alloc_place: expected 'by-residents' or 'lowest' or 'any', got 'top'" in said
    assert main([*run, "--assume", "alloc_spot=any"]) == 3
    assert "no assumption is called 'alloc_spot'" in capsys.readouterr().err
    assert main([*run, "--ordering", "ptx"]) == 3
    assert "argument --ordering: invalid choice: 'ptx' (choose from" in capsys.readouterr().err


CORPUS = Path(__file__).parents[1] / "corpus"


@pytest.mark.parametrize(
    "ordering,status,severity", [("silicon", 0, "warning"), ("isa", 1, "error")]
)
def test_the_profile_decides_the_exit_status(
    ordering: str, status: int, severity: str, capsys: Any
) -> None:
    path = CORPUS / "right/proxy_store_tail_not_awaited.ptx"
    run = [str(path), "--grid", "2", "--block", "32", "--arg", "empty=u32,64"]
    assert main([*run, "--ordering", ordering]) == status
    said = capsys.readouterr().out
    assert f"{severity}: never-awaited" in said and "not promised by PTX ISA" in said


def test_assumptions_are_listed_with_their_alternatives(capsys: Any) -> None:
    assert main(["--list-assumptions"]) == 0
    said = capsys.readouterr().out
    for entry in REGISTRY:
        assert f"{entry.name}: {entry.question}" in said
        assert all(str(alternative) in said for alternative in entry.alternatives)


def test_progress_is_for_terminals(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert progress() is None
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    show = progress()
    assert show is not None
    show(1, 4)
    show(4, 4)
    assert capsys.readouterr().err == "\r1 of 4 CTAs\r\x1b[K"


def test_cuda_is_compiled_and_findings_name_its_lines(tmp_path: Path, capsys: Any) -> None:
    source = (Path(__file__).parents[2] / "examples/reduce.cu").read_text()
    np.save(tmp_path / "ones.npy", np.arange(1000, dtype=np.float32))
    path, out = tmp_path / "reduce.cu", tmp_path / "sum.npy"
    run = [str(path), "--grid", "4", "--block", "256", "--arg", str(tmp_path / "ones.npy"),
           "--arg", "zeros=f32,1", "--arg", "s32=1000", "--save", f"1={out}"]  # fmt: skip
    path.write_text(source)
    assert main(run) == 0, capsys.readouterr()
    assert np.load(out) == 999 * 1000 / 2
    path.write_text(source.replace("  __syncthreads();\n", "\n", 1))
    assert main(run) == 1
    said = capsys.readouterr().out
    assert "(reduce.cu:12)" in said and "(reduce.cu:9)" in said and "shared memory" in said
    path.write_text(source.replace("float part", "flt part"))
    assert main(run) == 3
    assert 'reduce.cu(7): error: identifier "flt"' in capsys.readouterr().err


TICKET = """
.global .align 4 .u32 tickets = 0;
.visible .entry ticket(.param .u64 out)
{
  .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %d<3>;
  ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0;
  mov.u64 %d1, tickets;
  @%p0 bra DONE;
  atom.global.add.u32 %r1, [%d1], 1;
  st.global.u32 [%d0], %r1;
  RESET
DONE: ret;
}
"""


@pytest.mark.parametrize(("reset", "status"), [("atom.global.exch.b32 %r2, [%d1], 0;", 0), ("", 1)])
def test_a_second_launch_on_the_same_memory(
    reset: str, status: int, tmp_path: Path, capsys: Any
) -> None:
    """A ticket that nobody sets back is right once."""
    file = tmp_path / "ticket.ptx"
    file.write_text(HEADER + TICKET.replace("RESET", reset))
    command = [str(file), "--grid", "1", "--block", "32", "--arg", "empty=u32,1"]
    assert main(command) == 0
    capsys.readouterr()
    assert main([*command, "--again"]) == status
    said = capsys.readouterr().out
    assert ("second-launch" in said and "the first one changed tickets" in said) == (status == 1)
