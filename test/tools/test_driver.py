"""tc-opt from outside: exit codes, wrong inputs, files written whole or not at all."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = f"--load-pass-plugin={Path(__file__).parent / 'Inputs' / 'plugin.py'}"
FUNCTION = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"


def tc_opt(*words: str, text: str | None = None, cwd: Path | None = None):
    return subprocess.run(
        [sys.executable, "-m", "tcir.tools.tc_opt", *map(str, words)],
        input=text,
        capture_output=True,
        text=True,
        cwd=cwd or "/",
        timeout=120,
        check=False,
    )


# (words, standard input, exit status, what standard error says)
WRONG = {
    "malformed": ([], "func.func @f( {", 3, "<stdin>:1:14: error: expected non-function type"),
    "unregistered op": ([], '"x.y"() : () -> ()', 3, "unregistered dialect"),
    "invalid op": (
        [],
        'func.func @f(%x: i32) {\n  %y = "arith.addf"(%x, %x) : (i32, i32) -> i32\n  return\n}',
        3,
        "<stdin>:2:8: error: 'arith.addf' op operand #0 must be floating-point-like",
    ),
    "unreadable": (["/no/such/file.mlir"], None, 3, "cannot read '/no/such/file.mlir': No such"),
    "a folder": (["/"], None, 3, "cannot read '/': Is a directory"),
    "no folder for output": (["-o", "/no/such/x"], FUNCTION, 3, "cannot write '/no/such/x': there"),
    "output refused": (["-o", "/proc/tcir.mlir"], FUNCTION, 3, "cannot write '/proc/tcir.mlir'"),
    "output is a folder": (["-o", "/"], FUNCTION, 3, "cannot write '/': it is a directory"),
    "no folder for report": (
        ["--cse", "--validate-each=/no/such/r.json"],
        FUNCTION,
        3,
        "cannot write '/no/such/r.json'",
    ),
    "unknown pass": (["--canonicalise"], FUNCTION, 3, "did you mean '--canonicalize'?"),
    "unknown flag": (["--sed=3"], FUNCTION, 3, "'--sed'; did you mean '--seed'?"),
    "unknown pass in text": (
        ["--pass-pipeline=builtin.module(csee)"],
        FUNCTION,
        3,
        "unknown pass 'csee'",
    ),
    "unclosed pipeline": (["--pass-pipeline=builtin.module(cse"], FUNCTION, 3, "expected closed"),
    "option of upstream": (["--canonicalize={foo=1}"], FUNCTION, 3, "no such option foo"),
    "option of ours": (
        [PLUGIN, "--test-nothing={time=1}"],
        FUNCTION,
        3,
        "'test-nothing' has no option 'time'; its options are: times; did you mean 'times'?",
    ),
    "value of option": (
        [PLUGIN, "--test-nothing={times=x}"],
        FUNCTION,
        3,
        "option 'times' of 'test-nothing': expected int, got 'x'",
    ),
    "unknown pipeline": (
        [PLUGIN, "--pipeline=test-pipelin"],
        FUNCTION,
        3,
        "unknown pipeline 'test-pipelin'; did you mean 'test-pipeline'?",
    ),
    "option of pipeline": (
        [PLUGIN, "--pipeline=test-pipeline{n=1}"],
        FUNCTION,
        3,
        "'test-pipeline' has no option 'n'; its options are: times",
    ),
    "two ways": (["--cse", "--pass-pipeline=cse"], FUNCTION, 3, "expected one way to name passes"),
    "bad seed": (["--seed=x"], FUNCTION, 3, "argument --seed: invalid int value: 'x'"),
    "no orders": (["--cse", "--validate-each", "--orders=0"], FUNCTION, 3, "at least 1 completion"),
    "no ptx yet": (["--emit=ptx"], FUNCTION, 3, "expected a program lowered to llvm and nvvm"),
    "no plugin": (["--load-pass-plugin=/no/such.py"], FUNCTION, 3, "cannot load the plugin"),
    "no program": (["--cse", "--validate-each"], "", 3, "expected one function with a body"),
    "dynamic shape": (
        ["--cse", "--validate-each"],
        "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {\n  return %x : tensor<?xf32>\n}",
        3,
        "<stdin>:1:1: expected static shapes to execute, got tensor<?xf32>",
    ),
    "refused by a pass": (
        [PLUGIN, "--test-refuse"],
        FUNCTION,
        3,
        "<stdin>:1:1: error: expected so",
    ),
    "left invalid": ([PLUGIN, "--test-invalid"], FUNCTION, 3, "error"),
    "no rule": (
        ["--cse", "--validate-each", "--allow-unregistered-dialect"],
        'func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %y = "my.op"(%x) : '
        "(tensor<4xf32>) -> tensor<4xf32>\n  return %y : tensor<4xf32>\n}",
        2,
        "my.op",
    ),
    "a bug": (
        [PLUGIN, "--test-bug"],
        FUNCTION,
        4,
        ": RuntimeError: a bug in a pass (TCIR_TRACEBACK=1 shows more) in 'test-bug'",
    ),
    "a crash": ([PLUGIN, "--test-crash"], FUNCTION, 4, "'test-crash' was ended by SIGSEGV"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input(case: str, tmp_path: Path) -> None:
    words, text, status, says = WRONG[case]
    output = [] if any(word == "-o" for word in words) else ["-o", str(tmp_path / "result")]
    done = tc_opt(*words, *output, text=text or "", cwd=tmp_path)
    assert says in done.stderr
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    if status != 2:  # incomplete is told, and the result is written all the same
        assert list(tmp_path.iterdir()) == []


def test_result_of_a_file_replaces_the_old_one_whole(tmp_path: Path) -> None:
    output = tmp_path / "with space" / "out.mlir"
    output.parent.mkdir()
    output.write_text("old")
    assert tc_opt("--cse", "-o", output, text="func.func @f( {").returncode == 3
    assert output.read_text() == "old"
    assert tc_opt("--cse", "-o", output, text=FUNCTION).returncode == 0
    assert "func.func @f" in output.read_text()
    assert list(output.parent.iterdir()) == [output]
    assert stat.S_IMODE(output.stat().st_mode) & stat.S_IRUSR


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_unwritable_output(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    done = tc_opt("-o", tmp_path / "x", text=FUNCTION)
    assert done.returncode == 3
    assert "permission denied" in done.stderr


def test_full_disk_is_an_error() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    done = tc_opt("-o", "/dev/full", text=FUNCTION)
    assert done.returncode == 3
    assert "cannot write '/dev/full': No space left" in done.stderr


def test_report_is_versioned_and_complete(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    text = FUNCTION.replace("  return", "  %unused = arith.constant 1.0 : f32\n  return")
    words = ["--canonicalize", "--cse", f"--validate-each={report}"]
    done = tc_opt(*words, "-o", tmp_path / "x", text=text)
    assert done.returncode == 0, done.stderr
    data = json.loads(report.read_text())
    assert data["schema"] == "tcir.report/1"
    assert (data["verdict"], data["exit_code"], data["seed"]) == ("held", 0, 0)
    rows = [(line["name"], line["verdict"]) for line in data["passes"]]
    assert rows == [("(input)", "reference"), ("canonicalize", "equal")]
    assert [(each["index"], each["name"]) for each in data["unchanged"]] == [(2, "cse")]


def test_report_of_a_wrong_pass_is_written_too(tmp_path: Path) -> None:
    text = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant 3.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.fill ins(%c : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""
    report = tmp_path / "report.json"
    words = [PLUGIN, "--test-break-constants={factor=3}", f"--validate-each={report}"]
    done = tc_opt(*words, "-o", tmp_path / "x", text=text)
    assert done.returncode == 1, done.stderr
    data = json.loads(report.read_text())
    difference = data["passes"][1]["difference"]
    assert (difference["index"], difference["expected"], difference["got"]) == ([0], "3.0", "9.0")


SPLAT = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant 3.0 : f32
  %s = tensor.splat %c : tensor<4xf32>
  return %s : tensor<4xf32>
}"""


def test_the_report_of_a_crash_names_the_pass(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    flag = f"--validate-each={report}"
    crash = "'test-crash' was ended by SIGSEGV in native code"

    done = tc_opt(PLUGIN, "--test-nothing", "--test-crash", flag, "-o", tmp_path / "x", text=SPLAT)
    data = json.loads(report.read_text())
    assert (data["verdict"], data["exit_code"], data["error"]) == ("different", 1, crash)
    assert done.returncode == 1
    assert [line["verdict"] for line in data["passes"]] == ["reference", "equal", "different"]

    words = [PLUGIN, "--test-break-constants={factor=3}", "--test-crash", flag]
    done = tc_opt(*words, "-o", tmp_path / "x", text=SPLAT)
    data = json.loads(report.read_text())
    assert (data["verdict"], data["exit_code"], data["error"]) == ("different", 1, crash)
    assert done.returncode == 1


def test_a_crash_behind_a_wrong_pass_is_the_verdict_of_that_pass(tmp_path: Path) -> None:
    words = [PLUGIN, "--test-break-constants={factor=3}", "--test-crash", "--validate-each"]
    done = tc_opt(*words, "-o", tmp_path / "x", text=SPLAT)
    assert done.returncode == 1, done.stderr
    assert "'test-crash' was ended by SIGSEGV" in done.stderr
    assert "different: first at pass 1, test-break-constants" in done.stderr
    clean = [PLUGIN, "--test-nothing", "--test-crash", "--validate-each"]
    done = tc_opt(*clean, "-o", tmp_path / "x", text=SPLAT)
    assert done.returncode == 1 and "different: first at pass 2, test-crash" in done.stderr
    done = tc_opt(*clean[:-1], "-o", tmp_path / "x", text=SPLAT)
    assert done.returncode == 4  # nothing is validated


def test_start_up_and_help_load_no_compiler() -> None:
    code = (
        "import sys\n"
        "from tcir.opt.command import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch_mlir', 'llvmlite', 'numba', 'tcir.passes', 'tcir.machine'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "exit status" in done.stdout
