"""Checks who imports whom (the contracts in pyproject.toml), and types.

The folders dialect/, passes/, pipelines/ and tools/ are parts of the package tcir that live beside
it. Tools that walk folders need them inside: this makes a tree of links in build/tree and runs
import-linter and mypy over that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("dialect", "passes", "pipelines", "tools")


def link_tree() -> Path:
    """build/tree/tcir with every file of the package in its place; returns build/tree."""
    tree = ROOT / "build" / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    package = tree / "tcir"
    package.mkdir(parents=True)
    for entry in (ROOT / "tcir").iterdir():
        if entry.name != "__pycache__":
            (package / entry.name).symlink_to(entry)
    for folder in FOLDERS:
        (package / folder).symlink_to(ROOT / folder)
    return tree


def main() -> int:
    """Runs both checks; 0 when both hold."""
    tree = link_tree()
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    config = str(ROOT / "pyproject.toml")
    linter = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    commands = [
        [*linter, "--config", config, "--no-cache"],
        [sys.executable, "-m", "mypy", "--config-file", config, "-p", "tcir"],
    ]
    failed = 0
    for command in commands:
        failed += subprocess.run(command, env=environment, cwd=tree, check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
