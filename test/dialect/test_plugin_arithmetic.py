"""Inputs and bounds of validation know a plugin's op by what its class declares."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TIMES = (Path(__file__).parent / "Inputs" / "times.py").read_text(encoding="utf-8")
DECLARED = ', arithmetic="products"'
SCRIPT = """
import json, sys
import times
from tcir.program.source import load_module, mlir_context
from tcir.validation.settings import Settings
from tcir.validation.validator import begin
TEXT = '''
func.func @f(%a: tensor<16x64xf16>, %b: tensor<8x64xf16>) -> tensor<16x8xf32> {
  %c = "demo.times"(%a, %b) : (tensor<16x64xf16>, tensor<8x64xf16>) -> tensor<16x8xf32>
  return %c : tensor<16x8xf32>
}'''
with mlir_context() as context:
    module = load_module(TEXT, context)
    exact = begin(module)
    random = begin(module, Settings(inputs="random")).main
bound = None if random.bound is None else float(random.bound.errors[0].max())
factors = exact.draws.contraction.inputs if exact.draws.contraction else ()
json.dump({"factors": [each.argument for each in factors], "bound": bound,
           "verdict": exact.input.verdict}, sys.stdout)
"""


def ran(folder: Path, declared: str) -> dict[str, Any]:
    """What the script prints in `folder`, with the plugin's op so declared."""
    assert DECLARED in TIMES
    (folder / "times.py").write_text(TIMES.replace(DECLARED, declared), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_a_declared_product_has_exact_inputs_and_a_bound(tmp_path: Path) -> None:
    got = ran(tmp_path, DECLARED)
    assert got["factors"] == [0, 1] and got["verdict"] == "reference"
    assert got["bound"] is not None and 0 < got["bound"] < 1e-3


def test_results_of_an_op_that_declares_nothing_agree_bit_for_bit(tmp_path: Path) -> None:
    got = ran(tmp_path, "")
    assert got["factors"] == [] and got["bound"] == 0
