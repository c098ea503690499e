"""What the plan that the GEMM schedule began as gets wrong, as programs: each is refused, and why.

Beside each stands the program without the mistake, which is not.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir import formats
from tcir._mlir import ir
from tcir.dialect import tc
from tcir.interp import OutputSpec
from tcir.interp.tensor import run as execute
from tcir.opt.command import main
from tcir.passes.analysis.stored_scale import check_stored_scales

from .breaking import Broken, walk

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MISTAKES = EXAMPLES / "mistakes"
BAD_INPUT = 3
VERIFY = "--pass-pipeline=builtin.module(verify-tc-kernel)"

REFUSED = {
    "producer without a wait for empty": (
        MISTAKES / "producer_without_empty_wait.mlir", VERIFY,
        (r"44:7: error: tc\.kernel: 2 slots for 4 loads: this one overwrites a slot that another "
         r"role may still read", r"on which that role arrives .* when the slot is empty"),
    ),
    "one scale for 128 rows": (
        MISTAKES / "scale_per_128_rows.mlir", "--pipeline=gemm",
        (r"16:8: error: expected each row to have its own scale, got one for 128 rows",
         r"multiplies each row of A, and each column of B", r"repeat each scale 128 times"),
    ),
    "division by the scale before it is rounded": (
        MISTAKES / "unrounded_scale.mlir", "--pipeline=gemm",
        (r"33:19: error: expected elements of f4E2M1FN that are divided by their scale",
         r"stored scale, and the unrounded scale differs from it by up to 1 part in 16",
         r"divide by arith.extf of the truncated scale, or use tc.quantise_blocks"),
    ),
    "20 stages": (
        EXAMPLES / "nvfp4_gemm.mlir", "--pipeline=gemm{n-tile=128 stages=20}",
        (r"expected stages of at most 6, got 20: 20 x 36864 = 737280, a CTA has 232448 bytes of "
         r"shared memory, 227 KB, where TMA puts operands", r"take stages=6"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("file", "flag", "says"), REFUSED.values(), ids=REFUSED)
def test_refused(
    file: Path, flag: str, says: tuple[str, ...], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status = main([str(file), flag, "-o", str(tmp_path / "out.mlir")])
    said = capfd.readouterr().err
    assert status == BAD_INPUT, said
    for words in says:
        assert re.search(words, said), f"{words!r} is not in: {said}"


# --- the twins ---------------------------------------------------------------------------------


def _producer(wait: bool) -> str:
    """The kernel of the example; with `wait` its producer waits for the commit of the mma."""
    text = (MISTAKES / "producer_without_empty_wait.mlir").read_text()
    if not wait:
        return text
    expect = '      "tc.mbarrier_expect_tx"(%landed_k)'
    assert text.count(expect) == 1
    return text.replace(
        expect,
        '      %consumed_k = "tc.slot"(%consumed, %slot) : (!bars, index) -> !tc.mbarrier\n'
        "      %before = arith.subi %c1, %phase : index\n"
        f'      "tc.mbarrier_wait"(%consumed_k, %before) : (!tc.mbarrier, index) -> ()\n{expect}',
    )


@pytest.mark.parametrize("wait", [True, False])
def test_the_producer_on_the_machine(wait: bool, orders: int) -> None:
    """Without the wait it laps the mma: the loads are over before the sums begin."""
    check = "builtin.module(verify-tc-kernel)"
    try:
        report = tcir.validate(_producer(wait), check, orders=orders)
    except tcir.PassError as error:
        assert not wait and "2 slots for 4 loads" in str(error)
        report = tcir.validate(_producer(wait), "builtin.module(cse)", orders=orders)
    assert report.ok == wait, str(report)
    if not wait:
        assert re.search("deadlock|race", str(report)), str(report)


def test_six_stages(tmp_path: Path) -> None:
    source, out = EXAMPLES / "nvfp4_gemm.mlir", tmp_path / "out.ptx"
    assert main([str(source), "--pipeline=gemm{stages=6}", "--emit=ptx", "-o", str(out)]) == 0
    assert "tcgen05.mma" in out.read_text()


def _quantiser(stored: bool) -> str:
    """The quantiser of the example; with `stored` it divides by the scale as stored."""
    text = (MISTAKES / "unrounded_scale.mlir").read_text()
    if not stored:
        return text
    for old, new in (
        (
            "ins(%x, %scale : tensor<128x8x16xf32>, tensor<128x8xf32>)",
            "ins(%x, %stored : tensor<128x8x16xf32>, tensor<128x8xf8E4M3FN>)",
        ),
        ("%by: f32", "%narrow: f8E4M3FN"),
        (
            "      %quotient = arith.divf %in, %by : f32",
            "      %by = arith.extf %narrow : f8E4M3FN to f32\n"
            "      %quotient = arith.divf %in, %by : f32",
        ),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def _parsed(text: str) -> Any:
    context = ir.Context()
    tc.load(context)
    with context:
        return ir.Module.parse(text)


@pytest.mark.parametrize("stored", [True, False])
def test_the_quantiser_beside_that_of_the_host(stored: bool) -> None:
    """As stored: the same bytes. Before rounding: other codes, and the check says so."""
    module = _parsed(_quantiser(stored))
    x = np.random.default_rng(3).normal(0, 3, (128, 8, 16)).astype(np.float32)
    specs = [
        OutputSpec((128, 8, 16), np.dtype(ml_dtypes.float4_e2m1fn)),
        OutputSpec((128, 8), np.dtype(ml_dtypes.float8_e4m3fn)),
    ]
    outcome = execute(module, "quantise", [x], specs)
    codes, scales = (np.ascontiguousarray(o).view(np.uint8) for o in outcome.outputs)
    want = formats.quantise(x.reshape(128, 128), "nvfp4", global_scale=1.0)
    assert scales.tobytes() == want.scales.tobytes()
    different = np.count_nonzero(codes.reshape(128, 128) != want.codes)
    (function,) = module.body.operations
    if stored:
        assert different == 0
        check_stored_scales(function)
    else:
        assert different > 100
        with pytest.raises(tcir.PassError, match="divided by their scale as it is stored"):
            check_stored_scales(function)


def _without_rounding(module: Any) -> None:
    """What a folder does that takes extf of truncf for the number itself."""
    (extend,) = walk(module, "arith.extf")
    generic, narrow = extend.operation.parent.operation, extend.operands[0]
    truncate = generic.operands[narrow.arg_number].owner
    generic.operands[narrow.arg_number] = truncate.operands[0]
    narrow.set_type(extend.results[0].type)
    extend.results[0].replace_all_uses_with(narrow)
    extend.operation.erase()


def test_a_pass_that_forgets_the_rounding() -> None:
    """The validator lays the codes to it."""
    (cse,) = tcir.Pipeline(["cse"]).passes
    broken = tcir.Pipeline([Broken(cse, _without_rounding)])
    report = tcir.validate(_quantiser(True), broken, inputs="random", seed=2)
    (_, line) = report.passes
    assert (line.name, line.verdict) == ("cse", "different"), str(report)
