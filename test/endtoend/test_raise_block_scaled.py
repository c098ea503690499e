"""Raising contractions of block-scaled operands: what is recognised, its value, what is refused."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir import validate
from tcir.dialect import tc
from tcir.errors import PassError
from tcir.interp import tensor
from tcir.passes.analysis import blocked_scales
from tcir.passmanager.pipeline import Pipeline
from tcir.program.programs import find_programs
from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context

from .block_scaled_oracle import as_passed, inputs_of, product
from .block_scaled_text import F4, F6A, F6B, F8A, F8B, UE8M0, BlockScaled

MX = {"scale": UE8M0, "block": 32}
ACCEPTED = [
    BlockScaled(),
    BlockScaled(m=5, k=16),
    BlockScaled(batch=2, out="f16"),
    BlockScaled(n=8, out="bf16"),
    BlockScaled(batch=2, n=3),
    BlockScaled(split=True),
    BlockScaled(batch=2, n=3, split=True, swapped=True, order="n kb m l ki"),
    BlockScaled(swapped=True, order="k m"),
    BlockScaled(batch=2, swapped=True, order="k l m"),
    BlockScaled(batch=2, n=3, order="n k m l", alpha="in"),
    BlockScaled(alpha="after", out="f16"),
    BlockScaled(n=3, alpha="in", split=True, out="bf16"),
    BlockScaled(scale=UE8M0),
    BlockScaled(**MX),
    BlockScaled(a=F8A, b=F8B, n=4, scaling=True, **MX),
    BlockScaled(a=F6A, b=F6B, batch=3, **MX),
    BlockScaled(a=F4, b=F8A, scaling=True, swapped=True, **MX),
    BlockScaled(a=F6B, b=F4, n=2, split=True, **MX),
    BlockScaled(m=130, k=80, blocked="a3b1"),
    BlockScaled(m=33, k=144, blocked="b3"),
    BlockScaled(m=5, k=96, batch=2, n=3, blocked="a1", order="n k m l", alpha="in"),
    BlockScaled(m=5, k=96, batch=3, blocked="a2b3", swapped=True),
    BlockScaled(m=1, k=64, blocked="a1b3"),
    BlockScaled(m=1, k=64, n=1, blocked="a3b2"),
    BlockScaled(m=140, k=96, n=130, split=True, blocked="a2b3"),
    BlockScaled(m=140, k=160, a=F6B, b=F8A, blocked="b2a1", **MX),
]
CASES = [pytest.param(case, id=str(case)) for case in ACCEPTED]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("inputs", ["integers", "random"])
def test_same_value(case: BlockScaled, inputs: str) -> None:
    report = validate(case.linalg(), ["raise-block-scaled"], inputs=inputs, seed=3)  # type: ignore[arg-type]
    allowed = ("equal",) if inputs == "integers" else ("equal", "within bound")
    assert report.passes[-1].verdict in allowed, str(report)


@pytest.mark.parametrize("case", CASES)
def test_value_of_linalg_and_of_the_op(case: BlockScaled) -> None:
    """Against numpy, which knows neither."""
    arrays = inputs_of(case, seed=5)
    want = product(case, *arrays.values())
    texts = {case.linalg(): [o[0] for o in case.operands()], case.op(): ["a", "sa", "b", "sb"]}
    for text, names in texts.items():
        if case.alpha != "no":
            names = [n for n in names if n[0] != "g"] + ["ga", "gb"]
        with mlir_context() as context:
            module = load_module(text, context)
            specs = signature_of(module)
            passed = arrays if "tc.block" in text else as_passed(case, arrays)
            given = [passed[n].reshape(s.shape) for n, s in zip(names, specs.inputs, strict=True)]
            (got,) = tensor.run(module, "f", given, specs.outputs).outputs
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def test_attributes() -> None:
    with mlir_context() as context:
        module = load_module(BlockScaled(batch=2, n=3, split=True, **MX).linalg(), context)
        Pipeline.parse("builtin.module(raise-block-scaled)").run(module)
        ops = list(module.body.operations[0].regions[0].blocks[0].operations)
        found = [op for op in ops if isinstance(op, tc.BlockScaledMatmulOp)]
        assert len(found) == 1 and len(ops) == 4  # two collapses, the op, return
        assert found[0].block.value == 32 and found[0].a_global is None
        before = str(module)
        Pipeline.parse("builtin.module(raise-block-scaled)").run(module)
        assert str(module) == before


def test_dequantised_first() -> None:
    """A framework's form: operands made f32 by ops of their own. Upstream's fusion makes it one."""
    text = """
#mk = affine_map<(m, k) -> (m, k)>
#ms = affine_map<(m, k) -> (m, k floordiv 16)>
func.func @f(%a: tensor<8x32xf4E2M1FN>, %sa: tensor<8x2xf8E4M3FN>, %b: tensor<4x32xf4E2M1FN>,
    %sb: tensor<4x2xf8E4M3FN>) -> tensor<8x4xf32> {
  %ea = tensor.empty() : tensor<8x32xf32>
  %eb = tensor.empty() : tensor<4x32xf32>
  %ec = tensor.empty() : tensor<8x4xf32>
  %zero = arith.constant 0.0 : f32
  %wa = linalg.generic {indexing_maps = [#mk, #ms, #mk], iterator_types = ["parallel", "parallel"]}
      ins(%a, %sa : tensor<8x32xf4E2M1FN>, tensor<8x2xf8E4M3FN>) outs(%ea : tensor<8x32xf32>) {
    ^bb0(%x: f4E2M1FN, %s: f8E4M3FN, %o: f32):
      %0 = arith.extf %x : f4E2M1FN to f32
      %1 = arith.extf %s : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      linalg.yield %2 : f32
  } -> tensor<8x32xf32>
  %wb = linalg.generic {indexing_maps = [#mk, #ms, #mk], iterator_types = ["parallel", "parallel"]}
      ins(%b, %sb : tensor<4x32xf4E2M1FN>, tensor<4x2xf8E4M3FN>) outs(%eb : tensor<4x32xf32>) {
    ^bb0(%x: f4E2M1FN, %s: f8E4M3FN, %o: f32):
      %0 = arith.extf %x : f4E2M1FN to f32
      %1 = arith.extf %s : f8E4M3FN to f32
      %2 = arith.mulf %0, %1 : f32
      linalg.yield %2 : f32
  } -> tensor<4x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%ec : tensor<8x4xf32>) -> tensor<8x4xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
        affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
        iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%wa, %wb : tensor<8x32xf32>, tensor<4x32xf32>) outs(%i : tensor<8x4xf32>) {
    ^bb0(%x: f32, %y: f32, %s: f32):
      %0 = arith.mulf %x, %y : f32
      %1 = arith.addf %s, %0 : f32
      linalg.yield %1 : f32
  } -> tensor<8x4xf32>
  return %c : tensor<8x4xf32>
}"""
    with mlir_context() as context:
        module = load_module(text, context)
        passes = "linalg-fuse-elementwise-ops,canonicalize,raise-block-scaled"
        Pipeline.parse(f"builtin.module({passes})").run(module)
        assert str(module).count("tc.block_scaled_matmul") == 1


@pytest.mark.parametrize(
    "case",
    [
        BlockScaled(m=130, n=2, k=80, blocked="a1b3"),
        BlockScaled(m=7168, k=16384, blocked="a1b3"),
        BlockScaled(m=4096, k=7168, batch=8, blocked="a1b3", **MX),
    ],
    ids=str,
)
def test_layout_attributes(case: BlockScaled) -> None:
    """The image keeps its shape where it has that of the op, and is collapsed else."""
    with mlir_context() as context:
        module = load_module(case.linalg(), context)
        Pipeline.parse("builtin.module(raise-block-scaled)").run(module)
        ops = list(module.body.operations[0].regions[0].blocks[0].operations)
        assert [op.operation.name for op in ops] == [
            "tensor.collapse_shape",
            "tc.block_scaled_matmul",
            "func.return",
        ]
        layouts = (ops[1].a_scale_layout.value, ops[1].b_scale_layout.value)
        assert layouts == ("blocked_128x4", "blocked_128x4")


@pytest.mark.parametrize(
    ("case", "pipeline"),
    [
        (BlockScaled(m=3, k=32, split=True, blocked="a3b1"), "gemv-simt"),
        (BlockScaled(m=130, k=256, blocked="a3b2", split=True), "gemv-padded-n"),
        (BlockScaled(m=130, k=256, split=True), "gemv-padded-n"),
    ],
    ids=str,
)
def test_every_level_from_blocked_scales(case: BlockScaled, pipeline: str) -> None:
    """A launch has collapsed operands in its own shape; NaN in the padding is not read."""
    options = {"rows": 1} if pipeline == "gemv-simt" else {}
    kernel = tcir.compile(case.linalg(), pipeline, validate=True, **options)
    verdicts = {line.verdict for line in kernel.report.passes}
    assert verdicts == {"reference", "equal"}, str(kernel.report)
    assert len(kernel.launches.launches) == (1 if case.blocked else 2)
    arrays = inputs_of(case, seed=2)
    want = product(case, *arrays.values())
    passed = as_passed(case, arrays)
    specs = kernel.signature.inputs
    given = [a.reshape(spec.shape) for a, spec in zip(passed.values(), specs, strict=True)]
    out = np.zeros_like(want)
    kernel(*given, out)
    assert out.tobytes() == want.tobytes()


def test_a_wrong_layout_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that takes another order of the quarters for the layout."""
    text = BlockScaled(m=140, k=96, blocked="a3").linalg()
    wrong = text.replace("(m mod 128) floordiv 32", "3 - (m mod 128) floordiv 32")
    monkeypatch.setattr(blocked_scales, "is_layout", lambda *_: True)
    assert validate(text, ["raise-block-scaled"]).passes[-1].verdict == "equal"
    assert validate(wrong, ["raise-block-scaled"]).passes[-1].verdict == "different"


PLAIN = BlockScaled().linalg()
BLOCKED = BlockScaled(m=140, k=96, blocked="a3").linalg()
BATCHED = BlockScaled(batch=2, n=3).linalg()
REFUSED = {
    "scale over other rows": (
        BlockScaled(m=16, n=16).linalg().replace("(n, k floordiv 16)", "(m, k floordiv 16)"),
        "expected one tensor of scales, indexed by the rows, for each operand, got 2",
    ),
    "two block sizes": (
        BlockScaled(k=64).linalg().replace("(k floordiv 16)", "(k floordiv 32)")
        .replace("tensor<4xf8E4M3FN>", "tensor<2xf8E4M3FN>"),
        "expected one block size, and k divided into blocks in the same way in both operands",
    ),
    "a block of 64": (
        BlockScaled(block=64, scale=UE8M0).linalg(),
        "block must be 16 or 32 values of k to a scale, got 64",
    ),
    "ue4m3 with block 32": (
        BlockScaled(block=32).linalg(),
        "scales of type f8E4M3FN (ue4m3) must have block 16, got 32",
    ),
    "mixed formats with block 16": (
        BlockScaled(a=F4, b=F8A, scale=UE8M0, block=16).linalg(),
        "no kind of tcgen05.mma multiplies f4E2M1FN by f8E4M3FN",
    ),
    "k not a multiple of the block": (
        BlockScaled(k=64).linalg().replace("x64x", "x56x").replace("<64x", "<56x"),
        "a multiple of the block 16, got 56 and 56",
    ),
    "f16 elements": (
        PLAIN.replace("f4E2M1FN", "f16"),
        "expected elements of f4E2M1FN, f6E2M3FN",
    ),
    "scales of f16": (PLAIN.replace("f8E4M3FN", "f16"), "expected scales of f8E8M0FNU or f8E4M3FN"),
    "products in f16": (
        PLAIN.replace("%p0 = arith.mulf %wa, %wsa : f32", (
            "%h0 = arith.truncf %wa : f32 to f16 %h1 = arith.truncf %wsa : f32 to f16 "
            "%h = arith.mulf %h0, %h1 : f16 %p0 = arith.extf %h : f16 to f32"
        )),
        "expected products and conversions in f32, got arith.mulf of type f16",
    ),
    "a difference": (
        PLAIN.replace("arith.addf", "arith.subf"),
        "expected the body to yield the output element plus",
    ),
    "a factor twice": (
        PLAIN.replace("arith.mulf %p1, %wsb", "arith.mulf %p1, %wsa"),
        "as a factor exactly once, got [0, 1, 1, 2] factors",
    ),
    "scales rounded to powers of two": (
        BlockScaled(scaling=True).linalg(),
        "expected arith.scaling_extf by an f8E8M0FNU",
    ),
    "k first": (
        PLAIN.replace("-> (m, k)>", "-> (k, m)>").replace("16x64xf4", "64x16xf4"),
        "expected k to be the innermost dimension of every operand, as blocks of elements with one",
    ),
    "the result transposed": (
        BATCHED.replace("-> (l, m, n)>", "-> (l, n, m)>")
        .replace("2x16x3xf32", "2x3x16xf32"),
        "",  # B is then the operand with the first rows: accepted
    ),
    "batch last": (
        BATCHED.replace("-> (l, m, n)>", "-> (m, n, l)>").replace("2x16x3xf32", "16x3x2xf32"),
        "expected a product out[m, n] of a[m, k] and b[n, k]",
    ),
    "an accumulator of ones": (
        PLAIN.replace("arith.constant 0.0", "arith.constant 1.0"),
        "expected an accumulator that is linalg.fill with 0.0",
    ),
    "another op": (
        PLAIN.replace("return %y", "%n = arith.negf %y : tensor<16xf32> return %n"),
        "to be returned, or rounded with arith.truncf",
    ),
    "no contraction": (
        "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }",
        "expected exactly one contraction of block-scaled operands",
    ),
    **{
        f"scales {what}": (BLOCKED.replace(old, new), "or scales in blocks of 128 x 4")
        for what, old, new in (
            ("of quarters the other way round", "(m mod 128) floordiv 32",
             "3 - (m mod 128) floordiv 32"),
            ("of rows r, r + 4, …", "m mod 32, (m mod 128) floordiv 32",
             "(m mod 128) floordiv 4, m mod 4"),
            ("in blocks of 256 rows", "m floordiv 128", "m floordiv 256"),
            ("of half as many blocks of k", "(k floordiv 16) mod 4", "(k floordiv 32) mod 4"),
            ("one further", "(k floordiv 16) mod 4", "((k floordiv 16) + 1) mod 4"),
            ("that mix row and k", "m mod 32", "(m + k) mod 32"),
        )
    },
    "blocks that do not collapse": (
        BLOCKED.replace("tensor<2x2x32x4x4xf8E4M3FN>", "tensor<4x32x4x4xf8E4M3FN>").replace(
            "m floordiv 128, (k floordiv 16) floordiv 4,",
            "(m floordiv 128) * 2 + (k floordiv 16) floordiv 4,"),
        "expected scales in blocks of [2, 2, 512]",
    ),
    "a dynamic size": (
        PLAIN.replace("<16x64xf4", "<?x64xf4").replace("<16x4xf8", "<?x4xf8"),
        "expected static shapes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_near_misses(what: str) -> None:
    text, words = REFUSED[what]
    with mlir_context() as context:
        module = load_module(text, context)
        pipeline = Pipeline.parse("builtin.module(raise-block-scaled)")
        if not words:
            pipeline.run(module)
            return
        with pytest.raises(PassError, match=re.escape(words)) as caught:
            pipeline.run(module)
    assert "smallest accepted example: #a = affine_map" in str(caught.value)


def test_smallest_example_is_accepted() -> None:
    from tcir.passes.emit.diagnostics import SMALLEST_BLOCK_SCALED

    report = validate(SMALLEST_BLOCK_SCALED.replace("#", "\n#"), ["raise-block-scaled"])
    assert report.passes[-1].verdict == "equal", str(report)


def test_a_negative_ue4m3_scale_is_caught() -> None:
    """The op ignores the sign bit; a program that has one computes something else."""
    from tcir.validation.validator import begin

    with mlir_context() as context:
        module = load_module(PLAIN, context)
        validation = begin(module)
        draw = validation.main
        draw.inputs[1] = np.negative(draw.inputs[1])
        assert draw.inputs[1].dtype == ml_dtypes.float8_e4m3fn
        draw.reference = validation.runs.module(module, find_programs(module), draw).outputs
        Pipeline.parse("builtin.module(raise-block-scaled)").run(module)
        from tcir.validation.report import Line

        assert validation.check(module, Line(1, "raise")).verdict == "different"
