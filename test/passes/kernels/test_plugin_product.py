"""A product, a store and a core from outside the package: a file, with its lines of what combines.

`Inputs/summed_batch.py` has the op, the steps of its main loop, a pass, and a store with an op that
has a role; scheduler, other stores, cores and epilogue are those of every product.
`Inputs/warp_core.py` has a core, which multiplies what that product and the package's load. They
are executed in a process of their own.
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
import summed_batch, warp_core, tcir
SUMMED = '''
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
DENSE = SUMMED.replace('"demo.summed_batch"(%a, %b)', '''"tc.matmul"(%a, %b)
    {a_layout = "mk", b_layout = "nk"}''').replace("<2x", "<")
PIPELINES = {"summed": (SUMMED, summed_batch.pipeline), "summed by warps":
             (SUMMED, warp_core.pipeline), "dense by warps": (DENSE, warp_core.pipeline)}


def ran(target, options, name="summed"):
    text, pipeline = PIPELINES[name]
    try:
        kernel = tcir.compile(text, pipeline(**options), target=target, validate=True)
    except tcir.Error as error:
        return str(error)
    lines = kernel.report.passes
    verdicts, findings = {line.verdict for line in lines}, sum(len(line.findings) for line in lines)
    counts = [kernel.ptx.count(each) for each in ("pmevent", "mma.sync", "wgmma", "stmatrix")]
    return [kernel.report.verdict, sorted(verdicts), findings, *map(bool, counts)]


json.dump([ran(*case) for case in json.loads(sys.argv[1])], sys.stdout)
"""


HELD = ["held", ["equal", "reference"], 0]
"""Verdict, verdicts of all lines, findings."""
EXCLUDED = [
    ("sm_100a", {"cluster": "2x1"}, "expected cluster=1x1 with a summed batch, got 2x1: a CTA "
     "loads whole tiles; leave it out"),
    ("sm_90a", {"cta_group": 2}, "expected cta-group=1 for sm_90a, got 2: only tcgen05 has pairs"),
    ("sm_100a", {"store_stages": 2}, "expected store-stages=0 with store=direct, got 2"),
    ("sm_100a", {"turned": True, "store": "tma"}, "expected store=direct with turned=true, got "
     "tma: threads store from the right; leave it out"),
]  # fmt: skip


def ran(*cases: tuple[object, ...]) -> list[Any]:
    """What validation says of a plugin's program, by target, options and name, or the error; and
    whether it has `pmevent`, `mma.sync`, `wgmma` and `stmatrix`."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(cases)],
        capture_output=True,
        text=True,
        cwd=INPUTS,
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def test_a_product_and_a_store_from_outside() -> None:
    held, turned, *errors = ran(
        ("sm_100a", {}), ("sm_100a", {"turned": True}), *(case[:2] for case in EXCLUDED)
    )
    assert held == [*HELD, False, False, False, False]
    assert turned == [*HELD, True, False, False, False]  # the op with the role of the epilogue
    for (_, _, message), error in zip(EXCLUDED, errors, strict=True):
        assert message in error


def test_it_has_the_schedulers_and_stores_of_other_products() -> None:
    clc = {"persistent": True, "scheduler": "clc", "store": "tma", "n_tile": 16}
    static = {"persistent": True, "ctas": 1, "epilogue_warps": 8}
    *tcgen05, wgmma = ran(("sm_100a", clc), ("sm_100a", static), ("sm_90a", {"store": "tma"}))
    assert tcgen05 == [[*HELD, False, False, False, False]] * 2
    assert wgmma == [*HELD, False, False, True, True]


def test_a_core_from_outside() -> None:
    """It multiplies tiles of the package's product; a CTA has several, by the package's loop."""
    persistent = {"n_tile": 16, "persistent": True, "ctas": 1}
    held, tma, clc = ran(
        ("sm_90", persistent, "dense by warps"),
        ("sm_90a", {"store": "tma"}, "dense by warps"),
        ("sm_100a", {"scheduler": "clc", "persistent": True}, "dense by warps"),
    )
    assert held == [*HELD, False, True, False, False]
    assert "expected store=direct with four warps, got tma: sums are in registers" in tma
    assert "expected scheduler=static with four warps, got clc: no warp has a role" in clc


def test_cores_multiply_each_others_products() -> None:
    """The plugin's product by the plugin's core, and by wgmma."""
    warps, wgmma = ran(("sm_100a", {}, "summed by warps"), ("sm_90a", {}))
    assert warps == [*HELD, False, True, False, False] and wgmma == [
        *HELD,
        False,
        False,
        True,
        False,
    ]


def test_a_name_that_is_taken() -> None:
    with pytest.raises(tcir.InputError, match="expected a new product name, got 'dense'"):
        legal.register(legal.DENSE, "with others")
    with pytest.raises(tcir.InputError, match="expected a new core name, got 'wgmma'"):
        legal.register(legal.WGMMA, "for others", fact="core")
