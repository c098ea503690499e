"""gemm of e4m3 and e5m2 for sm_90a: sums of 128 products are added in f32; breaks are seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.dialect import tc
from tcir.dialect.attributes import constant_of
from tcir.machine.numerics.types import MmaTypes
from tcir.machine.numerics.wgmma import WgmmaTypes, wgmma_product
from tcir.program.factors import contraction_of
from tcir.program.inputs import make_inputs
from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context
from tcir.session.session import set_target

from .epilogue_cases import CASES as EPILOGUES
from .epilogue_cases import gelu
from .product_text import program
from .test_gemm_wgmma import TARGET, no_wait
from .test_matmul_warp_breaks import Break, number

E4M3, E5M2 = "f8E4M3FN", "f8E5M2"
TYPES = {E4M3: ml_dtypes.float8_e4m3fn, E5M2: ml_dtypes.float8_e5m2}
PTX = {E4M3: "e4m3", E5M2: "e5m2"}

CASES = [
    pytest.param(program(72, 40, 144, E4M3, "mk", "nk"), {}, id="e4m3, a short last step"),
    pytest.param(program(136, 200, 272, E5M2, "mk", "nk", other=E4M3, out="bf16"),
                 {"n_tile": 208}, id="mixed, two products a step, tails"),
    (program(37, 51, 29, E4M3), {}),
    (program(40, 16, 1104, E5M2, "mk", "nk"), {"n_tile": 16, "stages": 8}),
    (program(136, 72, 1040, E4M3, "km", "kn", out="f16"), {}),
    (program(200, 328, 144, E4M3, "mk", "nk", other=E5M2), {}),
    (program(136, 72, 80, E5M2, "mk", "nk", batch=3, out="bf16"), {}),
    (program(136, 72, 80, E4M3, "mk", "nk", batch=2), {"persistent": True, "ctas": 3}),
    (program(520, 264, 208, E4M3, "mk", "nk", out="bf16"), {"persistent": True, "ctas": 3}),
    (program(264, 520, 208, E4M3, "mk", "nk"), {"n_tile": 208, "stages": 2}),
    (program(1, 8, 16, E4M3, "mk", "nk"), {}),
    (program(64, 8, 32, E5M2, "mk", "nk", out="f16"), {}),
    (program(264, 192, 336, E4M3, "mk", "nk", out="f16"), {"cluster": "2x1", "stages": 2}),
    (program(264, 448, 208, E5M2, "mk", "nk"), {"cluster": "1x2", "n_tile": 64}),
    (program(520, 264, 272, E4M3, "mk", "nk", out=E4M3), {"n_tile": 192}),
    (program(512, 512, 512, E4M3, "mk", "nk", out="bf16"), {"n_tile": 256}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options"), CASES)
def test_every_pass_is_executed_and_equal(text: str, options: dict[str, Any]) -> None:
    kernel = tcir.compile(text, "gemm", target=TARGET, validate=True, orders=2, **options)
    kernel.report.check()
    verdicts = {line.verdict for line in kernel.report.passes}
    assert verdicts == {"reference", "equal"}, str(kernel.report)
    assert "wgmma.mma_async" in kernel.ptx


@pytest.mark.parametrize("types", [(E4M3, E4M3), (E4M3, E5M2), (E5M2, E4M3), (E5M2, E5M2)])
def test_floats_are_within_their_bound(types: tuple[str, str]) -> None:
    text = program(136, 72, 1040, types[0], "mk", "nk", other=types[1])
    report = tcir.validate(text, "gemm", target=TARGET, inputs="random", seed=3)
    report.check()
    tiled = report["tile-gemm"].index
    later = {line.verdict for line in report.passes if line.index >= tiled}
    assert later == {"within bound"}, str(report)


def _codes(shape: tuple[int, int], kind: str, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal(shape)
    return values.astype(TYPES[kind]).view(np.uint8)


@pytest.mark.parametrize(("a", "b"), [(E4M3, E4M3), (E5M2, E4M3)])
def test_the_result_is_the_sum_of_partial_sums(a: str, b: str) -> None:
    """From PTX, and by a second way: instructions of 32 products from zero, four in a row."""
    x, y = _codes((64, 320), a, 1), _codes((16, 320), b, 2)
    text = program(64, 16, 320, a, "mk", "nk", other=b)
    kernel = tcir.compile(text, "gemm", target=TARGET)
    out = np.empty((64, 16), np.float32)
    kernel(x.view(TYPES[a]), y.view(TYPES[b]), out)
    product = WgmmaTypes(MmaTypes(PTX[a], PTX[b], "f32"))
    total = np.zeros_like(out)
    for first in range(0, 320, 128):
        partial = None
        for k in range(first, min(first + 128, 320), 32):
            step = x[:, k : k + 32], y[:, k : k + 32]
            partial = wgmma_product(*step, partial, product)
        assert partial is not None
        total += partial.view(np.float32)
    assert out.tobytes() == total.tobytes()
    exact = x.view(TYPES[a]).astype(float) @ y.view(TYPES[b]).astype(float).T
    assert 0 < np.abs(out - exact).max() < 0.1


FUSED = {
    name: replace(case, element=E4M3) for name, case in EPILOGUES.items() if case.element != "i8"
}


@pytest.mark.parametrize("name", FUSED)
def test_epilogues(name: str) -> None:
    report = tcir.validate(FUSED[name].linalg(), "gemm", target=TARGET)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


@pytest.mark.parametrize("inner", ["erf", "tanh"])
def test_gelu_in_the_epilogue(inner: str) -> None:
    case = replace(gelu(inner), element=E4M3, m=40, n=24, k=144)
    tcir.validate(case.linalg(), "gemm", target=TARGET).check()


def _bits(values: np.ndarray) -> np.ndarray:
    """That numbers need, from their highest to their lowest one."""
    fractions, _ = np.frexp(values[np.isfinite(values) & (values != 0)])
    whole = np.abs(fractions * 2.0**53).astype(np.int64)
    return 53 - np.log2(whole & -whole)


def test_drawn_partial_sums_fit_14_bits_and_whole_sums_do_not() -> None:
    with mlir_context() as context:
        module = load_module(program(136, 72, 1024, E4M3, "mk", "nk"), context)
        set_target(module, TARGET)
        signature = signature_of(module)
        contraction = contraction_of(module, signature)
    a, b = make_inputs(signature.inputs[:2], 0, "integers", contraction)
    a, b = a.astype(float), b.astype(float)
    partial = [a[:, k : k + 128] @ b[:, k : k + 128].T for k in range(0, 1024, 128)]
    assert _bits(np.stack(partial)).max() <= 14
    assert (_bits(a @ b.T) > 14).mean() > 0.05


# --- breaks ------------------------------------------------------------------------------------


def _accumulate(add: Any) -> None:
    """The products of a step are added to the sums in the tensor core."""
    before, product = add.operands[0], add.operands[1].owner.opview
    with ir.InsertionPoint(add), add.location:
        made = tc.WgmmaOp(product.a, product.b, before, add.results[0].type)
        add.results[0].replace_all_uses_with(made.d)
    add.erase()
    product.operation.erase()


def _not_reset(product: Any) -> None:
    """A step's products are added to the sums, and these to themselves."""
    op = product.opview
    add = next(iter(op.d.uses)).owner
    with ir.InsertionPoint(product), product.location:
        made = tc.WgmmaOp(op.a, op.b, add.operands[0], op.d.type)
        op.d.replace_all_uses_with(made.d)
    product.erase()


def _drop(add: Any) -> None:
    """The products of a step are the sums."""
    add.results[0].replace_all_uses_with(add.operands[1])
    add.erase()


def _one_step_less(loop: Any) -> None:
    """The last step is left out."""
    steps = constant_of(loop.operands[1])
    assert steps is not None
    with ir.InsertionPoint(loop), loop.location:
        loop.operands[1] = arith.constant(loop.operands[1].type, steps - 1)


BREAKS: dict[str, tuple[str, Break]] = {
    "promotion dropped": ("tile-gemm", Break("tc.add_fragment", _accumulate)),
    "a partial sum not reset": ("tile-gemm", Break("tc.wgmma_product", _not_reset)),
    "sums dropped": ("tile-gemm", Break("tc.add_fragment", _drop)),
    "partial sums read before the wait": ("assign-roles", Break("tc.wgmma_wait", no_wait)),
    "a slot freed before it was read": (
        "assign-roles",
        Break("tc.wgmma_wait", number("pending", 1)),
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_seen_at_its_pass(name: str) -> None:
    after, broken = BREAKS[name]
    pipeline = tcir.named_pipeline("gemm", n_tile=16, stages=2).insert(broken, after=after)
    text = program(136, 32, 1024, E4M3, "mk", "nk")
    report = tcir.compile(text, pipeline, target=TARGET, validate=True).report
    failure = report.first_failure()
    assert failure is not None, str(report)
    assert (failure.name, failure.verdict) == ("break", "different"), str(report)


def test_a_step_less_is_beyond_the_bound_of_floats() -> None:
    broken = Break("scf.for", _one_step_less)
    pipeline = tcir.named_pipeline("gemm", n_tile=16).insert(broken, after="tile-gemm")
    text = program(64, 16, 2048, E4M3, "mk", "nk")
    settings = {"target": TARGET, "validate": True, "inputs": "random"}
    report = tcir.compile(text, pipeline, **settings).report
    failure = report.first_failure()
    assert failure is not None and failure.name == "break", str(report)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_tile": 200}, "n-tile to be one of 8, .*got 200 .*are two products.*take 192 or 208"),
        ({"n_tile": 12}, "n-tile to be one of 8, .*got 12"),
    ],
)
def test_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tcir.Error, match=message):
        tcir.compile(program(64, 160, 256, E4M3, "mk", "nk"), "gemm", target=TARGET, **options)


def test_widths_next_to_those_refused() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (rows, 128)).astype(TYPES[E4M3]) for rows in (64, 256))
    for width in (184, 192, 208):
        text = program(64, 256, 128, E4M3, "mk", "nk")
        kernel = tcir.compile(text, "gemm", target=TARGET, n_tile=width)
        assert (kernel.run(a, b) == a.astype(np.float32) @ b.astype(np.float32).T).all()
