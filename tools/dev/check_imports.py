"""Checks the imports between the folders ("rooms") of the package against the contracts in
pyproject.toml, and checks types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Runs both checks; returns 0 if both pass."""
    commands = (
        ["-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"],
        ["-m", "mypy", "-p", "tcir"],
    )
    done = [subprocess.run([sys.executable, *words], cwd=ROOT, check=False) for words in commands]
    return int(any(process.returncode for process in done))


if __name__ == "__main__":
    sys.exit(main())
