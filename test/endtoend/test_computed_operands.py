"""Weights of int8, fp8 and int4 that a product's kernel dequantises: one launch, the same bits."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import ir
from tcir.passmanager.remarks import remarks_to
from tcir.program.source import mlir_context

from .breaking import Broken, Edit, change_text, erase, pick, walk
from .weights_text import DTYPES, MAPS, Array, Weights, product

INT8 = Weights("i8", 96, 128)
GROUPS = Weights("i8", 96, 128, "f16", group=32)
INT4 = Weights("nibbles", 96, 128, "bf16", group=32, zeros=True)
FORMS = [
    INT8,
    GROUPS,
    replace(INT8, element="f16", zeros=True),
    Weights("f8E4M3FN", 96, 128),
    Weights("f8E4M3FN", 40, 64, "f16", group=32),
    Weights("i8", 40, 80, "f16"),
    Weights("nibbles", 40, 96, "bf16", group=32, zeros=True),
    Weights("f8E5M2", 96, 128, "f16"),
    INT4,
    Weights("nibbles", 72, 256, "f16", group=64),
    Weights("nibbles", 72, 256, "f16", group=128, zeros=True),
    Weights("words", 72, 128, "bf16", group=64, zeros=True),
    Weights("i8", 72, 64, "f32", group=32, zeros=True),
]
ROWS = (1, 8, 16, 128, 300)
"""Of the other operand: up to 16 the weights are A, their rows those of tiles; else B."""
TANH = """%et = tensor.empty() : tensor<{shape}xbf16>
%t = linalg.generic {{indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]}}
  ins(%y : tensor<{shape}xf32>) outs(%et : tensor<{shape}xbf16>) {{
^bb0(%sum: f32, %o: bf16):
  %th = math.tanh %sum : f32
  %r = arith.truncf %th : f32 to bf16
  linalg.yield %r : bf16
}} -> tensor<{shape}xbf16>"""


def activations(weights: Weights, m: int, seed: int = 1) -> Array:
    generator = np.random.default_rng(seed)
    return generator.standard_normal((m, weights.k)).astype(DTYPES[weights.element])


@pytest.mark.parametrize("m", ROWS)
@pytest.mark.parametrize("weights", FORMS, ids=str)
def test_the_kernel_dequantises(weights: Weights, m: int) -> None:
    """In no order a finding; the bits are those of a kernel that is given dequantised weights, and
    the error against f64 is that of its f32 sums."""
    kernel = tcir.compile(product(weights, m), "gemm")
    assert len(kernel.launches.launches) == 1
    assert kernel.launches.workspaces.sizes == ()
    a, arrays = activations(weights, m), weights.arrays(2)
    factors = weights.dequantised(arrays)
    given = tcir.compile(_plain(weights, m), "gemm").run(a, factors)
    for order in (None, *range(7)):
        out = np.zeros((m, weights.rows), np.float32)
        outcome = kernel(a, *arrays, out, order_seed=order)
        assert not outcome.findings, str(outcome.findings[0])
        np.testing.assert_array_equal(out, given, f"order {order}")
    wide = a.astype(np.float64), factors.astype(np.float64).T
    size = np.abs(wide[0]) @ np.abs(wide[1])
    most = 2.0**-9 if weights.element == "f32" else 2.0**-21
    assert (np.abs(given - wide[0] @ wide[1]) <= most * size).all()


def _plain(weights: Weights, m: int) -> str:
    """The product alone, of weights as an argument."""
    f = f"tensor<{weights.rows}x{weights.k}x{weights.element}>"
    return product(weights, m).replace(weights.text, "").replace(weights.arguments, f"%f: {f}")


EVERY = [
    ("sm_100a", INT4, 16),
    ("sm_100a", INT8, 300),
    ("sm_100a", GROUPS, 1),
    ("sm_100a", Weights("f8E4M3FN", 96, 128, "f16"), 16),
    ("sm_100a", Weights("words", 64, 128, "f16", group=64, zeros=True), 130),
    ("sm_90a", GROUPS, 16),
    ("sm_90a", INT4, 300),
    ("sm_90a", Weights("f8E4M3FN", 96, 128), 8),
]


@pytest.mark.parametrize(("target", "weights", "m"), EVERY)
def test_every_pass_is_executed_and_holds(target: str, weights: Weights, m: int) -> None:
    kernel = tcir.compile(product(weights, m), "gemm", target=target, validate=True, orders=3)
    kernel.report.check()
    assert [line.name for line in kernel.report.passes][-1] == "llvm-to-ptx"
    assert len(kernel.launches.launches) == 1
    small = "small numbers" in str(kernel.report)  # an i32 may be an index, and is drawn as one
    assert "full range" in str(kernel.report) and small == (weights.stored == "words")


OPTIONS: list[Any] = [
    (16, {"split_k": 2}),
    (16, {"stages": 1}),
    (300, {"persistent": True, "ctas": 2}),
    (300, {"scheduler": "clc", "persistent": True}),
    (136, {"store": "tma"}),
    (136, {"programmatic": True}),
    (136, {"swap": "always"}),
    (136, {"n_tile": 64}),
    (300, {"n_tile": 32, "stages": 2}),
]


@pytest.mark.parametrize(("m", "options"), OPTIONS, ids=str)
def test_with_other_options(m: int, options: dict[str, Any]) -> None:
    weights = replace(INT8, k=256)
    kernel = tcir.compile(product(weights, m), "gemm", **options)
    assert all("mulf" not in each.name for each in kernel.launches.launches)
    a, arrays = activations(weights, m), weights.arrays(2)
    given = tcir.compile(_plain(weights, m), "gemm", **options).run(a, weights.dequantised(arrays))
    np.testing.assert_array_equal(kernel.run(a, *arrays), given)


def test_with_an_epilogue() -> None:
    """Both the operand and the result are computed."""
    shape = f"20x{INT8.rows}"
    text = product(INT8, 20, TANH.format(shape=shape), "bf16")
    kernel = tcir.compile(text, "gemm", validate=True)
    kernel.report.check()
    assert len(kernel.launches.launches) == 1


def test_shapes_of_scales() -> None:
    """A scale of the whole matrix, and one for each 64 rows and 64 of k."""
    text = """#two = affine_map<(n, k) -> (n, k)>
    #one = affine_map<(n, k) -> ()>
    #four = affine_map<(n, m, g, k) -> (n, m, g, k)>
    #block = affine_map<(n, m, g, k) -> (n, g)>
    func.func @f(%a: tensor<24x128xbf16>, %w: tensor<128x128xi8>, %s: tensor<f32>,
                 %b: tensor<2x2xf32>) -> tensor<24x128xf32> {
      %w4 = tensor.expand_shape %w [[0, 1], [2, 3]] output_shape [2, 64, 2, 64]
          : tensor<128x128xi8> into tensor<2x64x2x64xi8>
      %e4 = tensor.empty() : tensor<2x64x2x64xf32>
      %f4 = linalg.generic {indexing_maps = [#four, #block, #four], iterator_types =
          ["parallel", "parallel", "parallel", "parallel"]} ins(%w4, %b : tensor<2x64x2x64xi8>,
          tensor<2x2xf32>) outs(%e4 : tensor<2x64x2x64xf32>) {
      ^bb0(%x: i8, %v: f32, %o: f32):
        %d = arith.uitofp %x : i8 to f32
        %m = arith.mulf %d, %v : f32
        linalg.yield %m : f32
      } -> tensor<2x64x2x64xf32>
      %f2 = tensor.collapse_shape %f4 [[0, 1], [2, 3]]
          : tensor<2x64x2x64xf32> into tensor<128x128xf32>
      %e2 = tensor.empty() : tensor<128x128xbf16>
      %f = linalg.generic {indexing_maps = [#two, #one, #two], iterator_types =
          ["parallel", "parallel"]} ins(%f2, %s : tensor<128x128xf32>, tensor<f32>)
          outs(%e2 : tensor<128x128xbf16>) {
      ^bb0(%x: f32, %v: f32, %o: bf16):
        %m = arith.mulf %x, %v : f32
        %t = arith.truncf %m : f32 to bf16
        linalg.yield %t : bf16
      } -> tensor<128x128xbf16>
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<24x128xf32>
      %i = linalg.fill ins(%zero : f32) outs(%e : tensor<24x128xf32>) -> tensor<24x128xf32>
      %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
        affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%a, %f : tensor<24x128xbf16>, tensor<128x128xbf16>)
        outs(%i : tensor<24x128xf32>) -> tensor<24x128xf32>
      return %y : tensor<24x128xf32>
    }"""
    kernel = tcir.compile(text, "gemm")
    assert len(kernel.launches.launches) == 1
    generator = np.random.default_rng(0)
    a = generator.standard_normal((24, 128)).astype(DTYPES["bf16"])
    w = generator.integers(-128, 128, (128, 128), dtype=np.int8)
    s, b = np.float32(0.25), generator.random((2, 2), np.float32)
    made = w.view(np.uint8).astype(np.float32) * np.repeat(np.repeat(b, 64, 0), 64, 1)
    factors = (made * s).astype(a.dtype).astype(np.float64)
    exact = a.astype(np.float64) @ factors.T
    size = np.abs(a.astype(np.float64)) @ np.abs(factors).T
    assert (np.abs(kernel.run(a, w, np.asarray(s), b) - exact) <= 2.0**-21 * size).all()


# --- what stays a launch --------------------------------------------------------------------


def _columns(unread: str) -> str:
    """The weights as ``[K, N]``, K outermost, a scale for each k, or none."""
    weights = Weights("i8", 128, 96)
    y = "tensor<16x96xf32>"
    return f"""{MAPS}func.func @f(%act: tensor<16x128xbf16>, {weights.arguments}) -> {y} {{
{weights.text.replace(f"%d, {unread}", "%d, %d") if unread else weights.text}
%zero = arith.constant 0.0 : f32
%e2 = tensor.empty() : {y}
%i = linalg.fill ins(%zero : f32) outs(%e2 : {y}) -> {y}
%y = linalg.matmul ins(%act, %f : tensor<16x128xbf16>, tensor<128x96xbf16>) outs(%i : {y}) -> {y}
return %y : {y}
}}"""


def _of_map(name: str) -> str:
    """Of a function that names a warp map."""
    attribute = f'xf32> attributes {{tc.warp_map = "{name}"}} {{\n'
    return product(INT8, 300).replace("xf32> {\n", attribute, 1)


STAYS: dict[str, tuple[str, dict[str, Any], str]] = {
    "K is no multiple of 16": (
        product(replace(INT8, k=72), 16), {}, "K to be a multiple of 16, got 72",
    ),
    "a row has too few bytes": (
        product(replace(INT4, k=32), 16), {}, "32, 64, 128 bytes of stored .* got 16",
    ),
    "groups are smaller than what a thread converts": (
        product(replace(INT8, group=8), 16), {}, "that share a scale to be a multiple of 16",
    ),
    "each k has a scale": (_columns(""), {}, "an element for every row and every k.* got 2"),
    "K is not innermost": (
        _columns("%v"), {}, "to be stored row by row with K innermost, got another",
    ),
    "the other operand has many rows": (
        product(INT8, 2049), {},
        "at most 16 tiles of 128 rows by which the operand is multiplied, got 17",
    ),
    "CTAs share tiles": (product(INT8, 300), {"cta_group": 2}, "cta-group=1"),
    "several warpgroups store": (product(INT8, 300), {"epilogue_warps": 8}, "epilogue-warps=4"),
    "numbers are as wide": (
        product(INT8, 16).replace("xi8", "xi16").replace(": i8", ": i16"), {},
        "narrower than the 1 elements of 16 bits",
    ),
    "an op has no rule": (
        product(INT8, 16).replace(
            "%m = arith.mulf %d", "%x2 = math.exp %d : bf16\n%m = arith.mulf %x2"
        ), {}, "expected arith ops to compute the operand of the product, got math.exp",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STAYS)
def test_what_stays_a_launch_is_said(name: str) -> None:
    text, options, message = STAYS[name]
    told: list[str] = []
    with remarks_to(lambda location, words: told.append(words)):
        kernel = tcir.compile(text, "gemm", **options)
    said = [words for words in told if "stays a launch" in words]
    assert len(said) == 1 and re.search(message, said[0]), told
    assert len(kernel.launches.launches) == 2


# --- breaks ---------------------------------------------------------------------------------


def _drop_zero_point(module: Any) -> None:
    op = pick(module, "arith.subi")
    op.results[0].replace_all_uses_with(op.operands[0])


def _next_group(module: Any) -> None:
    """The scale of the group behind: its index is one more, modulo the groups."""
    scales = [op for op in walk(module, "tc.load_rows") if "f16" in str(op.results[0].type)]
    (op,) = scales[:1]
    from tcir._mlir import arith

    with ir.InsertionPoint(op), op.location:
        one = arith.ConstantOp(ir.IndexType.get(), 1).result
        op.operands[2] = arith.XOrIOp(op.operands[2], one).result


def _swap_nibbles(module: Any) -> None:
    op = pick(module, "vector.interleave")
    first, second = op.operands
    op.operands[0], op.operands[1] = second, first


def _first_row_scales(module: Any) -> None:
    """All rows of a warp have the scale of its first."""
    for op in walk(module, "tc.load_rows"):
        del op.attributes["row_dim"]


def _unsigned(module: Any) -> None:
    """A byte without its sign."""
    op = pick(module, "arith.sitofp")
    with ir.InsertionPoint(op), op.location:
        new = ir.Operation.create("arith.uitofp", [op.results[0].type], [op.operands[0]])
    op.results[0].replace_all_uses_with(new.result)
    op.erase()


def _fence(module: Any) -> None:
    pick(module, "tc.fence", kind='"proxy.async"').erase()


def _arrive_first(module: Any) -> None:
    """The mma are told before the tile is there."""
    fence = pick(module, "tc.fence", kind='"proxy.async"')
    arrive = next(op for op in fence.block.operations if op.operation.name == "tc.mbarrier_arrive")
    arrive.operation.move_before(next(iter(fence.block.operations)).operation)


def _no_wait_for_ready(module: Any) -> None:
    """The mma do not wait for the computed tile, only for what TMA loads."""
    arrive = next(
        op
        for op in walk(module, "tc.mbarrier_arrive")
        if '"epilogue"' in str(op.attributes["tc.for_role"])
    )
    waits = [op for op in walk(module, "tc.mbarrier_wait") if op.operands[0] == arrive.operands[0]]
    (wait,) = waits
    wait.erase()


def _no_wait_for_full(module: Any) -> None:
    """The warps convert what TMA may not have loaded."""
    waits = [
        op
        for op in walk(module, "tc.mbarrier_wait")
        if '"epilogue"' in str(op.attributes["tc.for_role"])
    ]
    waits[0].erase()


BREAKS: dict[str, tuple[str, Edit]] = {
    "the zero point is left out": ("fuse-operands", _drop_zero_point),
    "low and high nibbles are exchanged": ("tile-gemm", _swap_nibbles),
    "the scale is that of another group": ("tile-gemm", _next_group),
    "the scale is that of another row": ("tile-gemm", _first_row_scales),
    "bytes lose their sign": ("fuse-operands", _unsigned),
    "the high nibble is the low one": (
        "fuse-operands",
        change_text(r"arith\.constant 4 : i8", "arith.constant 0 : i8"),
    ),
    "no fence between the proxies": ("place-barriers", _fence),
    "the mma are told too early": ("place-barriers", _arrive_first),
    "the mma do not wait for the tile": ("place-barriers", _no_wait_for_ready),
    "the warps do not wait for TMA": ("place-barriers", _no_wait_for_full),
    "the warps never arrive": ("place-barriers", erase("tc.mbarrier_arrive")),
}


@pytest.mark.parametrize("target", ["sm_100a", "sm_90a"])
@pytest.mark.parametrize("name", BREAKS)
def test_breaks_are_laid_to_their_pass(name: str, target: str) -> None:
    after, edit = BREAKS[name]
    weights = Weights("nibbles", 40, 256, "f16", group=32, zeros=True)
    pipeline = tcir.named_pipeline("gemm", stages=2)
    broken = pipeline.replace(after, Broken(pipeline.passes[pipeline.index(after)], edit))
    kernel = tcir.compile(product(weights, 24), broken, target=target, validate=True, orders=4)
    failure = kernel.report.first_failure()
    assert failure is not None, f"{name}: {kernel.report}"
    assert failure.name in (after, "assign-roles"), str(failure)


def test_an_op_is_followed_once_however_many_read_it() -> None:
    """48 squares of squares are 2^48 paths to one number."""
    squares = "\n".join(f"%m{n + 1} = arith.mulf %m{n}, %m{n} : f16" for n in range(48))
    text = f"""
#all = affine_map<(n, k) -> (n, k)>
module attributes {{tc.workspaces = array<i64: 24576>}} {{
  func.func @maker(%w: tensor<96x128xi8>) -> tensor<96x128xf16>
      attributes {{tc.args = array<i64: 1, 3>, tc.order = 0 : i64, tc.simt}} {{
    %e = tensor.empty() : tensor<96x128xf16>
    %f = linalg.generic {{indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}}
        ins(%w : tensor<96x128xi8>) outs(%e : tensor<96x128xf16>) {{
    ^bb0(%q: i8, %o: f16):
      %m0 = arith.sitofp %q : i8 to f16
      {squares}
      linalg.yield %m48 : f16
    }} -> tensor<96x128xf16>
    return %f : tensor<96x128xf16>
  }}
  func.func @product(%x: tensor<300x128xf16>, %f: tensor<96x128xf16>) -> tensor<300x96xf32>
      attributes {{tc.args = array<i64: 0, 3, 2>, tc.order = 1 : i64}} {{
    %y = "tc.matmul"(%x, %f) {{a_layout = "mk", b_layout = "nk"}}
        : (tensor<300x128xf16>, tensor<96x128xf16>) -> tensor<300x96xf32>
    return %y : tensor<300x96xf32>
  }}
}}"""
    with mlir_context():
        module = ir.Module.parse(text)
        tcir.Pipeline(["fuse-operands"]).run(module)
        assert len(module.body.operations) == 1


def test_no_scale_reaches_behind_the_end_of_k() -> None:
    """An infinite scale makes infinities of its row, as in numpy: behind K there are zeros."""
    weights = Weights("i8", 40, 80, "f16")
    a, (stored, scales) = np.abs(activations(weights, 24)), weights.arrays(0)
    scales[3], scales[7] = np.inf, np.nan
    stored[3] = 5
    got = tcir.compile(product(weights, 24), "gemm").run(a, stored, scales)
    assert (got[:, 3] == np.inf).all() and np.isnan(got[:, 7]).all()
    assert np.isfinite(np.delete(got, (3, 7), 1)).all()
