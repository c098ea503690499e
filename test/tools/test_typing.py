"""Types of the public functions, as mypy reports them for a user's script; options at run time."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import tcir
from tcir.kernel import CallOptions, MachineOptions
from tcir.run_options import RunOptions
from tcir.validation.settings import Settings, ValidateOptions

from .test_extending import steps

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = '''\
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import tcir
from tcir.mlir import ir


@tcir.register_pass
@dataclass(frozen=True)
class CountFunctions(tcir.Pass):
    """Prints the number of functions."""

    name: ClassVar[str] = "count-functions"

    def run(self, module: ir.Module) -> None:
        print(len(module.body.operations))


a = np.ones((40, 48), np.float16)
pipeline: tcir.Pipeline = tcir.named_pipeline("gemm", n_tile=16)
pipeline = pipeline.insert(CountFunctions(), after="raise-to-tc")
kernel = tcir.compile("matmul.mlir", pipeline)
result = kernel.run(a, a, order_seed=3, hazards="report")
first: np.ndarray = result[0] if isinstance(result, tuple) else result
findings = kernel(a, a, first, jobs=2).findings
made = tcir.compile_matmul(a, a, stages=2)
again = made.run(numerics="fast")
held: bool = made.validate(seed=1, orders=2).ok
several = tcir.specialise("matmul.mlir", "gemm", [1, 2])
outputs = several(a, a, first, hazards="off").outputs
'''
WRONG = {
    "kernel.run(a, wrong=3)": 'Unexpected keyword argument "wrong" for "run" of "Kernel"',
    "kernel(a, wrong=3)": 'Unexpected keyword argument "wrong" for "__call__" of "Kernel"',
    'kernel.run(a, hazards="never")': 'Argument "hazards" to "run" of "Kernel" has incompatible',
    "kernel.run(a).shape": 'Item "tuple[',
    "made.run(wrong=3)": 'Unexpected keyword argument "wrong" for "run" of "ArrayKernel"',
    "made.validate(sed=1)": 'Unexpected keyword argument "sed" for "validate" of "ArrayKernel"',
    "several(a, wrong=3)": 'Unexpected keyword argument "wrong" for "__call__" of "Specialised"',
    'tcir.named_pipeline("gemm", stages=object())': 'Argument "stages" to "named_pipeline" has',
    'tcir.compile("matmul.mlir", "gemm", stages=object())': 'Argument "stages" to "compile" has',
    "pipeline.passes = ()": 'Property "passes" defined in "Pipeline" is read-only',
}


def test_a_users_script_under_strict(tmp_path: Path) -> None:
    """Each line of `WRONG` is an error of its own, and nothing else is one."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + "\n".join(WRONG) + "\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent",
         "--python-executable", sys.executable, script.name],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True, text=True,
    )  # fmt: skip
    found = [line for line in done.stdout.splitlines() if ": error: " in line]
    before = SCRIPT.count("\n")
    assert len(found) == len(WRONG), done.stdout + done.stderr
    for number, (line, words) in enumerate(zip(found, WRONG.values(), strict=True), before + 1):
        assert line.startswith(f"script.py:{number}: ") and words in line, line


CHECKERS = {
    "mypy": (sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent",
             "--python-executable", sys.executable),
    "pyright": ("pyright", "--pythonpath", sys.executable),
}  # fmt: skip


@pytest.mark.parametrize("checker", CHECKERS)
def test_the_plugins_of_the_page_have_types(checker: str, tmp_path: Path) -> None:
    """The files of docs/how-to/extending.md."""
    if checker == "pyright" and not shutil.which("pyright"):
        pytest.skip("no pyright is installed")
    for name, text in steps():
        if name:
            with (tmp_path / name).open("a", encoding="utf-8") as file:
                file.write(text)
    source = str(ROOT / "src")
    done = subprocess.run(
        [*CHECKERS[checker], *sorted(path.name for path in tmp_path.iterdir())],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": source, "PYTHONPATH": source},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def kernel() -> tcir.Kernel:
    ones = np.ones((16, 16), np.float16)
    return tcir.compile_matmul(ones, ones)


@pytest.mark.parametrize("method", ["run", "__call__"])
def test_a_wrong_option_is_named_with_those_allowed(kernel: tcir.Kernel, method: str) -> None:
    allowed = ", ".join(CallOptions.__annotations__)
    with pytest.raises(tcir.UnknownNameError) as raised:
        getattr(kernel, method)(wrong=3)
    assert str(raised.value) == f"@matmul: expected one of the options {allowed}, got 'wrong'"
    assert {"hazards", "progress", "order_seed", "jobs"} <= set(CallOptions.__annotations__)


def test_a_wrong_option_of_a_validation(kernel: tcir.Kernel) -> None:
    assert isinstance(kernel, tcir.ArrayKernel)
    with pytest.raises(tcir.UnknownNameError, match=r"one of .*seed, .*, got 'sed'"):
        kernel.validate(sed=1)  # type: ignore[call-arg]


def test_options_are_those_of_what_they_are_handed_to() -> None:
    own = {each.name for each in fields(RunOptions)}
    assert set(MachineOptions.__annotations__) <= own
    settings = {each.name for each in fields(Settings)} - {"events", "skip"}
    assert set(ValidateOptions.__annotations__) == {*settings, "on_line"}
    assert set(ValidateOptions.__annotations__) <= set(inspect.signature(tcir.validate).parameters)
