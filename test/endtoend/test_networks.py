"""Parts of networks, a function each: one compilation, the table of launches, all levels, numpy.

Bytes are worked out here from shapes alone, and counted by the machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir.program.workspaces import Workspaces

from .layers_text import GELU, perceptron

Array = np.ndarray[Any, Any]
EXAMPLES = Path(__file__).parents[2] / "examples"
F16, BF16, F32 = np.float16, ml_dtypes.bfloat16, np.float32
TABLES = {
    "resnet50_bottleneck": ("conv", [
        # 56 x 56 x 256, filters, two f32 for each channel; 56 x 56 x 128 stored as f16
        ("conv2d", "mulf, addf, maximumf, truncf",
         (2 * (3136 * 256 + 256 * 128) + 1024, 0, 2 * 3136 * 128, 0)),
        ("conv2d", "mulf, addf, maximumf, truncf",
         (2 * 9 * 128 * 128 + 1024, 2 * 3136 * 128, 2 * 784 * 128, 0)),
        # the shortcut: x again, 28 x 28 x 512 stored
        ("conv2d", "mulf, addf, truncf",
         (2 * (3136 * 256 + 256 * 512) + 4096, 0, 2 * 784 * 512, 0)),
        ("conv2d", "mulf, addf, extf, maximumf, truncf",
         (2 * 128 * 512 + 4096, 2 * (784 * 128 + 784 * 512), 0, 2 * 784 * 512)),
    ]),
    "resnet50_stem": ("conv", [
        # rows of three channels become rows of eight
        ("repack", "-", (2 * 224 * 224 * 3, 0, 2 * 224 * 224 * 8, 0)),
        ("repack", "-", (2 * 49 * 3 * 64, 0, 2 * 49 * 8 * 64, 0)),
        ("conv2d", "mulf, addf, maximumf, truncf",
         (512, 2 * (224 * 224 * 8 + 49 * 8 * 64), 2 * 112 * 112 * 64, 0)),
        ("pad, pooling_nhwc_max", "-", (0, 2 * 112 * 112 * 64, 0, 2 * 56 * 56 * 64)),
    ]),
    "attention_projections": ("gemm", [
        *(("matmul", fused, (2 * (197 * 192 + 192 * 192) + 768, 0, 0, 2 * 197 * 192))
          for fused in ("addf, mulf, truncf", "addf, truncf", "addf, truncf")),
        ("matmul", "addf, extf, truncf",
         (2 * (2 * 197 * 192 + 192 * 192) + 768, 0, 0, 2 * 197 * 192)),
    ]),
    "attention_block": ("gemm", [
        *(("matmul", "addf, truncf", (2 * (197 * 192 + 192 * 192) + 768, 0, 2 * 197 * 192, 0))
          for _ in "qkv"),
        *(("repack", "-", (0, 2 * 197 * 192, 2 * 197 * 192, 0)) for _ in "qk"),
        # three heads of 197 x 197, in f32
        ("matmul", "mulf", (0, 2 * 2 * 197 * 192, 4 * 3 * 197 * 197, 0)),
        ("maximumf, subf, exp, addf, divf, truncf", "-",
         (0, 4 * 3 * 197 * 197, 2 * 3 * 197 * 197, 0)),
        # v by heads; rows of 197 become rows of 200, of weights and of v transposed
        ("repack", "-", (0, 2 * 197 * 192, 2 * 197 * 192, 0)),
        ("repack", "-", (0, 2 * 3 * 197 * 197, 2 * 3 * 197 * 200, 0)),
        ("repack", "-", (0, 2 * 197 * 192, 2 * 200 * 192, 0)),
        ("matmul", "-", (0, 2 * 200 * (3 * 197 + 192), 2 * 197 * 192, 0)),
        ("repack", "-", (0, 2 * 197 * 192, 2 * 197 * 192, 0)),
        ("matmul", "addf, extf, truncf",
         (2 * (197 * 192 + 192 * 192) + 768, 2 * 197 * 192, 0, 2 * 197 * 192)),
    ]),
    "mlp_bf16": ("gemm", [
        ("matmul", "addf, mulf, erf, truncf",
         (2 * (136 * 64 + 64 * 128) + 512, 0, 2 * 136 * 128, 0)),
        ("matmul", "addf", (2 * 128 * 96 + 384, 2 * 136 * 128, 0, 4 * 136 * 96)),
    ]),
    "nvfp4_mlp": ("gemm", [
        # codes of half a byte; scales in blocks of 512 bytes; alpha and norm, beta
        ("block_scaled_matmul", "negf, exp, addf, divf, mulf, quantise_blocks",
         (136 * 32 + 256 * 32 + 2 * 1024 + 8, 0, 136 * 64 + 2048, 0)),
        ("block_scaled_matmul", "-", (96 * 64 + 1024 + 4, 136 * 64 + 2048, 0, 2 * 136 * 96)),
    ]),
}  # fmt: skip
"""Pipeline, and launches: ops, ops fused; bytes of arguments, loaded, stored, of results."""


def source(name: str) -> Path:
    return EXAMPLES / f"{name}.mlir"


@pytest.mark.parametrize("name", TABLES)
def test_table(name: str) -> None:
    """What is fused into each launch, and the bytes between them, in numbers and as printed."""
    pipeline, want = TABLES[name]
    kernel = tcir.compile(source(name), pipeline)
    table = kernel.launch_table
    assert [row.name for row in table.rows] == [each.title for each in kernel.launches.launches]
    found = [
        (", ".join(r.work.computes), ", ".join(r.work.fused) or "-", r.bytes) for r in table.rows
    ]
    assert found == want
    stored, results = (sum(numbers[column] for *_, numbers in want) for column in (2, 3))
    assert sum(kernel.launches.workspaces.sizes) == stored
    assert results == sum(2 * np.prod(each.shape) for each in kernel.signature.outputs) * (
        2 if name == "mlp_bf16" else 1
    )
    spaces, rows = kernel.launches.workspaces, str(table).splitlines()
    if spaces.sizes:
        apart = Workspaces.apart(spaces.sizes).arena
        assert rows.pop() == f"workspaces: {spaces.arena} bytes, {apart} without sharing"
    head, *lines, total, between = rows
    assert head.split()[-4:] == ["arguments", "loaded", "stored", "results"]
    for line, row in zip(lines, table.rows, strict=True):
        assert line.startswith(row.name) and line.split()[-4:] == list(map(str, row.bytes))
    assert total.split()[3:] == [str(stored), str(results)]
    loaded = sum(numbers[1] for *_, numbers in want)
    assert between == f"between launches: {stored} bytes stored, {loaded} bytes loaded"
    assert spaces.arena <= stored


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", TABLES)
def test_every_pass_of_every_launch(name: str) -> None:
    """One compilation of the whole part in its real size, executed after every pass."""
    report = tcir.validate(source(name), TABLES[name][0])
    assert report.ok, str(report)
    assert not [finding for line in report.passes for finding in line.findings]


# --- beside numpy --------------------------------------------------------------------------------


def whole(generator: np.random.Generator, *shape: int, dtype: Any = F16) -> Array:
    """Whole numbers from -3 to 3."""
    return generator.integers(-3, 4, shape).astype(dtype)


def powers(generator: np.random.Generator, channels: int, least: int) -> Array:
    """Scales that are powers of two, of either sign."""
    signs = generator.choice([-1.0, 1.0], channels)
    return np.asarray(signs * 2.0 ** generator.integers(least, least + 3, channels), F32)


def convolved(x: Array, w: Array, stride: int = 1) -> Array:
    """NHWC by HWCF with padding that keeps the size, in float64."""
    pad = w.shape[0] // 2
    image = np.pad(x.astype(float), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(image, w.shape[:2], (1, 2))
    rows = windows[:, ::stride, ::stride]
    return np.tensordot(rows, w.astype(float), axes=([4, 5, 3], [0, 1, 2]))


def normed(sums: Array, scale: Array, bias: Array) -> Array:
    """Scaled and biased; every step is exact, in f32 as in float64."""
    result = sums * scale + bias
    for exact in (sums, sums * scale, result):
        assert (exact == exact.astype(F32)).all(), "numbers that f32 has not"
    return np.asarray(result)


def run(name: str, arrays: list[Array], *results: Array) -> Any:
    kernel = tcir.compile(source(name), TABLES[name][0])
    outcome = kernel(*arrays, *results)
    assert not outcome.findings
    *_, stored, written = kernel.launch_table.total
    assert outcome.counters["global_store"] == stored + written
    return outcome


@pytest.mark.timeout(900)
def test_bottleneck_beside_numpy() -> None:
    generator = np.random.default_rng(0)
    x = whole(generator, 1, 56, 56, 256)
    arrays, layers = [x], []
    for taps, c, k, least in (
        (1, 256, 128, -6),
        (3, 128, 128, -9),
        (1, 128, 512, -7),
        (1, 256, 512, -6),
    ):
        w, scale = whole(generator, taps, taps, c, k), powers(generator, k, least)
        layers.append((w, scale, whole(generator, k, dtype=F32)))
        arrays += layers[-1]

    def layer(image: Array, number: int, stride: int = 1) -> Array:
        w, scale, bias = layers[number]
        return normed(convolved(image, w, stride), scale, bias)

    h = np.maximum(layer(x, 0), 0).astype(F16)
    h = np.maximum(layer(h, 1, 2), 0).astype(F16)
    shortcut = layer(x, 3, 2).astype(F16)
    sums = layer(h, 2).astype(F32) + shortcut.astype(F32)
    want = np.maximum(sums, 0).astype(F16)
    assert np.isfinite(want).all() and len(np.unique(want)) > 1000
    y = np.full_like(want, np.nan)
    run("resnet50_bottleneck", arrays, y)
    assert y.tobytes() == want.tobytes()


@pytest.mark.timeout(900)
def test_stem_beside_numpy() -> None:
    generator = np.random.default_rng(0)
    x, w = whole(generator, 1, 224, 224, 3), whole(generator, 7, 7, 3, 64)
    scale, bias = powers(generator, 64, -5), whole(generator, 64, dtype=F32)
    h = np.maximum(normed(convolved(x, w, 2), scale, bias), 0).astype(F16)
    image = np.pad(h, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (1, 2))
    want = windows[:, ::2, ::2].max((-1, -2))
    y = np.full_like(want, np.nan)
    run("resnet50_stem", [x, w, scale, bias], y)
    assert y.tobytes() == want.tobytes()


@pytest.mark.timeout(900)
def test_projections_beside_numpy() -> None:
    generator = np.random.default_rng(0)
    x, context = (whole(generator, 197, 192, dtype=BF16) for _ in range(2))
    layers = [
        (whole(generator, 192, 192, dtype=BF16), whole(generator, 192, dtype=F32)) for _ in range(4)
    ]
    want = []
    for number, (w, b) in enumerate(layers):
        sums = (context if number == 3 else x).astype(float) @ w.astype(float) + b
        sums = sums / 8 if number == 0 else sums + x.astype(float) * (number == 3)
        assert (sums == sums.astype(F32)).all(), "numbers that f32 has not"
        want.append(sums.astype(F32).astype(BF16))
    results = [np.full_like(each, np.nan) for each in want]
    run(
        "attention_projections",
        [x, context, *(each for layer in layers for each in layer)],
        *results,
    )
    for each, found in zip(want, results, strict=True):
        assert found.tobytes() == each.tobytes()


def bf16(array: Array) -> Array:
    """Rounded, as float64."""
    return array.astype(F32).astype(BF16).astype(float)


@pytest.mark.timeout(900)
def test_attention_beside_numpy() -> None:
    """Within roundings of what is in memory between the launches."""
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal((197, 192)).astype(BF16)]
    for _ in range(4):
        w, b = generator.standard_normal((192, 192)) / 14, generator.standard_normal(192)
        arrays += [w.astype(BF16), b.astype(F32)]
    x, q_w, q_b, k_w, k_b, v_w, v_b, out_w, out_b = (each.astype(float) for each in arrays)
    q, k, v = (bf16(x @ w + b).reshape(197, 3, 64) for w, b in ((q_w, q_b), (k_w, k_b), (v_w, v_b)))
    scores = np.einsum("mhd,nhd->hmn", q, k) / 8
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    weights = bf16(powers / powers.sum(-1, keepdims=True))
    context, size = (
        np.einsum("hmn,nhd->mhd", weights, each).reshape(197, 192) for each in (v, np.abs(v))
    )
    want = bf16(context) @ out_w + out_b + x
    found = np.full((197, 192), np.nan, BF16)
    run("attention_block", arrays, found)
    error = np.abs(found.astype(float) - want)
    unit = 2.0**-7 * size @ np.abs(out_w) + 2.0**-8 * np.abs(want)
    assert (error < unit).all()
    assert error.mean() < unit.mean() / 20


# --- perceptrons of a real size ------------------------------------------------------------------


def wide_nvfp4() -> str:
    """examples/nvfp4_mlp.mlir for 197 tokens of 192, with 512 in between."""
    text = source("nvfp4_mlp").read_text()
    for old, new in (
        ("136x64xf4", "197x192xf4"), ("%sx: tensor<2x1x512x", "%sx: tensor<2x3x512x"),
        ("256x64xf4", "1024x192xf4"), ("%sw: tensor<2x1x512x", "%sw: tensor<8x3x512x"),
        ("96x128xf4", "192x512xf4"), ("%sv: tensor<1x2x512x", "%sv: tensor<2x8x512x"),
        ("<136x256xf32>", "<197x1024xf32>"), ("<136x128x", "<197x512x"),
        ("(tensor<197x192xf4E2M1FN>, tensor<2x1x", "(tensor<197x192xf4E2M1FN>, tensor<2x3x"),
        ("tensor<2x1x512xf8E4M3FN>, tensor<f32>) ->", "tensor<8x3x512xf8E4M3FN>, tensor<f32>) ->"),
        ("2x2x512x", "2x8x512x"), ("tensor<1x2x512x", "tensor<2x8x512x"),
        ("<136x96x", "<197x192x"),
    ):  # fmt: skip
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(perceptron(197, [192, 768, 192], GELU), id="bf16"),
        pytest.param(wide_nvfp4(), id="NVFP4"),
    ],
)
def test_perceptron_of_a_real_size(text: str) -> None:
    """That of ViT-Tiny; in NVFP4 with a gate."""
    report = tcir.validate(text, "gemm")
    assert report.ok, str(report)
