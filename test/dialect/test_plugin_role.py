"""The recipe of docs/how-to/extending.md for an op that a pass inserts before ``assign-roles``.

`Inputs/mark.py` is copied to a folder of its own; each test starts a process there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

INPUTS = Path(__file__).parent / "Inputs"
MARK = (INPUTS / "mark.py").read_text(encoding="utf-8")
ROLE = ', role="producer"'
SCRIPT = """
import json, sys
import mark, tcir
pipeline = tcir.named_pipeline("gemm").insert("mark-loads", after="place-barriers")
error = ""
try:
    report = CALL
except tcir.PassError as raised:
    error, report = str(raised), raised.report
json.dump({"error": error, "lines": [(each.name, each.verdict) for each in report.passes],
           "verdict": report.verdict, "said": report.error, "code": report.exit_code}, sys.stdout)
"""
VALIDATE = f"tcir.validate({str(INPUTS / 'narrow.mlir')!r}, pipeline)"
COMPILE = f"tcir.compile({str(INPUTS / 'narrow.mlir')!r}, pipeline, cache=False).report"


def ran(folder: Path, role: str, call: str = VALIDATE) -> dict[str, Any]:
    """What the script prints in `folder`, with the plugin's op of `role`."""
    assert ROLE in MARK
    (folder / "mark.py").write_text(MARK.replace(ROLE, role), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("CALL", call)],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_with_its_role_the_op_is_executed_after_every_pass(tmp_path: Path) -> None:
    got = ran(tmp_path, ROLE)
    lines = dict(got["lines"])
    assert (got["error"], got["verdict"], got["code"]) == ("", "held", 0), got
    assert {lines[name] for name in ("mark-loads", "assign-roles", "llvm-to-ptx")} == {"equal"}


@pytest.mark.parametrize("call", [VALIDATE, COMPILE], ids=["validate", "compile"])
def test_without_a_role_the_error_says_where_to_write_it(tmp_path: Path, call: str) -> None:
    got = ran(tmp_path, "", call)
    assert (
        "got demo.mark without the attribute tc.for_role; among the keywords of class mark.MarkOp "
        'write role="producer" or role="mma" or role="epilogue", whose warps then execute it, or '
        "pure=True if every role may have a copy; or insert it after assign-roles" in got["error"]
    )
    names = [name for name, _ in got["lines"]]
    assert "mark-loads" in names and "assign-roles" not in names
    assert (got["verdict"], got["said"], got["code"]) == ("error", got["error"], 3)


def test_a_role_that_the_kernel_has_not(tmp_path: Path) -> None:
    got = ran(tmp_path, ', role="loader"')
    assert (
        "expected role= of class mark.MarkOp to be one of producer, mma, epilogue, got loader"
        in got["error"]
    )
