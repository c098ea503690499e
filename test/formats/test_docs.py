"""docs/reference/formats.md gives what it says and names all that is public; the example runs."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

from tcir import formats

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "formats.md"


def test_page() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 6 and result.failed == 0
    words = set(re.findall(r"\w+", PAGE.read_text(encoding="utf-8")))
    # Element: a row of ELEMENTS. ROUNDINGS: the table of `rounding`.
    assert set(formats.__all__) - words == {"Element", "ROUNDINGS"}


def test_example() -> None:
    """The printed errors are those of these formats: e2m1 near 10 %, e2m3 and e4m3 near 3 %."""
    script = ROOT / "examples" / "nvfp4_quantise.py"
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    errors = {n: float(e) for n, e in re.findall(r"(\w+) +weights: .*error ([\d.]+)", done.stdout)}
    assert set(errors) == set(formats.FORMATS)
    assert 0.08 < errors["nvfp4"] < errors["mxfp4"] < 0.13
    assert 0.02 < errors["mxfp8_e4m3"] < 0.04
    both = re.search(r"weights and vector in NVFP4: relative error ([\d.]+)", done.stdout)
    assert both and 0.05 < float(both[1]) < 0.2


def test_imports_nothing_else() -> None:
    code = (
        "import sys, tcir.formats; "
        "bad = {m.split('.')[0] for m in sys.modules} & {'numba', 'llvmlite', 'torch_mlir'}; "
        "bad |= {m for m in sys.modules if m.startswith(('tcir.machine', 'tcir._mlir'))}; "
        "sys.exit(str(bad) if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
