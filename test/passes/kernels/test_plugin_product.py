"""A product and a store from outside the package: one file, with its lines of what combines.

`Inputs/summed_batch.py` has the op, the steps of its main loop, a pass, and a store with an op that
has a role; scheduler, other stores and epilogue are those of every product. It is executed in a
process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tcir
from tcir.passes.kernels import legal

INPUTS = Path(__file__).parent / "Inputs"
SCRIPT = """
import json, sys
import summed_batch, tcir
TEXT = '''
func.func @f(%a: tensor<2x130x72xf16>, %b: tensor<2x24x72xf16>) -> tensor<130x24xf16> {
  %c = "demo.summed_batch"(%a, %b)
      : (tensor<2x130x72xf16>, tensor<2x24x72xf16>) -> tensor<130x24xf32>
  %e = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %z = arith.constant 0.0 : f32
    %m = arith.maximumf %s, %z : f32
    %t = arith.truncf %m : f32 to f16
    "tc.yield"(%t) : (f16) -> ()
  }) : (tensor<130x24xf32>) -> tensor<130x24xf16>
  return %e : tensor<130x24xf16>
}'''


def ran(target, options):
    try:
        pipeline = summed_batch.pipeline(**options)
        kernel = tcir.compile(TEXT, pipeline, target=target, validate=True)
    except tcir.Error as error:
        return str(error)
    lines = kernel.report.passes
    verdicts, findings = {line.verdict for line in lines}, sum(len(line.findings) for line in lines)
    return [kernel.report.verdict, sorted(verdicts), findings, kernel.ptx.count("pmevent")]


json.dump([ran(*case) for case in json.loads(sys.argv[1])], sys.stdout)
"""


HELD = ["held", ["equal", "reference"], 0]
"""Verdict, verdicts of all lines, findings."""
EXCLUDED = [
    ("sm_100a", {"cluster": "2x1"}, "expected cluster=1x1 with a summed batch, got 2x1: a CTA "
     "loads whole tiles; leave it out"),
    ("sm_90a", {}, "expected tcgen05 with a summed batch, got wgmma: its sums are in tensor "
     "memory; take target sm_100a"),
    ("sm_100a", {"store_stages": 2}, "expected store-stages=0 with store=direct, got 2"),
    ("sm_100a", {"turned": True, "store": "tma"}, "expected store=direct with turned=true, got "
     "tma: threads store from the right; leave it out"),
]  # fmt: skip


def ran(*cases: tuple[str, dict[str, object]]) -> list[Any]:
    """What validation says of a program of the plugin's op, by target and options, or the error."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(cases)],
        capture_output=True, text=True, cwd=INPUTS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def test_a_product_and_a_store_from_outside() -> None:
    held, turned, *errors = ran(
        ("sm_100a", {}), ("sm_100a", {"turned": True}), *(case[:2] for case in EXCLUDED)
    )
    assert held == [*HELD, 0]
    assert turned == [*HELD, 1]  # the op with the role of the epilogue
    for (_, _, message), error in zip(EXCLUDED, errors, strict=True):
        assert message in error


@pytest.mark.slow
def test_it_has_the_schedulers_and_stores_of_other_products() -> None:
    clc = {"persistent": True, "scheduler": "clc", "store": "tma", "n_tile": 16}
    static = {"persistent": True, "ctas": 1, "epilogue_warps": 8}
    assert ran(("sm_100a", clc), ("sm_100a", static)) == [[*HELD, 0]] * 2


def test_a_name_that_is_taken() -> None:
    with pytest.raises(tcir.InputError, match="expected a new name of a product, got 'dense'"):
        legal.register(legal.DENSE, "with others")
