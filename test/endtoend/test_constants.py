"""Weights as constants of the program: hidden arguments of its kernels, packed at compile time.

Inputs and weights are whole numbers, so numpy's results are exact and compared bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir._mlir import ir
from tcir.interp.types import constant, dense
from tcir.passes.module import fold_constant_launches
from tcir.passes.module.constants_to_arguments import ConstantsToArguments
from tcir.program.constants import CONSTANTS, constant_arrays, constants_of
from tcir.program.source import mlir_context

from .block_scaled_oracle import inputs_of, product
from .block_scaled_text import UE8M0, BlockScaled
from .constants_text import with_constants
from .layers_text import bottleneck, perceptron
from .test_modules import BF16, F32, convolved, whole

Array = np.ndarray[Any, Any]
LAYERS = Path(__file__).parent / "layers"
EXACT = {"reference", "equal"}


def held(text: str, pipeline: str, x: list[Array], want: Array, within: bool = False) -> Any:
    """The kernel of a program, which is executed after every pass and gives what numpy gives."""
    kernel = tcir.compile(text, pipeline, validate=True)
    verdicts = {line.verdict for line in kernel.report.passes}
    assert verdicts <= EXACT | ({"within bound"} if within else set()), str(kernel.report)
    out = np.full_like(want, 7)
    assert not kernel(*x, out).findings
    assert out.tobytes() == want.tobytes() and want.any()
    return kernel


def names(kernel: tcir.Kernel) -> list[str]:
    """Of the launches, in order."""
    return [each.title for each in kernel.launches.launches]


def layers(m: int, sizes: list[int], seed: int = 0) -> tuple[Array, dict[int, Array], Array]:
    """Input, weights and biases by number, and the result of a perceptron."""
    generator = np.random.default_rng(seed)
    x = h = whole(generator, m, sizes[0])
    weights: dict[int, Array] = {}
    for n, (k, c) in enumerate(pairwise(sizes)):
        weights[2 * n + 1] = whole(generator, k, c)
        weights[2 * n + 2] = whole(generator, c, dtype=F32)
        sums = h.astype(float) @ weights[2 * n + 1].astype(float) + weights[2 * n + 2]
        h = np.maximum(sums, 0).astype(F32).astype(BF16)
    assert (sums == sums.astype(F32)).all(), "sums that f32 has not"
    return x, weights, sums.astype(F32)


def test_weights_and_biases() -> None:
    x, weights, want = layers(40, [32, 48])
    kernel = held(with_constants(perceptron(40, [32, 48]), weights), "gemm", [x], want)
    assert [s.shape for s in kernel.signature.inputs] == [(40, 32)]
    assert sum(each.nbytes for each in kernel.launches.constants) == 2 * 32 * 48 + 4 * 48
    assert f"constants: {2 * 32 * 48 + 4 * 48} bytes" in str(kernel.launch_table)
    assert f"constants, bytes         {2 * 32 * 48 + 4 * 48}\n" in str(kernel.report)


@pytest.mark.parametrize("pipeline", ["gemm", "layers"])
@pytest.mark.parametrize("resources", [False, True], ids=["dense", "dense_resource"])
def test_layers_of_odd_rows(pipeline: str, resources: bool) -> None:
    """Rows of 37 elements are repacked: those of weights at compile time."""
    x, weights, want = layers(40, [37, 37, 37])
    given = {n: a for n, a in weights.items() if not resources or a.nbytes > 400}
    text = with_constants(perceptron(40, [37, 37, 37]), given, resources)
    arrays = [x, *(a for n, a in weights.items() if n not in given)]
    kernel = held(text, pipeline, arrays, want)
    assert [n for n in names(kernel) if "repack" in n] == [
        "f_0_matmul_repack0",
        "f_1_matmul_repack0",
    ]
    assert kernel.launches.folded == ("f_0_matmul_repack1", "f_1_matmul_repack1")
    assert "packed at compile time: @f_0_matmul_repack1, @f_1_" in str(kernel.launch_table)
    packed = [each.shape for each in kernel.launches.constants if each.ndim == 2]
    assert sorted(packed) == [(37, 40), (37, 40)]


def test_one_weight_is_read_as_it_is_and_packed() -> None:
    """A constant that two products read, one of them repacked, is there twice; used once, once."""
    x, weights, _ = layers(40, [37, 37, 37])
    same = {**weights, 3: weights[1], 4: weights[2]}
    h = np.maximum(x.astype(float) @ same[1].astype(float) + same[2], 0).astype(F32).astype(BF16)
    want = (h.astype(float) @ same[1].astype(float) + same[2]).astype(F32)
    kernel = held(with_constants(perceptron(40, [37, 37, 37]), same), "gemm", [x], want)
    assert len(kernel.launches.constants) <= 3


@pytest.mark.parametrize("pipeline", ["conv", "conv-implicit-gemm"])
def test_bottleneck(pipeline: str) -> None:
    generator = np.random.default_rng(0)
    x = h = whole(generator, 1, 8, 8, 64)
    weights: dict[int, Array] = {}
    for n, (taps, c, k) in enumerate(((1, 64, 16), (3, 16, 16), (1, 16, 64))):
        weights[2 * n + 1] = whole(generator, taps, taps, c, k)
        weights[2 * n + 2] = whole(generator, k, dtype=F32)
        sums = convolved(h, weights[2 * n + 1]) + weights[2 * n + 2]
        h = np.maximum(sums, 0).astype(F32).astype(BF16)
    sums = sums + x.astype(float)
    assert (sums == sums.astype(F32)).all(), "sums that f32 has not"
    want = np.maximum(sums, 0).astype(F32).astype(BF16)
    held(with_constants(bottleneck(1, 8, 64, 16), weights), pipeline, [x], want)


def test_imported_convolutions() -> None:
    """Channels first, as PyTorch's importer writes them: only the caller's images are repacked."""
    generator = np.random.default_rng(0)
    x = h = whole(generator, 2, 8, 6, 6, dtype=np.float16)
    weights: dict[int, Array] = {}
    for n, (c, k) in enumerate(((8, 16), (16, 24))):
        weights[2 * n + 1] = generator.integers(-1, 2, (k, c, 3, 3)).astype(np.float16)
        weights[2 * n + 2] = whole(generator, k, dtype=np.float16)
        last = h.transpose(0, 2, 3, 1)
        sums = convolved(last, weights[2 * n + 1].transpose(2, 3, 1, 0)) + weights[2 * n + 2]
        assert (abs(sums) <= 2048).all(), "sums that f16 has not"
        h = np.maximum(sums, 0).astype(np.float16).transpose(0, 3, 1, 2)
    text = (LAYERS / "convs_nchw.mlir").read_text()
    with_arguments = tcir.compile(text, "conv")
    kernel = held(with_constants(text, weights), "conv", [x], np.ascontiguousarray(h))
    assert (len(names(with_arguments)), len(names(kernel))) == (6, 4)


@pytest.mark.parametrize("pipeline", ["gemv-padded-n", "gemv-simt", "gemm"])
@pytest.mark.parametrize("k", [96, 256])
def test_block_scaled_weights(pipeline: str, k: int) -> None:
    """NVFP4 codes and scales: scales are put into blocks, rows padded, codes packed, once."""
    case = BlockScaled(m=40, k=k, n=3)
    arrays = inputs_of(case, seed=7)
    want = product(case, **arrays)
    order = list(arrays)
    baked = {order.index(name): arrays[name] for name in ("a", "sa")}
    rest = [arrays[name] for name in order if name not in ("a", "sa")]
    kernel = held(with_constants(case.linalg(), baked), pipeline, rest, want)
    plain = tcir.compile(case.linalg(), pipeline)
    assert len(names(kernel)) <= len(names(plain))
    if pipeline == "gemm":
        assert len(names(kernel)) < len(names(plain))


def test_mx_weights() -> None:
    case = BlockScaled(m=40, k=96, scale=UE8M0, block=32)
    arrays = inputs_of(case, seed=7)
    baked = {list(arrays).index(name): arrays[name] for name in ("a", "sa")}
    rest = [arrays[name] for name in arrays if name not in ("a", "sa")]
    text = with_constants(case.linalg(), baked)
    held(text, "gemv-padded-n", rest, product(case, **arrays))


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100a"])
def test_warp_products(target: str) -> None:
    x, weights, want = layers(40, [37, 48])
    text = with_constants(perceptron(40, [37, 48]), weights)
    kernel = tcir.compile(text, "matmul-warp", target=target, validate=True)
    assert {line.verdict for line in kernel.report.passes} <= EXACT, str(kernel.report)
    out = np.full_like(want, 7)
    kernel(x, out)
    assert (out == want).all()


def test_cuda_cores() -> None:
    """A constant table that elements are multiplied by, and whose rows are summed: the launch of
    the same program with an argument."""
    generator = np.random.default_rng(0)
    x, w = whole(generator, 6, 20, dtype=F32), whole(generator, 6, 20, dtype=F32)
    text = """
    #id = affine_map<(m, n) -> (m, n)>
    #row = affine_map<(m, n) -> (m)>
    func.func @f(%x: tensor<6x20xf32>, %w: tensor<6x20xf32>) -> tensor<6x20xf32> {
      %z = arith.constant 0.0 : f32
      %r = tensor.empty() : tensor<6xf32>
      %i = linalg.fill ins(%z : f32) outs(%r : tensor<6xf32>) -> tensor<6xf32>
      %s = linalg.reduce { arith.addf } ins(%w : tensor<6x20xf32>) outs(%i : tensor<6xf32>)
          dimensions = [1]
      %e = tensor.empty() : tensor<6x20xf32>
      %y = linalg.generic {indexing_maps = [#id, #id, #row, #id],
                           iterator_types = ["parallel", "parallel"]}
          ins(%x, %w, %s : tensor<6x20xf32>, tensor<6x20xf32>, tensor<6xf32>)
          outs(%e : tensor<6x20xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
        %p = arith.mulf %a, %b : f32
        %q = arith.addf %p, %c : f32
        linalg.yield %q : f32
      } -> tensor<6x20xf32>
      return %y : tensor<6x20xf32>
    }"""
    want = x * w + w.sum(1, keepdims=True)
    given = tcir.compile(text, "simt-elementwise")
    kernel = held(with_constants(text, {1: w}), "simt-elementwise", [x], want)
    assert len(names(given)) == 1 and names(kernel) == names(given)
    assert [each.shape for each in kernel.launches.constants] == [w.shape]


def test_a_factor_of_one_number() -> None:
    """A splat that a product multiplies is in memory; one that is added stays in registers."""
    x, weights, _ = layers(40, [32, 48])
    weights = {1: np.full((32, 48), 3, BF16), 2: np.full(48, 2, F32)}
    text = with_constants(perceptron(40, [32, 48]), weights)
    want = (x.astype(float) @ weights[1].astype(float) + 2).astype(F32)
    kernel = held(text, "gemm", [x], want)
    assert [each.shape for each in kernel.launches.constants] == [(32, 48)]


def test_weights_of_any_numbers() -> None:
    """Random floats: the bound is that of the product of magnitudes."""
    generator = np.random.default_rng(0)
    w, b = generator.standard_normal((32, 48)), generator.standard_normal(48)
    text = with_constants(perceptron(40, [32, 48]), {1: w.astype(BF16), 2: b.astype(F32)})
    for inputs in ("integers", "random"):
        report = tcir.validate(text, "gemm", inputs=inputs)
        assert report.ok, str(report)
        if inputs == "random":
            assert "within bound" in {line.verdict for line in report.passes}


def test_of_constants_alone() -> None:
    """A program without an input has a launch that writes its result; one that is returned, too."""
    weights = layers(8, [16, 16])[1]
    text = """
    func.func @f(%w: tensor<16x16xbf16>, %b: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
      %z = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<16xf32>
      %i = linalg.fill ins(%z : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
      %s = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>,
                                            affine_map<(m, k) -> (m)>],
                           iterator_types = ["parallel", "reduction"]}
          ins(%w : tensor<16x16xbf16>) outs(%i : tensor<16xf32>) {
      ^bb0(%a: bf16, %o: f32):
        %c = arith.extf %a : bf16 to f32
        %d = arith.addf %o, %c : f32
        linalg.yield %d : f32
      } -> tensor<16xf32>
      return %s, %b : tensor<16xf32>, tensor<16xf32>
    }"""
    kernel = tcir.compile(
        with_constants(text, {0: weights[1], 1: weights[2]}), "simt-elementwise", validate=True
    )
    assert kernel.report.ok and not kernel.signature.inputs, str(kernel.report)
    sums, bias = np.zeros(16, F32), np.zeros(16, F32)
    kernel(sums, bias)
    assert (sums == weights[1].astype(F32).sum(1)).all() and (bias == weights[2]).all()


def test_a_program_whose_constants_are_arguments_already() -> None:
    """What tc-opt wrote behind the pass is compiled, executed and called as the program itself."""
    x, weights, want = layers(8, [16, 16])
    with mlir_context() as context:
        text = with_constants(perceptron(8, [16, 16]), weights)
        module = ir.Module.parse(text, context)
        ConstantsToArguments().apply(module)
        text = str(module)
        assert "tc.constants" in text
    kernel = tcir.compile(text, "matmul-warp", target="sm_90")
    assert [s.shape for s in kernel.signature.inputs] == [(8, 16)]
    out = np.zeros_like(want)
    kernel(x, out)
    assert (out == want).all()
    report = tcir.validate(text, ["fold-empty", "split-layers", "fuse-epilogue", "raise-to-tc"])
    assert report.ok, str(report)


def test_the_bound_of_a_signed_constant() -> None:
    """Magnitudes of constants count: their sums have a larger bound than the sums themselves."""
    w = np.where(np.arange(32 * 16) % 2, 1000.1, -1000.1).reshape(32, 16).T.copy().T
    w[1::2] *= -1
    text = with_constants(perceptron(8, [32, 16]), {1: w.astype(BF16), 2: np.full(16, 0.1, F32)})
    report = tcir.validate(text, "gemm", inputs="random")
    assert report.ok, str(report)


def test_a_wrong_packed_constant_is_caught_at_its_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """One element of the repacked weights is another one."""
    _, weights, _ = layers(40, [37, 24])
    text = with_constants(perceptron(40, [37, 24]), weights)
    execute = fold_constant_launches._execute

    def wrong(*arguments: Any) -> list[Any]:
        values = execute(*arguments)
        array = constant(values[0], values[0].type).copy()
        array[5, 11] += 1
        return [dense(array, values[0].type)]

    passes = ["constants-to-arguments", "split-layers", "fuse-epilogue", "raise-to-tc",
              "repack-gemm", "split-launches", "fold-constant-launches"]  # fmt: skip
    assert tcir.validate(text, passes).ok
    monkeypatch.setattr(fold_constant_launches, "_execute", wrong)
    report = tcir.validate(text, passes)
    different = [line.name for line in report.passes if line.verdict == "different"]
    assert different == ["fold-constant-launches"], str(report)


@pytest.mark.parametrize("pipeline", ["constants-to-arguments", "split-launches"])
def test_an_exchanged_constant_is_caught(pipeline: str) -> None:
    """Two weights of one shape change places in ``tc.constants``."""
    _, weights, _ = layers(32, [32, 32, 32])

    @dataclass(frozen=True)
    class Exchange(tcir.Pass):
        name: ClassVar[str] = "exchange"

        def run(self, module: ir.Module) -> None:
            attributes = module.operation.attributes
            first, bias, second, *rest = ir.ArrayAttr(attributes["tc.constants"])
            attributes["tc.constants"] = ir.ArrayAttr.get([second, bias, first, *rest])

    text = with_constants(perceptron(32, [32, 32, 32]), weights)
    before = ["constants-to-arguments"]
    if pipeline == "split-launches":
        before += ["split-layers", "fuse-epilogue", "raise-to-tc", "split-launches"]
    report = tcir.validate(text, [*before, Exchange()])
    assert [line.name for line in report.passes if line.verdict == "different"] == ["exchange"]


@pytest.mark.parametrize("after", ["constants-to-arguments", "cse", "reconcile-unrealized-casts"])
def test_a_byte_of_a_constant_is_changed(after: str) -> None:
    """At any level: where the instructions stay, too, the constants are compared."""

    @dataclass(frozen=True)
    class Change(tcir.Pass):
        name: ClassVar[str] = "change-a-byte"

        def run(self, module: ir.Module) -> None:
            (array,) = constant_arrays(module)
            changed = array.copy()
            changed.view(np.uint8)[3, 5] ^= 1
            with module.context:
                module.operation.attributes[CONSTANTS] = ir.ArrayAttr.get(
                    [dense(changed, constants_of(module)[0].type)]
                )

    table = np.arange(1, 49, dtype=np.float16).reshape(6, 8)
    text = f"""func.func @f(%x: tensor<6x8xf16>) -> tensor<6x8xf16> {{
      %t = arith.constant dense<{table.tolist()}> : tensor<6x8xf16>
      %y = arith.addf %x, %t : tensor<6x8xf16>
      return %y : tensor<6x8xf16>
    }}"""
    pipeline = tcir.named_pipeline("simt-elementwise")
    assert tcir.validate(text, pipeline).ok
    report = tcir.validate(text, pipeline.insert(Change(), after=after))
    failure = report.first_failure()
    assert failure is not None and failure.verdict == "different", str(report)
    assert (failure.name, failure.difference.index) == ("change-a-byte", (3, 2)), str(report)


@pytest.mark.parametrize("element", ["bf16", "f16", "f8E4M3FN", "f4E2M1FN", "i8", "i1", "f32"])
def test_attributes_keep_every_bit(element: str) -> None:
    """Few elements are printed as numbers, many in hexadecimal; NaN and infinities as bits."""
    types: dict[str, Any] = {"bf16": BF16, "f16": np.float16, "f32": F32, "i8": np.int8,
                             "f8E4M3FN": ml_dtypes.float8_e4m3fn, "i1": np.bool_,
                             "f4E2M1FN": ml_dtypes.float4_e2m1fn}  # fmt: skip
    dtype = np.dtype(types[element])
    generator = np.random.default_rng(0)
    for shape in ((3, 2), (20, 30)):
        bits = generator.integers(0, 256, (*shape, dtype.itemsize)).astype(np.uint8)
        bits &= {"f4E2M1FN": 15, "i1": 1}.get(element, 255)
        array = bits.view(dtype)[..., 0]
        if element in ("bf16", "f16", "f32"):
            array[0, :2] = np.nan, -np.inf
        with mlir_context() as context, ir.Location.unknown(context):
            kind = ir.Type.parse(f"tensor<{shape[0]}x{shape[1]}x{element}>")
            value = ir.Attribute.parse(str(dense(array, kind)))
            assert constant(value, kind).tobytes() == array.tobytes()
