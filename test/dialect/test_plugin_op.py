"""An op that one file outside the package adds: a dialect, a rule, execution, lowering, example.

Nothing but `Inputs/narrow.py` names it. Each test starts a process of its own, since ops are known
to all of a process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

INPUTS = Path(__file__).parent / "Inputs"
PLUGIN = f"--load-pass-plugin={INPUTS / 'narrow.py'}"
PRODUCT = str(INPUTS / "narrow.mlir")
TILED = ("--raise-to-tc", "--tile-gemm", "--use-fx-narrow")


def run(*words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], input=text, capture_output=True, text=True, cwd=INPUTS
    )


def tc_opt(*words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return run("-m", "tcir.tools.tc_opt", PLUGIN, *words, text=text)


def test_every_step_of_the_pipeline_executes_to_the_same_bits(tmp_path: Path) -> None:
    report, ptx = tmp_path / "report.json", tmp_path / "product.ptx"
    done = tc_opt(
        PRODUCT, "--pipeline=matmul-fx", f"--validate-each={report}", "--emit=ptx", f"-o={ptx}"
    )
    assert done.returncode == 0, done.stderr
    steps = json.loads(report.read_text())["passes"]
    names = [step["name"] for step in steps]
    at = names.index("use-fx-narrow")
    assert names[at - 1 : at + 2] == ["tile-gemm", "use-fx-narrow", "multi-buffer"]
    assert [step["verdict"] for step in steps[1:]] == ["equal"] * (len(steps) - 1)
    assert "cvt.rn.f16x2.f32" in ptx.read_text()


def test_printed_as_mlir_it_reads_back() -> None:
    printed = tc_opt(PRODUCT, *TILED).stdout
    assert '"fx.narrow"(' in printed
    assert tc_opt("-", text=printed).stdout == printed


def test_its_dialect_is_listed() -> None:
    listed = tc_opt("-show-dialects").stdout
    assert "fx" in listed.replace(",", " ").split() and "scf" in listed


def test_pretty_form() -> None:
    pretty = tc_opt(PRODUCT, *TILED, "--emit=pretty").stdout
    assert "= fx.narrow %" in pretty and '"fx.' not in pretty and '"tc.' not in pretty


NARROW = """func.func @f(%v: vector<32x16xFROM>) {
  %out = "fx.narrow"(%v) : (vector<32x16xFROM>) -> vector<32xCOLUMNSxTO>
  return
}
"""


@pytest.mark.parametrize(
    ("source", "columns", "target", "says"),
    [
        ("f32", "16", "f16", None),
        ("f16", "16", "f32", "fx.narrow: the result must have shorter elements than f16, got f32"),
        ("f32", "8", "f16", "fx.narrow: the result must have the shape of value, [32, 16], got"),
    ],
)
def test_verifier(source: str, columns: str, target: str, says: str | None) -> None:
    text = NARROW.replace("FROM", source).replace("COLUMNS", columns).replace("TO", target)
    done = tc_opt("-", text=text)
    if says is None:
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.returncode == 3 and f"2:10: error: {says}" in done.stderr


def test_from_python() -> None:
    script = f"""
import narrow, tcir
from tcir.passmanager.pipeline import named_pipeline
pipeline = named_pipeline("matmul").insert(narrow.UseNarrow(), after="tile-gemm")
kernel = tcir.compile({PRODUCT!r}, pipeline, validate=True)
print(kernel.report["use-fx-narrow"].verdict)
"""
    done = run("-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "equal\n"


def test_page_of_the_ops() -> None:
    page = run("-m", "tcir.tools.dev.ops_page", PLUGIN).stdout
    entry = page[page.index("### `fx.narrow`") :].partition("\n### ")[0].partition("\n## ")[0]
    assert "## Conversions of register tiles\n" in page
    assert "PTX ISA: 9.7.9.22" in entry
    for fact in (
        "- Defined in: `narrow.py`",
        "- Executed by: `narrow.py` (tile level)",
        "- Lowered by: `narrow.py`",
        '  %out = "fx.narrow"(%v) : (vector<32x16xf32>) -> vector<32x16xf16>',
        "`fx.narrow: the result must have the shape of value, {want}, got {got}`",
        "    - `32x16xf16` → `32x8xf16`: want = `[32, 16]`, got = `[32, 8]`\n",
    ):
        assert fact in entry


def test_without_the_plugin_the_op_is_unknown() -> None:
    done = run("-m", "tcir.tools.tc_opt", "-", text=NARROW.replace("FROM", "f32"))
    assert done.returncode == 3
