"""Several layers in a function as PyTorch's importer writes them (`layers/*.mlir`): each product a
launch, with the casts, transposes and reshapes in front of it and the epilogue behind it folded."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import tcir

from .breaking import Broken, set_attribute
from .test_layers import Array, convolution, text, whole

BF16, F16 = ml_dtypes.bfloat16, np.float16
MLP = [(40, 32), (48, 32), (48,), (24, 48), (24,)]
CHAIN = [(2, 8, 9, 9), (16, 8, 3, 3), (16,), (24, 16, 3, 3), (24,)]
HEADS = [(2, 3, 20, 16), (2, 3, 24, 16), (2, 3, 24, 16)]
LAUNCHES = {
    "mlp_casts": ["0_matmul", "1_matmul"],
    "mlp_3d_relu": ["0_batch_matmul", "1_batch_matmul"],
    "linear_residual": ["0_matmul", "1_batch_matmul"],
    "sdpa_f16": ["0_batch_matmul", "1_maximumf", "2_addf", "3_truncf", "4_batch_matmul"],
    "sdpa_bf16": ["0_batch_matmul", "1_maximumf", "2_addf", "3_truncf", "4_batch_matmul"],
}
"""Names behind that of the function: nothing is repacked, and no cast is stored."""


def pipeline(name: str) -> str:
    return "conv" if name == "convs_nchw" else "gemm"


def run(name: str, inputs: list[Array], shape: tuple[int, ...], dtype: Any) -> Array:
    out = np.full(shape, 7, dtype)
    report = tcir.compile(text(name), pipeline(name))(*inputs, out)
    assert not report.findings
    return out.astype(float)


def given(shapes: list[tuple[int, ...]], dtype: Any = F16) -> list[Array]:
    return [whole(shape, seed, dtype) for seed, shape in enumerate(shapes)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "verdicts"),
    [
        ("mlp_casts", {"equal"}),
        ("mlp_3d_relu", {"equal"}),
        ("convs_nchw", {"equal"}),
        ("sdpa_f16", {"equal", "within bound"}),
        ("sdpa_bf16", {"equal", "within bound"}),
        ("attention_heads", {"equal", "within bound"}),
        ("linear_residual", {"equal"}),
        ("attention_masked", {"equal", "within bound"}),
    ],
)
def test_every_level(name: str, verdicts: set[str]) -> None:
    report = tcir.validate(text(name), pipeline(name), orders=1)
    assert {line.verdict for line in report.passes} <= {"reference", *verdicts}, str(report)
    assert not [f for line in report.passes for f in line.findings], str(report)


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_launch_for_each_product_and_reduction(name: str) -> None:
    kernel = tcir.compile(text(name), "gemm")
    assert [each.name for each in kernel.launches.launches] == [
        f"{name}_{each}" for each in LAUNCHES[name]
    ]


def test_two_linear_layers_in_f32() -> None:
    inputs = given(MLP)
    wide = [each.astype(float) for each in inputs]
    hidden = np.maximum(wide[0] @ wide[1].T + wide[2], 0).astype(F16).astype(float)
    want = (hidden @ wide[3].T + wide[4]).astype(F16)
    assert (run("mlp_casts", inputs, want.shape, F16) == want).all()


def test_two_linear_layers_of_a_batch() -> None:
    """The importer rounds the sums before it adds a bias in f16."""
    x, w1, b1, w2, b2 = inputs = given([(2, 20, 32), *MLP[1:]])
    hidden = np.maximum((x.astype(float) @ w1.T.astype(float)).astype(F16) + b1, F16(0))
    want = (hidden.astype(float) @ w2.T.astype(float)).astype(F16) + b2
    assert (run("mlp_3d_relu", inputs, want.shape, F16) == want).all()


def test_two_convolutions() -> None:
    x, w1, b1, w2, b2 = inputs = given(CHAIN)
    hidden = np.maximum(convolution(x, w1, 1, 1) + b1[:, None, None], 0).astype(F16)
    want = np.maximum(convolution(hidden, w2, 1, 1) + b2[:, None, None], 0).astype(F16)
    assert np.isfinite(want).all()
    assert (run("convs_nchw", inputs, want.shape, F16) == want).all()


def test_a_factor_that_is_added_in_another_shape() -> None:
    x, w1, w2 = inputs = given([(2, 24, 32), (32, 32), (40, 32)])
    r = (x.astype(float) @ w1.T.astype(float)).astype(F16) + x
    want = (r.astype(float) @ w2.T.astype(float)).astype(F16)
    assert (run("linear_residual", inputs, want.shape, F16) == want).all()


def attended(q: Array, k: Array, v: Array, dtype: Any) -> tuple[Array, Array]:
    """``softmax(q k^T / 4) v``, and the same of absolute values of v: its scale of errors."""
    q, k, v = (each.astype(float) for each in (q, k, v))
    scores = (q @ k.swapaxes(-1, -2)).astype(dtype).astype(float) / 4
    p = scipy.special.softmax(scores, -1).astype(dtype).astype(float)
    return p @ v, p @ np.abs(v)


@pytest.mark.parametrize(
    ("name", "dtype", "unit"), [("sdpa_f16", F16, 2.0**-9), ("sdpa_bf16", BF16, 2.0**-6)]
)
def test_scaled_dot_product_attention(name: str, dtype: Any, unit: float) -> None:
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal(shape).astype(dtype) for shape in HEADS]
    want, scale = attended(*inputs, dtype)
    assert (np.abs(run(name, inputs, want.shape, dtype) - want) < unit * scale).all()


@pytest.mark.slow
def test_one_matrix_as_both_factors() -> None:
    generator = np.random.default_rng(0)
    shapes = [(2, 3, 24, 16), (2, 1, 1, 24), (2, 3, 24, 16)]
    q, mask, v = inputs = [generator.standard_normal(shape).astype(F16) for shape in shapes]
    wide = q.astype(float)
    scores = (wide @ wide.swapaxes(-1, -2)).astype(F16) + mask
    p = scipy.special.softmax(scores.astype(float), -1)
    got = run("attention_masked", inputs, v.shape, F16)
    assert (np.abs(got - p @ v.astype(float)) < 2.0**-9 * (p @ np.abs(v.astype(float)))).all()


@pytest.mark.slow
def test_attention_with_projections() -> None:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((2, 20, 48)).astype(BF16)
    weights = [(generator.standard_normal((48, 48)) / 7).astype(BF16) for _ in range(4)]
    wide = x.astype(float)
    q, k, v = (
        (wide @ w.T.astype(float)).astype(BF16).reshape(2, 20, 3, 16).swapaxes(1, 2)
        for w in weights[:3]
    )
    heads, scale = (each.swapaxes(1, 2).reshape(2, 20, 48) for each in attended(q, k, v, BF16))
    last = weights[3].T.astype(float)
    want, scale = heads.astype(BF16).astype(float) @ last, scale @ np.abs(last)
    got = run("attention_heads", [x, *weights], want.shape, BF16)
    assert (np.abs(got - want) < 2.0**-5 * scale).all()


def test_a_break_of_the_folding_in_launches() -> None:
    """The first result repacked with rows and columns exchanged."""
    passes = list(tcir.named_pipeline("conv").passes)
    last = max(n for n, each in enumerate(passes) if each.name == "fold-layouts")
    edit = set_attribute("tc.repack", "permutation", "array<i64: 0, 3, 2, 1>")
    passes[last] = Broken(passes[last], edit)  # type: ignore[arg-type]
    report = tcir.validate(text("convs_nchw"), tcir.Pipeline(passes), orders=1)
    failure = report.first_failure()
    assert failure is not None and failure.verdict == "different", str(report)
    assert [line.name for line in report.passes].index("split-layers") + 1 == failure.index
