"""`tcir.target` alone names architectures."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tcir.target import DEFAULT_TARGET, TARGETS, targets_with

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"""^"?sm_\d+[af]?"?$|\.target sm_""")


def literals(path: Path) -> Iterator[str]:
    """Strings of a file that are a target's name, or PTX for one; docstrings do not count."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if "sm_" in text else ():
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and NAME.search(value):
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {value!r}"


def test_only_tables_name_a_target() -> None:
    tables = ("target.py", "rates.py", "device.py")
    folders = ("src/tcir", "dialect", "passes", "pipelines", "tools")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    found = [each for path in files for each in literals(path) if path.name not in tables]
    assert found == []


def test_what_targets_have() -> None:
    assert targets_with() == list(TARGETS)
    assert targets_with("tcgen05") == [DEFAULT_TARGET.name]
    assert targets_with("fp8", "tma") == ["sm_90", "sm_90a", "sm_100a"]
    assert all(name == target.name for name, target in TARGETS.items())
    assert all(target.smem_reserved == 1024 for target in TARGETS.values())


def test_a_plugin_adds_a_target_that_the_command_knows(tmp_path: Path) -> None:
    plugin = tmp_path / "ampere.py"
    plugin.write_text(
        "from dataclasses import replace\n"
        "from tcir.target import TARGETS\n"
        'TARGETS["sm_86"] = replace(TARGETS["sm_80"], name="sm_86")\n'
    )
    command = [sys.executable, "-m", "tcir.tools.tc_opt", str(ROOT / "examples/matmul.mlir"),
               "--pipeline=matmul-warp", "--target=sm_86", "--emit=ptx"]  # fmt: skip
    done = subprocess.run(
        [*command, f"--load-pass-plugin={plugin}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert ".target sm_86\n" in done.stdout
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 3
    assert "expected one of the targets sm_80, sm_90, sm_90a, sm_100a, got 'sm_86'" in done.stderr
