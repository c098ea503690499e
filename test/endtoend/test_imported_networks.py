"""Several layers in a function as PyTorch's importer writes them (`layers/*.mlir`): each product a
launch, with the casts, transposes and reshapes in front of it and the epilogue behind it folded."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import tcir

from .breaking import Edit, change_text, run_broken, set_attribute
from .test_layers import Array, convolution, text, whole

BF16, F16 = ml_dtypes.bfloat16, np.float16
MLP = [(40, 32), (48, 32), (48,), (24, 48), (24,)]
CHAIN = [(2, 8, 6, 6), (16, 8, 3, 3), (16,), (24, 16, 3, 3), (24,)]
HEADS = [(2, 3, 20, 16), (2, 3, 24, 16), (2, 3, 24, 16)]
SDPA = ["0_matmul", "1_truncf", "2_matmul"]
LAUNCHES = {
    "mlp_casts": ["0_matmul", "1_matmul"],
    "mlp_3d_relu": ["0_matmul", "1_matmul"],
    "linear_residual": ["0_matmul", "1_matmul"],
    "sdpa_f16": SDPA,
    "sdpa_bf16": SDPA,
    "convs_nchw": [
        "0_conv_repack0", "0_conv_repack1", "0_conv", "1_conv_repack0", "1_conv", "1_conv_repack2",
    ],
    "convs_residual": [
        "0_conv_repack0", "0_conv_repack1", "0_conv", "1_conv_repack0", "1_conv",
        "2_conv", "2_conv_repack1",
    ],
}  # fmt: skip
"""Names behind that of the function: no cast is stored; of convolutions the input, filters of more
than one tap and the result are repacked, and nothing between them is."""


def pipeline(name: str) -> str:
    return "conv" if name.startswith("conv") else "gemm"


def run(name: str, inputs: list[Array], shape: tuple[int, ...], dtype: Any) -> Array:
    out = np.full(shape, 7, dtype)
    report = tcir.compile(text(name), pipeline(name))(*inputs, out)
    assert not report.findings
    return out.astype(float)


def given(shapes: list[tuple[int, ...]], dtype: Any = F16) -> list[Array]:
    return [whole(shape, seed, dtype) for seed, shape in enumerate(shapes)]


@pytest.mark.parametrize(
    ("name", "verdicts"),
    [
        ("mlp_casts", {"equal"}),
        ("mlp_3d_relu", {"equal"}),
        ("convs_nchw", {"equal"}),
        ("convs_residual", {"equal"}),
        ("sdpa_f16", {"equal", "within bound"}),
        ("sdpa_bf16", {"equal", "within bound"}),
        ("attention_heads", {"equal", "within bound"}),
        ("linear_residual", {"equal"}),
        ("attention_masked", {"equal", "within bound"}),
    ],
)
def test_every_level(name: str, verdicts: set[str]) -> None:
    report = tcir.validate(text(name), pipeline(name), orders=1, strict=True)
    assert report.ok, str(report)
    assert {line.verdict for line in report.passes} <= {"reference", *verdicts}, str(report)
    assert not [f for line in report.passes for f in line.findings], str(report)


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_launch_for_each_product_and_reduction(name: str) -> None:
    kernel = tcir.compile(text(name), pipeline(name))
    assert [each.title for each in kernel.launches.launches] == [
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


DOT = """
func.func @f(%a: tensor<64xf16>, %b: tensor<64xf16>, %s: tensor<f32>) -> tensor<f16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %c = linalg.dot ins(%a, %b : tensor<64xf16>, tensor<64xf16>) outs(%i : tensor<f32>) -> tensor<f32>
  %d = arith.addf %c, %s : tensor<f32>
  %r = arith.truncf %d : tensor<f32> to tensor<f16>
  return %r : tensor<f16>
}
"""


def test_a_single_sum_has_a_launch_behind_it() -> None:
    a, b = given([(64,), (64,)])
    out = np.zeros((), F16)
    kernel = tcir.compile(DOT, "gemm")
    assert [each.title for each in kernel.launches.launches] == ["f_0_dot", "f_1_truncf"]
    kernel(a, b, np.array(5, np.float32), out)
    assert out == a.astype(float) @ b.astype(float) + 5


def test_some_channels_of_a_convolution() -> None:
    """No epilogue stores a part of the sums: they are stored channels last, a kernel takes it."""
    x, w = inputs = given([(1, 8, 11, 11), (16, 8, 3, 3)])
    want = convolution(x, w, 1, 0)[:, 4:8]
    assert (run("conv_part", inputs, want.shape, np.float32) == want).all()


def test_convolutions_and_a_residual() -> None:
    shapes = [(2, 8, 9, 9), *CHAIN[1:3], (24, 16, 3, 3), (24,), (16, 24, 1, 1), (16,)]
    inputs = [np.clip(each, -1, 1) for each in given(shapes)]
    x, w1, b1, w2, b2, w3, b3 = inputs
    h = np.maximum(convolution(x, w1, 1, 1) + b1[:, None, None], 0).astype(F16)
    g = np.maximum(convolution(h, w2, 1, 1) + b2[:, None, None], 0).astype(F16)
    y = (convolution(g, w3, 1, 0) + b3[:, None, None]).astype(F16)
    want = np.maximum(y + h, F16(0))
    assert len(np.unique(want)) > 50
    assert (run("convs_residual", inputs, want.shape, F16) == want).all()


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


def test_one_matrix_as_both_factors() -> None:
    generator = np.random.default_rng(0)
    shapes = [(2, 3, 24, 16), (2, 1, 1, 24), (2, 3, 24, 16)]
    q, mask, v = inputs = [generator.standard_normal(shape).astype(F16) for shape in shapes]
    wide = q.astype(float)
    scores = (wide @ wide.swapaxes(-1, -2)).astype(F16) + mask
    p = scipy.special.softmax(scores.astype(float), -1)
    got = run("attention_masked", inputs, v.shape, F16)
    assert (np.abs(got - p @ v.astype(float)) < 2.0**-9 * (p @ np.abs(v.astype(float)))).all()


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


@pytest.mark.parametrize(
    ("name", "at", "edit"),
    [
        pytest.param(
            "convs_nchw", "fold-layouts",
            set_attribute("tc.repack", "permutation", "array<i64: 0, 3, 2, 1>"),
            id="result repacked with rows and columns exchanged",
        ),
        pytest.param(
            "convs_residual", "fold-layouts",
            change_text(r"\(d0, d2 \+ d5, d3 \+ d6, d4\)", "(d0, d3 + d6, d2 + d5, d4)"),
            id="rows and columns exchanged between convolutions",
        ),
        pytest.param(
            "sdpa_f16", "fold-layouts", change_text("arith.divf", "arith.mulf"),
            id="times the sum of a row",
        ),
        pytest.param(
            "convs_residual", "split-layers", change_text("9, 5, 6, 8, 7>", "9, 5, 2, 8, 7>"),
            id="bias of another convolution",
        ),
    ],
)  # fmt: skip
def test_breaks(name: str, at: str, edit: Edit) -> None:
    caught = run_broken(text(name), tcir.named_pipeline(pipeline(name)), at, edit)
    assert caught and (caught.at, caught.by) == (at, "difference"), caught
