"""Programs for the bugs of `attack_*.py`: pipelines, options and targets that others lack."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from endtoend.block_scaled_text import F8A, F8B, UE8M0, BlockScaled
from endtoend.constants_text import with_constants
from endtoend.conv_epilogue_text import FusedConv
from endtoend.epilogue_text import KEEP, TRUNCATE, Fused, gelu_of_sums
from endtoend.gemv_epilogue_text import FusedScaled
from endtoend.linalg_text import Conv, Matmul
from endtoend.test_gemm_grouped import Grouped

HOPPER = "sm_90a"
LEAKY = """
    %slope = arith.constant 0.01 : f32
    %zero1 = arith.constant 0.0 : f32
    %u = arith.addf %s, %b : f32
    %v = arith.mulf %u, %slope : f32
    %p = arith.cmpf ogt, %u, %zero1 : f32
    %t = arith.select %p, %u, %v : f32
"""
RELU6 = """
    %zero1 = arith.constant 0.0 : f32
    %six = arith.constant 6.0 : f32
    %u = arith.addf %s, %b : f32
    %v = arith.maximumf %u, %zero1 : f32
    %t = arith.minimumf %v, %six : f32
"""
TO_I8 = """
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %x = arith.sitofp %s : i32 to f32
    %y = arith.mulf %x, %scale : f32
    %r = math.roundeven %y : f32
    %v = arith.maximumf %r, %low : f32
    %u = arith.minimumf %v, %high : f32
    %t = arith.fptosi %u : f32 to i8
    linalg.yield %t : i8
"""
BIASED = """
    %t = arith.addf %s, %b : f32
"""
B = {"b": ("f32", "n")}
LEAKY_F16 = Fused(LEAKY + TRUNCATE, B, m=40, n=32, k=32)
I8 = Fused(TO_I8, {"scale": ("f32", "")}, out="i8", element="i8", sums="i32", m=40, n=32, k=64)
GELU = Fused(gelu_of_sums("erf") + KEEP, out="f32", m=40, n=32, k=32)
BIAS = Fused(BIASED + KEEP, B, out="f32", m=40, n=32, k=32)


def _conv(body: str, out: str = "f16", channels: int = 16, **changes: object) -> str:
    conv = replace(Conv(1, 8, 8, channels, 32, 3, 3, (1, 1, 1, 1), out=out), **changes)
    return FusedConv(conv, body, {"b": ("f32", "k")}).linalg()


WEIGHTS = np.random.default_rng(5).standard_normal((32, 32)).astype(np.float16)
FEW = WEIGHTS * (np.abs(WEIGHTS) > 1)
TWO = """
func.func @two(%x: tensor<40x32xf16>, %w1: tensor<32x48xf16>, %b1: tensor<48xf32>,
               %w2: tensor<48x32xf16>) -> tensor<40x32xf16> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<40x48xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<40x48xf32>) -> tensor<40x48xf32>
  %s1 = linalg.matmul ins(%x, %w1 : tensor<40x32xf16>, tensor<32x48xf16>)
      outs(%i1 : tensor<40x48xf32>) -> tensor<40x48xf32>
  %e2 = tensor.empty() : tensor<40x48xf16>
  %h = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>,
      affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%s1, %b1 : tensor<40x48xf32>, tensor<48xf32>) outs(%e2 : tensor<40x48xf16>) {
  ^bb0(%s: f32, %b: f32, %o: f16):
    BODY
    %y = arith.truncf %t : f32 to f16
    linalg.yield %y : f16
  } -> tensor<40x48xf16>
  %e3 = tensor.empty() : tensor<40x32xf32>
  %i3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<40x32xf32>) -> tensor<40x32xf32>
  %s2 = linalg.matmul ins(%h, %w2 : tensor<40x48xf16>, tensor<48x32xf16>)
      outs(%i3 : tensor<40x32xf32>) -> tensor<40x32xf32>
  %e4 = tensor.empty() : tensor<40x32xf16>
  %z = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>,
      affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%s2 : tensor<40x32xf32>) outs(%e4 : tensor<40x32xf16>) {
  ^bb0(%s: f32, %o: f16):
    %y = arith.truncf %s : f32 to f16
    linalg.yield %y : f16
  } -> tensor<40x32xf16>
  return %z : tensor<40x32xf16>
}
"""
NVFP4 = BlockScaled(m=64, n=4, k=128)
MX = BlockScaled(m=48, k=256, scale=UE8M0, block=32, a=F8A, b=F8B)
SQUARE = Matmul(128, 32, 64, out="f16")

TEXTS: dict[str, tuple[str, ...]] = {
    # gemm, options
    "pairs": ("gemm{cta_group=2 n-tile=32}", Matmul(256, 32, 64, out="f16").text()),
    "pairs relu6": (
        "gemm{cta_group=2 n-tile=32}",
        Fused(RELU6 + TRUNCATE, B, m=200, n=32, k=40).linalg(),
    ),
    "clc": ("gemm{n-tile=16 persistent=true scheduler=clc}", Matmul(140, 40, 40, out="f16").text()),
    "persistent leaky": (
        "gemm{n-tile=16 persistent=true ctas=2}",
        replace(LEAKY_F16, m=140, n=40, k=40).linalg(),
    ),
    "split-k": ("gemm{split-k=2}", Matmul(64, 32, 128, out="f16").text()),
    "split-k leaky": ("gemm{split-k=2}", replace(LEAKY_F16, k=128).linalg()),
    "store tma": ("gemm{store=tma}", Matmul(100, 40, 64, out="bf16", element="bf16").text()),
    "clusters": ("gemm{cluster=2x2 n-tile=32}", Matmul(200, 64, 72, out="f32").text()),
    "programmatic": ("gemm{programmatic=true}", TWO.replace("BODY", BIASED)),
    "batched": ("gemm", Matmul(40, 24, 40, "km", "nk", batch=3, out="f16").text()),
    "swapped": ("gemm", Matmul(200, 4, 64, out="f16").text()),
    "leaky": ("gemm", LEAKY_F16.linalg()),
    "i8 to i8": ("gemm", I8.linalg()),
    "gelu": ("gemm", GELU.linalg()),
    "gemm nvfp4": ("gemm", BlockScaled(m=64, n=32, k=128).linalg()),
    "gemm mxfp8": (
        "gemm",
        BlockScaled(m=64, n=32, k=128, scale=UE8M0, block=32, a=F8A, b=F8B).linalg(),
    ),
    "two": ("gemm", TWO.replace("BODY", BIASED)),
    "two relu6": ("gemm", TWO.replace("BODY", RELU6)),
    "two gelu": ("gemm", TWO.replace("BODY", gelu_of_sums("erf"))),
    "grouped bf16": ("gemm{n-tile=16}", Grouped(3, 140, 16, 40, "bf16", "nk", "bf16").text),
    "constant f16": ("gemm", with_constants(LEAKY_F16.linalg(), {1: WEIGHTS})),
    "constant, few": ("gemm", with_constants(BIAS.linalg(), {1: FEW})),
    "constant two": (
        "gemm",
        with_constants(TWO.replace("BODY", RELU6).replace("48", "32"), {1: WEIGHTS, 3: FEW}),
    ),
    # sm_90a
    "hopper leaky": ("gemm", LEAKY_F16.linalg(), HOPPER),
    "hopper bf16": ("gemm", Matmul(100, 40, 64, element="bf16", out="bf16").text(), HOPPER),
    "hopper tf32": ("gemm", Matmul(64, 24, 40, element="f32").text(), HOPPER),
    "hopper i8 to i8": ("gemm", I8.linalg(), HOPPER),
    "hopper e5m2": ("gemm", Matmul(64, 32, 64, element="f8E5M2", out="f16").text(), HOPPER),
    "hopper persistent": (
        "gemm{n-tile=16 persistent=true ctas=2}",
        Matmul(140, 40, 40, out="f16").text(),
        HOPPER,
    ),
    "hopper two": ("gemm", TWO.replace("BODY", RELU6), HOPPER),
    "hopper implicit": ("conv-implicit-gemm", _conv(LEAKY + TRUNCATE), HOPPER),
    "hopper offset": ("conv-smem-offset", _conv(RELU6 + TRUNCATE), HOPPER),
    "hopper constant": ("gemm", with_constants(LEAKY_F16.linalg(), {1: WEIGHTS}), HOPPER),
    "hopper warp": ("matmul-warp", Matmul(64, 32, 64, out="f16").text(), HOPPER),
    # convolutions
    "implicit stride 2": ("conv-implicit-gemm", _conv(LEAKY + TRUNCATE, strides=(2, 2), h=9, w=9)),
    "implicit pair": ("conv-implicit-gemm{cta_group=2}", _conv(RELU6 + TRUNCATE, h=12, w=16)),
    "shift relu6": ("conv-shift-reuse", _conv(RELU6 + TRUNCATE)),
    "shift refresh": ("conv-shift-reuse{halo=refresh}", _conv(BIASED + KEEP, "f32")),
    "offset dilated": (
        "conv-smem-offset",
        _conv(LEAKY + TRUNCATE, dilations=(2, 2), pads=(2, 2, 2, 2)),
    ),
    "conv chosen": ("conv", _conv(RELU6 + TRUNCATE, pads=(0, 1, 1, 0), r=2, s=3)),
    # others
    "padded relu6": (
        "gemv-padded-n",
        FusedScaled(
            NVFP4, RELU6.replace("%b", "%bias") + TRUNCATE, {"bias": ("f32", "m")}
        ).linalg(),
    ),
    "padded stream-k": (
        "gemv-padded-n{schedule=split-k splits=2}",
        BlockScaled(m=128, n=8, k=512, scale=UE8M0, block=32, a=F8A, b=F8A, out="f16").linalg(),
    ),
    "simt nvfp4, columns": (
        "gemv-simt",
        BlockScaled(m=64, k=256, alpha="after", out="f16").linalg(),
    ),
    "simt mx": ("gemv-simt", MX.linalg()),
    "warp f16": ("matmul-warp{copy=cp.async}", Matmul(64, 32, 64, out="f16").text()),
    "warp leaky": ("matmul-warp", replace(LEAKY_F16, m=64, k=64).linalg()),
    "warp i8": ("matmul-warp", Matmul(64, 32, 64, element="f8E5M2", out="bf16").text()),
}
LAYERS = (
    "argmax",
    "layer_norm",
    "layer_norm_f16",
    "rms_norm",
    "softmax_f16",
    "log_softmax",
    "std",
    "avg_pool",
    "avg_pool_inside",
    "elu",
    "hardswish",
    "leaky_relu",
    "greater",
    "dequantise",
    "max_pool_i8",
    "pow3",
    "pow_half",
    "softplus",
    "tril",
    "max_pool_indices",
    "gelu_tanh",
    "norm",
    "upsample",
    "relu_i8",
    "gelu_f16",
    "mish",
    "sum_all",
    "batch_norm",
    "conv_depthwise",
    "cat1",
    "silu",
    "mean_hw",
)
"""Layers of `endtoend/layers`, through simt-elementwise."""
PRODUCTS = (
    "attention_masked",
    "mlp_casts",
    "sdpa_bf16",
    "softmax_attention",
    "matmul_silu",
    "convs_residual",
    "convs_nchw",
)


def _layer(name: str) -> str:
    return (Path(__file__).parents[1] / "endtoend" / "layers" / f"{name}.mlir").read_text()


TEXTS |= {f"{name} layer": ("simt-elementwise", _layer(name)) for name in LAYERS}
TEXTS |= {
    f"{name} layer": ("layers" if "conv" in name else "gemm", _layer(name)) for name in PRODUCTS
}
