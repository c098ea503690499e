"""``python -m tcir.triton`` as a user calls it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
missing = [name for name in ("triton", "torch") if importlib.util.find_spec(name) is None]
needs_triton = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def run(*given: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Ended, with what it wrote."""
    return subprocess.run(
        [sys.executable, "-m", "tcir.triton", *map(str, given)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=cwd,
        env={**os.environ, "TRITON_DEFAULT_FP_FUSION": "1"},
    )
