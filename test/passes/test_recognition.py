"""raise-to-tc recognises contractions by maps and body, and nothing else."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import tcir
from tcir._mlir import ir
from tcir.errors import PassError
from tcir.passes.emit.diagnostics import SMALLEST_CONV, SMALLEST_MATMUL

from .linalg_programs import MULTIPLY_ADD, generic, lower, named, ops

DIMS = "(n, p, q, k, r, s, c)"
X = "(n, p + r, q + s, c)"
OUT = "(n, p, q, k)"
PARALLEL4 = ["parallel"] * 4 + ["reduction"] * 3
CONV_SHAPES = ["2x6x7x8", "3x2x8x16", "2x4x6x16"]
FHWC_SHAPES = ["2x6x7x8", "16x3x2x8", "2x4x6x16"]


def conv_generic(**changes: Any) -> str:
    """The generic form of an hwcf convolution."""
    maps = [f"{DIMS} -> {X}", f"{DIMS} -> (r, s, c, k)", f"{DIMS} -> {OUT}"]
    return generic(**({"maps": maps, "iterators": PARALLEL4, "types": CONV_SHAPES} | changes))


def raised(module: Any) -> Any:
    """The one tc op of the raised program."""
    (function,) = module.body.operations
    op, _ = list(function.regions[0].blocks[0])
    return op


def described(text: str) -> str:
    """The one tc op of the raised program, as text."""
    module = lower(text, "raise-to-tc")
    return str(raised(module))


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_generic_hwcf_equals_named(element: str) -> None:
    expected = described(named("conv_2d_nhwc_hwcf", CONV_SHAPES, element=element))
    assert described(conv_generic(elements=(element, element, "f32"))) == expected
    assert 'filter = "hwcf"' in expected


def test_generic_fhwc_equals_named() -> None:
    maps = [f"{DIMS} -> {X}", f"{DIMS} -> (k, r, s, c)", f"{DIMS} -> {OUT}"]
    expected = described(named("conv_2d_nhwc_fhwc", FHWC_SHAPES))
    assert described(conv_generic(maps=maps, types=FHWC_SHAPES)) == expected
    assert 'filter = "fhwc"' in expected


def test_loop_order_does_not_matter() -> None:
    names = ["c", "k", "s", "n", "q", "r", "p"]
    dims = f"({', '.join(names)})"
    iterators = ["reduction" if name in "rsc" else "parallel" for name in names]
    maps = [f"{dims} -> {X}", f"{dims} -> (r, s, c, k)", f"{dims} -> {OUT}"]
    expected = described(named("conv_2d_nhwc_hwcf", CONV_SHAPES))
    assert described(conv_generic(maps=maps, iterators=iterators)) == expected


def test_operand_order_does_not_matter() -> None:
    maps = [f"{DIMS} -> (r, s, c, k)", f"{DIMS} -> {X}", f"{DIMS} -> {OUT}"]
    shapes = [CONV_SHAPES[1], CONV_SHAPES[0], CONV_SHAPES[2]]
    module = lower(conv_generic(maps=maps, types=shapes), "raise-to-tc")
    assert [ir.BlockArgument(v).arg_number for v in raised(module).operands] == [1, 0]


def test_commuted_body() -> None:
    body = MULTIPLY_ADD.replace("%ea, %eb", "%eb, %ea").replace("%o, %m", "%m, %o")
    assert described(conv_generic(body=body)) == described(conv_generic())


def test_strides_and_dilations() -> None:
    maps = [
        f"{DIMS} -> (n, p * 2 + r * 3, s * 4 + q * 5, c)",
        f"{DIMS} -> (r, s, c, k)",
        f"{DIMS} -> {OUT}",
    ]
    types = ["2x13x15x8", "3x2x8x16", "2x4x3x16"]
    text = described(conv_generic(maps=maps, types=types))
    assert "strides = array<i64: 2, 5>" in text and "dilations = array<i64: 3, 4>" in text


@pytest.mark.parametrize(
    ("a", "b", "a_layout", "b_layout", "shapes"),
    [
        ("(m, k)", "(k, n)", "mk", "kn", ["16x24", "24x8"]),
        ("(k, m)", "(k, n)", "km", "kn", ["24x16", "24x8"]),
        ("(m, k)", "(n, k)", "mk", "nk", ["16x24", "8x24"]),
        ("(k, m)", "(n, k)", "km", "nk", ["24x16", "8x24"]),
    ],
)
@pytest.mark.parametrize("batch", [False, True])
def test_matmul_layouts(
    a: str, b: str, a_layout: str, b_layout: str, shapes: list[str], batch: bool
) -> None:
    lead, size = ("b, ", "3x") if batch else ("", "")
    for names in permutations((["b"] if batch else []) + ["m", "n", "k"]):
        dims = f"({', '.join(names)})"
        maps = [f"{dims} -> ({lead}{m[1:]}" for m in (a, b, "(m, n)")]
        iterators = ["reduction" if name == "k" else "parallel" for name in names]
        text = described(generic(maps, iterators, [size + s for s in (*shapes, "16x8")]))
        assert f'a_layout = "{a_layout}"' in text and f'b_layout = "{b_layout}"' in text


def test_named_matmuls() -> None:
    assert "tc.matmul" in described(named("matmul", ["16x24", "24x8", "16x8"]))
    assert "tc.matmul" in described(named("batch_matmul", ["2x16x24", "2x24x8", "2x16x8"]))


def refusal(text: str) -> str:
    """The message of the refusal, which must carry a location."""
    with pytest.raises(PassError) as caught:
        lower(text, "raise-to-tc")
    assert caught.value.location is not None and '-":' in str(caught.value.location)
    assert "smallest accepted example: func.func" in str(caught.value)
    return str(caught.value)


BODIES = {
    "maximum for addition": (
        MULTIPLY_ADD.replace("arith.addf", "arith.maximumf"),
        "yield arith.addf, got arith.maximumf",
    ),
    "subtraction": (
        MULTIPLY_ADD.replace("arith.addf", "arith.subf"),
        "yield arith.addf, got arith.subf",
    ),
    "sum for product": (MULTIPLY_ADD.replace("arith.mulf", "arith.addf"), "add arith.mulf"),
    "no accumulation": (MULTIPLY_ADD.replace("%o, %m", "%m, %m"), "add arith.mulf"),
    "product rounded before widening": (
        "%h = arith.mulf %a, %b : {t}\n%m = arith.extf %h : {t} to f32\n"
        "%s = arith.addf %o, %m : f32\nlinalg.yield %s : f32",
        "add arith.mulf",
    ),
    "square of one input": (
        MULTIPLY_ADD.replace("arith.extf %b", "arith.extf %a"),
        "one element of each input",
    ),
    "absolute value": (
        MULTIPLY_ADD.replace("%m = arith.mulf %ea", "%n = math.absf %ea : f32\n%m = arith.mulf %n"),
        "widened with arith.extf",
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_near_miss_in_the_body(name: str) -> None:
    body, expected = BODIES[name]
    assert expected in refusal(conv_generic(body=body))


MAPS = {
    "x not shifted by s": f"{DIMS} -> (n, p + r, q, c)",
    "x mirrored": f"{DIMS} -> (n, p - r + 2, q + s, c)",
    "x with an offset": f"{DIMS} -> (n, p + r + 1, q + s, c)",
}


@pytest.mark.parametrize("name", MAPS)
def test_near_miss_in_the_input_map(name: str) -> None:
    maps = [MAPS[name], f"{DIMS} -> (r, s, c, k)", f"{DIMS} -> {OUT}"]
    types = CONV_SHAPES
    if "not shifted" in name:
        types = ["2x6x6x8", *CONV_SHAPES[1:]]
    if "offset" in name:
        types = ["2x7x7x8", *CONV_SHAPES[1:]]
    assert "expected the indexing maps of" in refusal(conv_generic(maps=maps, types=types))


@pytest.mark.parametrize(
    ("x", "w", "types", "permutations"),
    [
        ("(n, p + s, q + r, c)", "(r, s, c, k)", ["9x9x9x9", "3x3x9x9", "9x7x7x9"], ["3, 1, 0, 2"]),
        ("(n, c, p + r, q + s)", "(r, s, c, k)", ["2x8x6x7", *CONV_SHAPES[1:]], ["0, 2, 3, 1"]),
        (X, "(s, r, c, k)", [CONV_SHAPES[0], "2x3x8x16", CONV_SHAPES[2]], ["3, 1, 0, 2"]),
    ],
)
def test_other_orders_are_repacked(
    x: str, w: str, types: list[str], permutations: list[str]
) -> None:
    maps = [f"{DIMS} -> {x}", f"{DIMS} -> {w}", f"{DIMS} -> {OUT}"]
    text = str(lower(conv_generic(maps=maps, types=types), "raise-to-tc"))
    assert text.count("tc.conv2d") == 1
    for each in permutations:
        assert (
            f'"tc.repack"(%arg{0 if each[0] == "0" else 1}) {{permutation = array<i64: {each}>}}'
            in text
        )


def test_sums_over_the_batch() -> None:
    text = str(lower(named("batch_reduce_matmul", ["2x8x8", "2x8x8", "8x8"]), "raise-to-tc"))
    assert '"tc.repack"(%arg0) {permutation = array<i64: 1, 0, 2>}' in text
    assert "(tensor<8x16xf16>, tensor<16x8xf16>) -> tensor<8x8xf32>" in text


def test_elements() -> None:
    f64 = conv_generic(
        elements=("f64", "f64", "f64"),
        body="%m = arith.mulf %a, %b : f64\n%s = arith.addf %o, %m : f64\nlinalg.yield %s : f64",
    )
    assert "got f64" in refusal(f64)
    f16 = conv_generic(
        elements=("f16", "f16", "f16"),
        body="%m = arith.mulf %a, %b : f16\n%s = arith.addf %o, %m : f16\nlinalg.yield %s : f16",
    )
    assert "expected an accumulator of f32 for inputs of f16, got f16" in refusal(f16)
    mixed = conv_generic(elements=("f16", "bf16", "f32")).replace("%b : f16", "%b : bf16")
    assert "got f16 and bf16" in refusal(mixed)


@pytest.mark.parametrize("value", ["1.0", "-0.0"])
def test_fill_must_be_positive_zero(value: str) -> None:
    assert "linalg.fill with 0.0" in refusal(conv_generic(fill=value))


def test_accumulator_must_be_filled() -> None:
    text = conv_generic().replace("outs(%acc", "outs(%init")
    assert (
        "expected an accumulator that is linalg.fill with 0.0, got a function argument"
        in refusal(text.replace("%acc = linalg.fill", "%unused = linalg.fill"))
    )


@pytest.mark.parametrize(
    ("op", "types", "hint", "way_out"),
    [
        ("conv_2d_nchw_fchw", ["1x8x6x6", "8x8x3x3", "1x8x4x4"], "channels last", "fold-layouts"),
        ("depthwise_conv_2d_nhwc_hwc", ["1x6x6x8", "3x3x8", "1x4x4x8"], "depthwise", "CUDA cores"),
        (
            "depthwise_conv_2d_nhwc_hwcm",
            ["1x6x6x8", "3x3x8x2", "1x4x4x8x2"],
            "one input channel",
            "CUDA",
        ),
        (
            "conv_2d_ngchw_fgchw",
            ["1x2x8x6x6", "8x2x8x3x3", "1x2x8x4x4"],
            "8 output channels",
            "CUDA cores",
        ),
        (
            "conv_2d_nhwgc_gfhwc",
            ["1x6x6x2x8", "2x8x3x3x8", "1x4x4x2x8"],
            "8 output channels",
            "CUDA cores",
        ),
        (
            "conv_2d_nhwgc_gfhwc",
            ["1x6x6x2x4", "2x16x3x3x4", "1x4x4x2x16"],
            "4 input channels",
            "CUDA",
        ),
        ("conv_3d_ndhwc_dhwcf", ["1x6x6x6x8", "3x3x3x8x8", "1x4x4x4x8"], "2 dimensions", "CUDA"),
    ],
)
def test_named_ops_outside(op: str, types: list[str], hint: str, way_out: str) -> None:
    said = refusal(named(op, types))
    assert hint in said and way_out in said
    if "conv_2d" in op:
        assert said.rstrip().endswith(SMALLEST_CONV)


def test_one_filter_without_a_dimension_outside() -> None:
    loops = "(n, p, q, r, s, c)"
    maps = [f"{loops} -> (n, p + r, q + s, c)", f"{loops} -> (r, s, c)", f"{loops} -> (n, p, q)"]
    kinds = ["parallel"] * 3 + ["reduction"] * 3
    said = refusal(generic(maps, kinds, ["1x6x6x8", "3x3x8", "1x4x4"]))
    assert "expected the indexing maps of a convolution" in said


def test_quantised_convolution_outside() -> None:
    said = refusal(
        "func.func @f(%x: tensor<1x4x4x16xi8>, %w: tensor<1x1x16x16xi8>, %zx: i32, %zw: i32, "
        "%acc: tensor<1x4x4x16xi32>) -> tensor<1x4x4x16xi32> {\n"
        "%y = linalg.conv_2d_nhwc_hwcf_q ins(%x, %w, %zx, %zw : tensor<1x4x4x16xi8>, "
        "tensor<1x1x16x16xi8>, i32, i32) outs(%acc : tensor<1x4x4x16xi32>) "
        "-> tensor<1x4x4x16xi32>\nreturn %y : tensor<1x4x4x16xi32>\n}"
    )
    assert "subtracts zero points" in said and "subtract them in an op before" in said
    assert said.rstrip().endswith(SMALLEST_CONV)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (["?x6x6x8", "3x3x8x8", "?x4x4x8"], "expected static shapes"),
        (["0x6x6x8", "3x3x8x8", "0x4x4x8"], "sizes of at least 1"),
        (["1x7x6x8", "3x3x8x8", "1x4x4x8"], "expected output size 5 in dimension 1"),
    ],
)
def test_shapes(shapes: list[str], expected: str) -> None:
    assert expected in refusal(named("conv_2d_nhwc_hwcf", shapes))


def test_two_contractions() -> None:
    text = named("matmul", ["8x8", "8x8", "8x8"]).replace(
        "  return %y",
        "  %z = linalg.matmul ins(%x, %w : tensor<8x8xf16>, tensor<8x8xf16>) "
        "outs(%y : tensor<8x8xf32>) -> tensor<8x8xf32>\n  return %z",
    )
    assert "exactly one contraction in a function, got 2" in refusal(text)


def test_other_ops_are_not_dropped() -> None:
    text = named("matmul", ["8x8", "8x8", "8x8"]).replace(
        "  return %y", "  %z = arith.negf %y : tensor<8x8xf32>\n  return %z"
    )
    assert "returned, or rounded with arith.truncf, got arith.negf" in refusal(text)
    text = named("matmul", ["8x8", "8x8", "8x8"]).replace(
        "  return %y", "  gpu.barrier\n  return %y"
    )
    assert "rounding of its result, got gpu.barrier" in refusal(text)


def test_unread_outs_argument_is_dropped() -> None:
    module = lower(named("matmul", ["8x8", "8x8", "8x8"]), "raise-to-tc")
    (function,) = module.body.operations
    assert len(function.regions[0].blocks[0].arguments) == 2
    assert len(ops(module, "tc.matmul")) == 1


@pytest.mark.parametrize(
    ("text", "tiling"),
    [
        (SMALLEST_CONV, "tile-conv-shift-reuse"),
        (SMALLEST_CONV, "tile-conv-implicit-gemm"),
        (SMALLEST_MATMUL, "tile-gemm"),
    ],
)
def test_smallest_accepted_example_is_accepted(text: str, tiling: str) -> None:
    passes = f"raise-to-tc,{tiling},multi-buffer,place-barriers,plan-memory,assign-roles"
    assert len(ops(lower(text, passes), "tc.role")) == 3


def test_an_op_without_indexing_maps_is_no_contraction() -> None:
    """A launch of it, of which CUDA cores have none, is an error."""
    program = Path(__file__).parents[2] / "examples" / "attention.mlir"
    with pytest.raises(PassError, match="expected linalg ops with indexing maps"):
        tcir.compile(program, "simt-elementwise")
