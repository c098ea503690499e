"""Whole-tensor rules against numpy and scipy."""

# ruff: noqa: E501  (lines of MLIR)

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.errors import InputError
from tcir.interp import Outcome, OutputSpec
from tcir.interp.tensor import evaluate
from tcir.interp.tensor import run as execute

DTYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i32": np.int32,
    "index": np.int64,
}


def tensor(shape: Any, element: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def run(
    text: str, inputs: list[Any], *outputs: tuple[tuple[int, ...], str], name: str = "f"
) -> Outcome:
    context = ir.Context()
    with context:
        tc.load(context)
        module = ir.Module.parse(text)
    return execute(module, name, inputs, [OutputSpec(s, np.dtype(DTYPES[e])) for s, e in outputs])


def integers(shape: Any, element: str, seed: int = 0, low: int = -5, high: int = 5) -> Any:
    values = np.random.default_rng(seed).integers(low, high, shape)
    values[values == 0] = high  # no product vanishes by chance
    return values.astype(DTYPES[element])


def correlate(x: Any, w: Any, stride: tuple[int, int], dilation: tuple[int, int]) -> Any:
    """scipy's correlation per image and channel pair; w is [r, s, c, k]."""
    import scipy.signal  # takes a second, which each worker would need to collect this file

    r, s, c, k = w.shape
    spread = np.zeros(((r - 1) * dilation[0] + 1, (s - 1) * dilation[1] + 1, c, k))
    spread[:: dilation[0], :: dilation[1]] = w
    planes = [
        [
            sum(
                scipy.signal.correlate(
                    image[..., i].astype(float), spread[..., i, j], "valid", "direct"
                )
                for i in range(c)
            )
            for j in range(k)
        ]
        for image in x
    ]
    return np.array(planes).transpose(0, 2, 3, 1)[:, :: stride[0], :: stride[1]]


CONV = """
func.func @f(%x: {x}, %w: {w}) -> {out} {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : {out}
  %i = linalg.fill ins(%z : f32) outs(%e : {out}) -> {out}
  %r = {op} ins(%x, %w : {x}, {w}) outs(%i : {out}) -> {out}
  return %r : {out}
}}"""

NAMED = "linalg.conv_2d_nhwc_{f} {{dilations = dense<{d}> : vector<2xi64>, strides = dense<{s}> : vector<2xi64>}}"

GENERIC = """linalg.generic {{
    indexing_maps = [affine_map<(n,p,q,k,r,s,c) -> (n, p*{s[0]}+r*{d[0]}, q*{s[1]}+s*{d[1]}, c)>,
                     affine_map<(n,p,q,k,r,s,c) -> ({w})>, affine_map<(n,p,q,k,r,s,c) -> (n,p,q,k)>],
    iterator_types = ["parallel","parallel","parallel","parallel","reduction","reduction","reduction"]}}"""

BODY = """ {{ ^bb0(%a: {t}, %b: {t}, %o: f32):
    %1 = arith.extf %a : {t} to f32
    %2 = arith.extf %b : {t} to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf {sum} : f32
    linalg.yield %4 : f32 }}"""


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 2),
    p=st.integers(1, 4),
    q=st.integers(1, 4),
    k=st.integers(1, 3),
    r=st.integers(1, 3),
    s=st.integers(1, 3),
    c=st.integers(1, 3),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    filter=st.sampled_from(["hwcf", "fhwc"]),
    element=st.sampled_from(["f16", "bf16"]),
    form=st.sampled_from(["named", "generic", "generic swapped"]),
)
def test_convolution_equals_scipy(n, p, q, k, r, s, c, stride, dilation, filter, element, form):
    h = (p - 1) * stride[0] + (r - 1) * dilation[0] + 1
    w = (q - 1) * stride[1] + (s - 1) * dilation[1] + 1
    x, weights = integers((n, h, w, c), element), integers((r, s, c, k), element, 1)
    given_w = weights if filter == "hwcf" else np.ascontiguousarray(weights.transpose(3, 0, 1, 2))
    types = {
        "x": tensor(x.shape, element),
        "w": tensor(given_w.shape, element),
        "out": tensor((n, p, q, k), "f32"),
    }
    if form == "named":
        text = CONV.format(op=NAMED.format(f=filter, d=list(dilation), s=list(stride)), **types)
    else:
        total = "%o, %3" if form == "generic" else "%3, %o"
        indices = "r,s,c,k" if filter == "hwcf" else "k,r,s,c"
        op = GENERIC.format(w=indices, s=stride, d=dilation)
        text = CONV.format(op=op, **types).replace(
            f"-> {types['out']}\n  return",
            BODY.format(t=element, sum=total).replace("{{", "{").replace("}}", "}")
            + f" -> {types['out']}\n  return",
        )
    outcome = run(text, [x, given_w], ((n, p, q, k), "f32"))
    assert not outcome.incomplete
    np.testing.assert_array_equal(outcome.outputs[0], correlate(x, weights, stride, dilation))


@settings(max_examples=25, deadline=None)
@given(
    m=st.integers(1, 9),
    n=st.integers(1, 9),
    k=st.integers(1, 9),
    batch=st.sampled_from([None, 1, 3]),
    a_layout=st.sampled_from(["mk", "km"]),
    b_layout=st.sampled_from(["kn", "nk"]),
    out=st.sampled_from(["f32", "f16", "bf16"]),
)
def test_tc_matmul_equals_numpy(m, n, k, batch, a_layout, b_layout, out):
    sizes = {"m": m, "n": n, "k": k}
    lead = () if batch is None else (batch,)
    a = integers(lead + tuple(sizes[c] for c in a_layout), "f16")
    b = integers(lead + tuple(sizes[c] for c in b_layout), "f16", 1)
    type_ = tensor((*lead, m, n), out)
    text = f"""func.func @f(%a: {tensor(a.shape, "f16")}, %b: {tensor(b.shape, "f16")}) -> {type_} {{
      %r = "tc.matmul"(%a, %b) {{a_layout = "{a_layout}", b_layout = "{b_layout}"}}
        : ({tensor(a.shape, "f16")}, {tensor(b.shape, "f16")}) -> {type_}
      return %r : {type_} }}"""
    outcome = run(text, [a, b], ((*lead, m, n), out))
    left = a if a_layout == "mk" else a.swapaxes(-1, -2)
    right = b if b_layout == "kn" else b.swapaxes(-1, -2)
    expected = (left.astype(float) @ right.astype(float)).astype(DTYPES[out])
    np.testing.assert_array_equal(outcome.outputs[0], expected)


@settings(max_examples=20, deadline=None)
@given(
    stride=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    pads=st.tuples(*[st.integers(0, 2)] * 4),
    filter=st.sampled_from(["hwcf", "fhwc"]),
)
def test_tc_conv2d_equals_scipy_on_the_padded_input(stride, dilation, pads, filter):
    top, bottom, left, right = pads
    x, w = integers((2, 7, 8, 3), "f16"), integers((2, 3, 3, 4), "f16", 1)
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    expected = correlate(padded, w, stride, dilation)
    given_w = w if filter == "hwcf" else np.ascontiguousarray(w.transpose(3, 0, 1, 2))
    text = f"""func.func @f(%x: {tensor(x.shape, "f16")}, %w: {tensor(given_w.shape, "f16")}) -> {tensor(expected.shape, "f32")} {{
      %r = "tc.conv2d"(%x, %w) {{strides = array<i64: {stride[0]}, {stride[1]}>, dilations = array<i64: {dilation[0]}, {dilation[1]}>,
        pads = array<i64: {top}, {bottom}, {left}, {right}>, filter = "{filter}"}}
        : ({tensor(x.shape, "f16")}, {tensor(given_w.shape, "f16")}) -> {tensor(expected.shape, "f32")}
      return %r : {tensor(expected.shape, "f32")} }}"""
    outcome = run(text, [x, given_w], (expected.shape, "f32"))
    np.testing.assert_array_equal(outcome.outputs[0], expected)


@pytest.mark.parametrize(
    ("op", "shapes", "formula"),
    [
        ("matmul", [(3, 4), (4, 5)], "mk,kn->mn"),
        ("batch_matmul", [(2, 3, 4), (2, 4, 5)], "bmk,bkn->bmn"),
        ("matvec", [(3, 4), (4,)], "mk,k->m"),
        ("dot", [(4,), (4,)], "k,k->"),
    ],
)
def test_named_contractions_accumulate_onto_their_output(op, shapes, formula):
    a, b = integers(shapes[0], "f32"), integers(shapes[1], "f32", 1)
    expected = np.einsum(formula, a, b)
    start = integers(expected.shape, "f32", 2)
    ta, tb, to = (tensor(v.shape, "f32") for v in (a, b, start))
    text = f"""func.func @f(%a: {ta}, %b: {tb}, %o: {to}) -> {to} {{
      %r = linalg.{op} ins(%a, %b : {ta}, {tb}) outs(%o : {to}) -> {to}
      return %r : {to} }}"""
    before = start.copy()
    outcome = run(text, [a, b, start], (expected.shape, "f32"))
    np.testing.assert_array_equal(outcome.outputs[0], expected + start)
    np.testing.assert_array_equal(start, before)


def test_transposed_matmul_by_indexing_maps():
    a, b = integers((4, 3), "f16"), integers((5, 4), "f16", 1)
    text = """
    #a = affine_map<(m,n,k) -> (k,m)>
    #b = affine_map<(m,n,k) -> (n,k)>
    #c = affine_map<(m,n,k) -> (m,n)>
    func.func @f(%a: tensor<4x3xf16>, %b: tensor<5x4xf16>) -> tensor<3x5xf32> {
      %z = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<3x5xf32>
      %i = linalg.fill ins(%z : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
      %r = linalg.matmul indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<4x3xf16>, tensor<5x4xf16>)
        outs(%i : tensor<3x5xf32>) -> tensor<3x5xf32>
      return %r : tensor<3x5xf32> }"""
    outcome = run(text, [a, b], ((3, 5), "f32"))
    np.testing.assert_array_equal(outcome.outputs[0], a.astype(float).T @ b.astype(float).T)


def test_integer_contraction_extends_by_sign_and_wraps():
    a, b = integers((3, 40), "i8", low=-128, high=127), integers((40, 2), "i8", 1, -128, 127)
    text = """func.func @f(%a: tensor<3x40xi8>, %b: tensor<40x2xi8>, %o: tensor<3x2xi32>) -> tensor<3x2xi32> {
      %r = linalg.generic {indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>],
        iterator_types = ["parallel","parallel","reduction"]} ins(%a, %b : tensor<3x40xi8>, tensor<40x2xi8>) outs(%o : tensor<3x2xi32>) {
        ^bb0(%x: i8, %y: i8, %s: i32):
          %1 = arith.extsi %x : i8 to i32
          %2 = arith.extui %y : i8 to i32
          %3 = arith.muli %1, %2 : i32
          %4 = arith.addi %s, %3 : i32
          linalg.yield %4 : i32 } -> tensor<3x2xi32>
      return %r : tensor<3x2xi32> }"""
    start = np.full((3, 2), 2**31 - 1, np.int32)
    expected = start.astype(np.int64) + a.astype(np.int64) @ b.view(np.uint8).astype(np.int64)
    outcome = run(text, [a, b, start], ((3, 2), "i32"))
    np.testing.assert_array_equal(outcome.outputs[0], expected.astype(np.int32))


def test_reduction_with_another_body_goes_point_by_point():
    x = integers((3, 4, 5), "f32")
    text = """func.func @f(%x: tensor<3x4x5xf32>, %o: tensor<5x3xf32>) -> tensor<5x3xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(a,b,c)->(a,b,c)>, affine_map<(a,b,c)->(c,a)>],
        iterator_types = ["parallel","reduction","parallel"]} ins(%x : tensor<3x4x5xf32>) outs(%o : tensor<5x3xf32>) {
        ^bb0(%v: f32, %s: f32):
          %i = linalg.index 1 : index
          %j = arith.index_cast %i : index to i32
          %k = arith.sitofp %j : i32 to f32
          %w = arith.mulf %v, %k : f32
          %m = arith.maximumf %s, %w : f32
          linalg.yield %m : f32 } -> tensor<5x3xf32>
      return %r : tensor<5x3xf32> }"""
    start = np.full((5, 3), -3, np.float32)
    expected = np.maximum((x * np.arange(4)[:, None]).max(axis=1).T, start)
    outcome = run(text, [x, start], ((5, 3), "f32"))
    np.testing.assert_array_equal(outcome.outputs[0], expected)


def test_pooling_window():
    x = integers((1, 5, 5, 2), "f32")
    text = """func.func @f(%x: tensor<1x5x5x2xf32>, %w: tensor<2x2xf32>, %o: tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32> {
      %r = linalg.pooling_nhwc_max {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
        ins(%x, %w : tensor<1x5x5x2xf32>, tensor<2x2xf32>) outs(%o : tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32>
      return %r : tensor<1x4x4x2xf32> }"""
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (1, 2))
    outcome = run(
        text,
        [x, np.zeros((2, 2), np.float32), np.full((1, 4, 4, 2), -99, np.float32)],
        ((1, 4, 4, 2), "f32"),
    )
    np.testing.assert_array_equal(outcome.outputs[0], windows.max(axis=(-1, -2)))


@settings(max_examples=20, deadline=None)
@given(low=st.tuples(*[st.integers(0, 3)] * 2), high=st.tuples(*[st.integers(0, 3)] * 2))
def test_pad(low, high):
    x = integers((3, 4), "f16")
    shape = (3 + low[0] + high[0], 4 + low[1] + high[1])
    text = f"""func.func @f(%x: tensor<3x4xf16>) -> {tensor(shape, "f16")} {{
      %z = arith.constant 7.0 : f16
      %p = tensor.pad %x low[{low[0]}, {low[1]}] high[{high[0]}, {high[1]}] {{ ^bb0(%i: index, %j: index):
        tensor.yield %z : f16 }} : tensor<3x4xf16> to {tensor(shape, "f16")}
      return %p : {tensor(shape, "f16")} }}"""
    outcome = run(text, [x], (shape, "f16"))
    np.testing.assert_array_equal(
        outcome.outputs[0], np.pad(x, list(zip(low, high)), constant_values=7)
    )


def test_slices_reshapes_and_calls():
    x = integers((4, 6), "f32")
    text = """
    func.func private @twice(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %c = arith.constant dense<2.0> : tensor<2x3xf32>
      %r = arith.mulf %x, %c : tensor<2x3xf32>
      return %r : tensor<2x3xf32>
    }
    func.func @f(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<3xf32>, tensor<24xf32>) {
      %one = arith.constant 1 : index
      %s = tensor.extract_slice %x[%one, 0] [2, 3] [1, 2] : tensor<4x6xf32> to tensor<2x3xf32>
      %t = func.call @twice(%s) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      %i = tensor.insert_slice %t into %x[0, 3] [2, 3] [2, 1] : tensor<2x3xf32> into tensor<4x6xf32>
      %row = tensor.extract_slice %x[2, 1] [1, 3] [1, 1] : tensor<4x6xf32> to tensor<3xf32>
      %flat = tensor.collapse_shape %x [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
      return %i, %row, %flat : tensor<4x6xf32>, tensor<3xf32>, tensor<24xf32>
    }"""
    outcome = run(text, [x], ((4, 6), "f32"), ((3,), "f32"), ((24,), "f32"))
    expected = x.copy()
    expected[0:3:2, 3:6] = 2 * x[1:3, 0:6:2]
    np.testing.assert_array_equal(outcome.outputs[0], expected)
    np.testing.assert_array_equal(outcome.outputs[1], x[2, 1:4])
    np.testing.assert_array_equal(outcome.outputs[2], x.reshape(-1))


@pytest.mark.parametrize(
    ("expression", "element", "expected"),
    [
        ("arith.addi {a}, {b} : i32", "i32", lambda a, b: a + b),
        ("arith.divsi {a}, {b} : i32", "i32", lambda a, b: (np.trunc(a / b)).astype(int)),
        ("arith.remsi {a}, {b} : i32", "i32", lambda a, b: np.fmod(a, b)),
        ("arith.floordivsi {a}, {b} : i32", "i32", lambda a, b: a // b),
        ("arith.ceildivsi {a}, {b} : i32", "i32", lambda a, b: np.ceil(a / b).astype(int)),
        ("arith.divui {a}, {b} : i32", "i32", lambda a, b: a.view(np.uint32) // b.view(np.uint32)),
        (
            "arith.shrui {a}, {b} : i32",
            "i32",
            lambda a, b: a.view(np.uint32) >> (b.view(np.uint32)),
        ),
        (
            "arith.cmpi ult, {a}, {b} : i32",
            "i1",
            lambda a, b: a.view(np.uint32) < b.view(np.uint32),
        ),
        ("arith.cmpi slt, {a}, {b} : i32", "i1", lambda a, b: a < b),
        ("arith.muli {a}, {b} : i32", "i32", lambda a, b: a * b),
        (
            "arith.maxui {a}, {b} : i32",
            "i32",
            lambda a, b: np.maximum(a.view(np.uint32), b.view(np.uint32)),
        ),
    ],
)
def test_integer_arithmetic(expression, element, expected):
    if "shrui" in expression:
        a, b = np.array([-9, 8, 5], np.int32), np.array([3, 1, 31], np.int32)
    else:
        a, b = np.array([-9, 9, -8, 8, 2**31 - 1], np.int32), np.array([4, -4, 4, 4, 3], np.int32)
    n = len(a)
    line = expression.format(a="%a", b="%b").replace(": i32", f": tensor<{n}xi32>")
    text = f"""func.func @f(%a: tensor<{n}xi32>, %b: tensor<{n}xi32>) -> tensor<{n}x{element}> {{
      %r = {line}
      return %r : tensor<{n}x{element}> }}"""
    with np.errstate(over="ignore"):
        outcome = run(text, [a, b], ((n,), element))
        np.testing.assert_array_equal(
            outcome.outputs[0], np.asarray(expected(a, b)).astype(DTYPES[element])
        )


def test_float_comparisons_know_nan():
    a = np.array([1, np.nan, 3], np.float32)
    b = np.array([1, 2, np.nan], np.float32)
    for predicate, expected in {
        "oeq": [1, 0, 0],
        "une": [0, 1, 1],
        "ult": [0, 1, 1],
        "ord": [1, 0, 0],
        "uno": [0, 1, 1],
        "oge": [1, 0, 0],
    }.items():
        text = f"""func.func @f(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xi1> {{
          %r = arith.cmpf {predicate}, %a, %b : tensor<3xf32>
          return %r : tensor<3xi1> }}"""
        assert run(text, [a, b], ((3,), "i1")).outputs[0].tolist() == [bool(e) for e in expected], (
            predicate
        )


def test_truncation_rounds_once_to_nearest_even():
    # Halfway between two bf16 values, and a hair above: through float32 the hair would be lost.
    x = np.array(
        [1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-40, -(1 + 2**-8 + 2**-40), 1e300, np.nan]
    )
    text = """func.func @f(%x: tensor<6xf64>) -> tensor<6xbf16> {
      %r = arith.truncf %x : tensor<6xf64> to tensor<6xbf16>
      return %r : tensor<6xbf16> }"""
    got = run(text, [x], ((6,), "bf16")).outputs[0].astype(float)
    assert got[:5].tolist() == [1, 1 + 2**-6, 1 + 2**-7, -(1 + 2**-7), np.inf]
    assert np.isnan(got[5])


def test_an_argument_only_filled_is_no_input_and_starts_undefined():
    text = """func.func @f(%x: tensor<2xf32>, %o: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %c = arith.constant 3.0 : f32
      %r = linalg.fill ins(%c : f32) outs(%o : tensor<2xf32>) -> tensor<2xf32>
      %e = tensor.empty() : tensor<2xf32>
      return %r, %e : tensor<2xf32>, tensor<2xf32> }"""
    outcome = run(text, [np.ones(2, np.float32)], ((2,), "f32"), ((2,), "f32"))
    assert outcome.outputs[0].tolist() == [3, 3]
    assert np.isnan(outcome.outputs[1]).all()


def test_an_op_without_a_rule_is_named_with_its_location():
    text = """func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %r = math.cbrt %x : tensor<2xf32>
      return %r : tensor<2xf32> }"""
    outcome = run(text, [np.ones(2, np.float32)], ((2,), "f32"))
    (line,) = outcome.incomplete
    assert "math.cbrt" in line and ":2:" in line

    @evaluate("math.cbrt")
    def cbrt(_, __, x):
        return [np.cbrt(x)]

    try:
        outcome = run(text, [np.full(2, 8, np.float32)], ((2,), "f32"))
        assert not outcome.incomplete
        np.testing.assert_array_equal(outcome.outputs[0], np.float32([2, 2]))
    finally:
        del evaluate._rules["math.cbrt"]


def test_wrong_inputs_are_refused():
    text = "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    with pytest.raises(InputError, match=r"argument 0: expected float32\[2\], got float32\[3\]"):
        run(text, [np.ones(3, np.float32)], ((2,), "f32"))
    with pytest.raises(InputError, match="expected 1 inputs, got 2"):
        run(text, [np.ones(2, np.float32)] * 2, ((2,), "f32"))


def test_an_index_outside_an_operand_is_an_error():
    text = """func.func @f(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(a)->(a + 1)>, affine_map<(a)->(a)>], iterator_types = ["parallel"]}
        ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) { ^bb0(%v: f32, %s: f32): linalg.yield %v : f32 } -> tensor<4xf32>
      return %r : tensor<4xf32> }"""
    with pytest.raises((IndexError, ir.MLIRError)):
        run(text, [np.ones(4, np.float32), np.ones(4, np.float32)], ((4,), "f32"))


@pytest.mark.parametrize(("limit", "held"), [(6, True), (5, False)])
def test_a_body_that_only_asserts_has_no_results(limit, held):
    """Without outputs each point of all loops is tried: only 3 + 2 is 5."""
    text = f"""func.func @f(%x: tensor<3xi64>, %y: tensor<2xi64>) -> tensor<3xi64> {{
      linalg.generic {{indexing_maps = [affine_map<(a, b)->(a)>, affine_map<(a, b)->(b)>], iterator_types = ["parallel", "parallel"]}}
        ins(%x, %y : tensor<3xi64>, tensor<2xi64>) {{ ^bb0(%v: i64, %u: i64):
          %sum = arith.addi %v, %u : i64
          %limit = arith.constant {limit} : i64
          %below = arith.cmpi slt, %sum, %limit : i64
          cf.assert %below, "sum too large"
          linalg.yield }}
      return %x : tensor<3xi64> }}"""
    x, y = np.array([0, 3, 1]), np.array([2, 1])
    if held:
        np.testing.assert_array_equal(run(text, [x, y], ((3,), "index")).outputs[0], x)
        return
    with pytest.raises(InputError, match="sum too large"):
        run(text, [x, y], ((3,), "index"))
