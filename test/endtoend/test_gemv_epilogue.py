"""Epilogues of the GEMV pipelines: through all levels, against numpy, and broken."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.passmanager.pipeline import as_pipeline
from tcir.program.memory_image import to_memory

from .block_scaled_oracle import inputs_of, product
from .block_scaled_text import F6A, F8A, UE8M0, BlockScaled
from .breaking import Edit, activation_first, change_operand, run_broken, walk
from .epilogue_text import TRUNCATE
from .gemv_epilogue_text import FusedScaled

_SILU = """
    %x = arith.mulf %s, %alpha : f32
    %u = arith.addf %x, %bias : f32
    %one = arith.constant 1.0 : f32
    %negative = arith.negf %u : f32
    %power = math.exp %negative : f32
    %d = arith.addf %one, %power : f32
    %t = arith.divf %u, %d : f32
    """
SILU = _SILU + TRUNCATE
SILU_F32 = _SILU + "linalg.yield %t : f32"
SILU_INPUTS = {"alpha": ("f32", ""), "bias": ("f32", "m")}
RESIDUAL = """
    %wide = arith.extf %r : f16 to f32
    %u = arith.addf %s, %wide : f32
    %v = arith.addf %u, %bias : f32
    %zero_ = arith.constant 0.0 : f32
    %t = arith.maximumf %v, %zero_ : f32
    """
RELU = """
    %u = arith.addf %s, %bias : f32
    %zero_ = arith.constant 0.0 : f32
    %t = arith.maximumf %u, %zero_ : f32
    """
TO_BF16 = """
    %half = arith.truncf %t : f32 to bf16
    linalg.yield %half : bf16
"""
TO_FP8 = """
    %wide = arith.extf %r : f8E5M2 to f32
    %u = arith.addf %s, %wide : f32
    %h = arith.truncf %u : f32 to f8E4M3FN
    linalg.yield %h : f8E4M3FN
"""
TO_I8 = """
    %u = arith.addf %s, %bias : f32
    %most = arith.constant 127.0 : f32
    %least = arith.constant -128.0 : f32
    %v = arith.minimumf %u, %most : f32
    %t = arith.maximumf %v, %least : f32
    %h = arith.fptosi %t : f32 to i8
    linalg.yield %h : i8
"""
MX: dict[str, Any] = {"scale": UE8M0, "block": 32}
VECTOR = FusedScaled(BlockScaled(m=3, k=64), SILU, SILU_INPUTS)
CASES = {
    "silu(alpha W x + bias)": VECTOR,
    "global scales, residual, f32": FusedScaled(
        BlockScaled(m=5, k=64, alpha="after"), RESIDUAL + "linalg.yield %t : f32",
        {"r": ("f16", "m"), "bias": ("f32", "m")}, out="f32",
    ),
    "scales in the sum, columns, bias of columns": FusedScaled(
        BlockScaled(m=5, k=64, n=3, alpha="in"), RESIDUAL + TO_BF16,
        {"r": ("f16", "mn"), "bias": ("f32", "n")}, out="bf16",
    ),
    "accumulator": FusedScaled(
        BlockScaled(m=5, k=64, n=2), "%t = arith.negf %s : f32" + TRUNCATE, start=True
    ),
    "batch of vectors": FusedScaled(
        BlockScaled(m=5, k=64, batch=3), RESIDUAL + TRUNCATE,
        {"r": ("f16", "lm"), "bias": ("f32", "m")},
    ),
    "batch of matrices, residual transposed": FusedScaled(
        BlockScaled(m=5, k=64, batch=2, n=2), RESIDUAL + TRUNCATE,
        {"r": ("f16", "nlm"), "bias": ("f32", "lm")},
    ),
    "fp8 of a residual of fp8": FusedScaled(
        BlockScaled(m=5, k=64), TO_FP8, {"r": ("f8E5M2", "m")}, out="f8E4M3FN"
    ),
    "columns of fp8, scales of fp8 by row": FusedScaled(
        BlockScaled(m=5, k=64, n=3),
        """
        %x = arith.extf %rows : f8E4M3FN to f32
        %u = arith.mulf %s, %x : f32
        %h = arith.truncf %u : f32 to f8E5M2
        linalg.yield %h : f8E5M2
        """,
        {"rows": ("f8E4M3FN", "m")}, out="f8E5M2",
    ),
    "i8": FusedScaled(BlockScaled(m=5, k=64, n=3), TO_I8, {"bias": ("f32", "n")}, out="i8"),
    "fp8": FusedScaled(
        BlockScaled(m=5, k=64, a=F8A, b=F8A, **MX), RELU + TRUNCATE, {"bias": ("f32", "m")}
    ),
}  # fmt: skip
TILES = FusedScaled(BlockScaled(m=130, k=512), SILU, SILU_INPUTS)
PADDED: dict[str, tuple[FusedScaled, str]] = {
    **{
        name: (replace(case, product=replace(case.product, k=256)), "stages=2")
        for name, case in CASES.items()
    },
    "two tiles, pad-n=8": (TILES, "stages=2 pad_n=8"),
    "20 columns": (
        FusedScaled(
            BlockScaled(m=130, k=256, n=20), RESIDUAL + TRUNCATE,
            {"r": ("f16", "mn"), "bias": ("f32", "n")},
        ),
        "stages=2 pad_n=32",
    ),
    "split-k": (TILES, "stages=2 schedule=split-k splits=2"),
    "split-k, columns": (
        FusedScaled(
            BlockScaled(m=130, k=512, n=3, alpha="after"), RESIDUAL + TRUNCATE,
            {"r": ("f16", "mn"), "bias": ("f32", "n")},
        ),
        "stages=2 schedule=split-k splits=2",
    ),
    "split-k, fp8": (
        FusedScaled(BlockScaled(m=130, k=512), TO_FP8, {"r": ("f8E5M2", "m")}, out="f8E4M3FN"),
        "stages=2 schedule=split-k splits=2",
    ),
    "split-k, i8": (
        FusedScaled(BlockScaled(m=130, k=512), TO_I8, {"bias": ("f32", "m")}, out="i8"),
        "stages=2 schedule=split-k splits=2",
    ),
    "stream-k, batch": (
        FusedScaled(
            BlockScaled(m=130, k=512, batch=2), RESIDUAL + TRUNCATE,
            {"r": ("f16", "lm"), "bias": ("f32", "m")}, start=True,
        ),
        "stages=2 schedule=stream-k",
    ),
    "fp6": (
        FusedScaled(
            BlockScaled(m=20, k=128, a=F6A, b=F6A, **MX), RELU + TRUNCATE, {"bias": ("f32", "m")}
        ),
        "stages=2",
    ),
}  # fmt: skip


@cache
def _pipeline(name: str, options: str) -> tcir.Pipeline:
    return as_pipeline(name, **dict(word.split("=") for word in options.split()))


def _held(case: FusedScaled, pipeline: tcir.Pipeline, orders: int = 1) -> None:
    report = tcir.validate(case.linalg(), pipeline, orders=orders)
    assert {line.verdict for line in report.passes} <= {"reference", "equal"}, str(report)
    assert not any(line.findings for line in report.passes)


@pytest.mark.parametrize(
    "name",
    CASES,
)
def test_simt_is_equal_at_every_level(name: str) -> None:
    _held(CASES[name], _pipeline("gemv-simt", "rows=2 warps=1"))


@pytest.mark.parametrize("name", PADDED)
def test_padded_is_equal_at_every_level(name: str, orders: int) -> None:
    case, options = PADDED[name]
    _held(case, _pipeline("gemv-padded-n", options), orders)


@pytest.mark.parametrize("inputs", ["random", "integers"])
@pytest.mark.parametrize(
    ("pipeline", "options"),
    [
        ("gemv-simt", ""),
        ("gemv-padded-n", "stages=2"),
        ("gemv-padded-n", "stages=2 schedule=split-k splits=2"),
    ],
)
def test_functions_are_within_their_bound(pipeline: str, options: str, inputs: Any) -> None:
    m, k = (60, 64) if pipeline == "gemv-simt" else (130, 512)
    case = FusedScaled(BlockScaled(m=m, k=k), SILU_F32, SILU_INPUTS, out="f32")
    report = tcir.validate(case.linalg(), _pipeline(pipeline, options), inputs=inputs)
    assert report.ok, str(report)
    assert report["llvm-to-ptx"].verdict == "within bound", str(report)


@pytest.mark.parametrize("pipeline", ["gemv-simt", "gemv-padded-n"])
def test_against_numpy(pipeline: str) -> None:
    scaled = BlockScaled(m=7, k=256)
    case = FusedScaled(scaled, RESIDUAL + TRUNCATE, {"r": ("f16", "m"), "bias": ("f32", "m")})
    kernel = tcir.compile(case.linalg(), pipeline)
    given = inputs_of(scaled, seed=3)
    draw = np.random.default_rng(0)
    bias = draw.integers(-9, 10, 7).astype(np.float32)
    residual = draw.integers(-9, 10, 7).astype(np.float16)
    out = np.zeros(7, np.float16)
    kernel(*map(to_memory, given.values()), residual, bias, out)
    sums = product(scaled, **given)
    want = np.maximum(sums + residual.astype(np.float32) + bias, 0).astype(np.float16)
    assert (out == want).all() and want.any()


@pytest.mark.parametrize("pipeline", ["gemv-simt", "gemv-padded-n"])
def test_fp8_against_ml_dtypes(pipeline: str) -> None:
    """A sum beyond 464 is NaN, as ml_dtypes has it."""
    scaled = BlockScaled(m=37, k=256)
    kernel = tcir.compile(
        FusedScaled(scaled, TO_FP8, {"r": ("f8E5M2", "m")}, out="f8E4M3FN").linalg(), pipeline
    )
    given = inputs_of(scaled, seed=3)
    residual = np.random.default_rng(0).standard_normal(37).astype(ml_dtypes.float8_e5m2)
    out = np.zeros(37, ml_dtypes.float8_e4m3fn)
    kernel(*given.values(), residual, out)
    want = (product(scaled, **given) + residual.astype(np.float32)).astype(out.dtype)
    assert out.tobytes() == want.tobytes()
    assert np.isnan(want.astype(np.float32)).any() and np.isfinite(want.astype(np.float32)).any()


# --- breaks ------------------------------------------------------------------------------------

BIASED = FusedScaled(
    BlockScaled(m=130, k=512), RELU + "linalg.yield %t : f32", {"bias": ("f32", "m")}, out="f32"
)
FEW = FusedScaled(
    BlockScaled(m=5, k=64), RELU + "linalg.yield %t : f32", {"bias": ("f32", "m")}, out="f32"
)
TILE, SIMT = "tile-gemv-padded-n", "convert-to-simt"
SINGLE, PARTS = "stages=2 schedule=single", "stages=2 schedule=split-k splits=2"


def _plus(amount: int) -> Any:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


def _biased_sum(module: Any) -> tuple[Any, Any]:
    """relu and, before it, the addition of the bias."""
    relu = next(op for op in walk(module, "arith.maximumf"))
    return relu, relu.operands[0].owner


def _of_the_next_row(module: Any) -> None:
    """The bias of the row below."""
    _, add = _biased_sum(module)
    place = add.operands[1].owner.operands[0].owner
    with ir.InsertionPoint(place), place.location:
        place.operands[1] = _plus(-4)(place.operands[1])


def _each_part(module: Any) -> None:
    """Every part has the bias and the activation, and then they are added up."""
    relu, add = _biased_sum(module)
    total, bias = add.operands
    sums = total.owner.operation
    block = sums.block
    ops = [each.operation for each in block]
    wanted, pending = [relu.operands[1].owner.operation], [bias]
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, ir.Block) and owner.operation not in wanted:
            wanted.append(owner.operation)
            pending += owner.operation.operands
    for op in ops[ops.index(sums) :]:
        if op in wanted:
            op.move_before(sums)
    inner = next(op for op in sums.regions[0].blocks[0] if op.operation.name == "arith.addf")
    with ir.InsertionPoint(inner), inner.location:
        part = arith.maximumf(arith.addf(inner.operands[1], bias), relu.operands[1])
    inner.operation.operands[1] = part
    relu.results[0].replace_all_uses_with(total)


def _scale_last(module: Any) -> None:
    """alpha (sum + bias)."""
    multiply = next(
        op
        for op in walk(module, "arith.mulf")
        if any(use.owner.name == "arith.addf" for use in op.results[0].uses)
    )
    add = next(use.owner for use in multiply.results[0].uses if use.owner.name == "arith.addf")
    for use in list(add.results[0].uses):
        use.owner.operands[use.operand_number] = multiply.results[0]
    add.operands[0], multiply.operands[0] = multiply.operands[0], add.results[0]
    multiply.move_after(add)


def _no_activation(module: Any) -> None:
    relu, add = _biased_sum(module)
    relu.results[0].replace_all_uses_with(add.results[0])


BREAKS: list[tuple[str, str, str, str, FusedScaled, Edit]] = [
    ("activation on the wrong side", "gemv-simt", "", "fuse-epilogue", FEW, activation_first),
    ("activation on the wrong side", "gemv-simt", "", SIMT, FEW, activation_first),
    ("bias of another row", "gemv-simt", "", SIMT, FEW, _of_the_next_row),
    ("no activation", "gemv-simt", "", "cse", FEW, _no_activation),
    ("alpha behind the bias", "gemv-simt", "", "raise-block-scaled", VECTOR, _scale_last),
    ("bias of another row", "gemv-padded-n", SINGLE, TILE, BIASED,
     change_operand("tc.load_rows", 1, _plus(1))),
    ("activation on the wrong side", "gemv-padded-n", SINGLE, TILE, BIASED, activation_first),
    ("bias of other lanes", "gemv-padded-n", SINGLE, "assign-roles", BIASED,
     change_operand("tc.load_rows", 1, _plus(32))),
    ("bias and activation of each part", "gemv-padded-n", PARTS, TILE, BIASED, _each_part),
    ("bias of another row", "gemv-padded-n", PARTS, TILE, BIASED, _of_the_next_row),
    ("alpha behind the bias", "gemv-padded-n", PARTS, TILE, TILES, _scale_last),
]  # fmt: skip


@pytest.mark.parametrize(
    ("pipeline", "options", "at", "case", "edit"),
    [
        pytest.param(pipeline, options, at, case, edit, id=f"{pipeline} {options} {at}: {what}")
        for what, pipeline, options, at, case, edit in BREAKS
    ],
)
def test_break(pipeline: str, options: str, at: str, case: FusedScaled, edit: Edit) -> None:
    caught = run_broken(case.linalg(), _pipeline(pipeline, options), at, edit, orders=1)
    assert caught, "nothing noticed the break"
    assert caught.at == at, caught.text
