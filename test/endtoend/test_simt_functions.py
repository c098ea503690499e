"""Functions on CUDA cores against numpy in float64, on all codes: the errors of
docs/explanation/gemm.md.

Infinities, NaN, zeros of both signs, subnormals and negative numbers are among the codes. The
machine rounds approximate instructions to nearest, so this is the error of the lowering alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import tcir
from tcir.interp import OutputSpec
from tcir.program.codes import any_codes

Array = np.ndarray[Any, Any]
Error = Callable[[Array, Array], Array]
COUNT = 4096
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def relative(bits: int) -> Error:
    """2^bits of the value."""
    return lambda value, _: np.abs(value) * 2.0**bits


def _exact(value: Array, _: Array) -> Array:
    return np.zeros(value.shape)


def _below_2_50(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: np.where(np.abs(x) < 2.0**50, function(x), np.nan)


def _log(absolute: int) -> Error:
    return lambda value, _: 2.0**absolute + 2.0**-21 * np.abs(value)


FUNCTIONS: dict[str, tuple[Callable[[Array], Array], Error]] = {
    "exp": (np.exp, lambda value, x: value * (2.0**-20 + 2.0**-22 * np.abs(x)) + 2.0**-126),
    "exp2": (np.exp2, lambda value, _: value * 2.0**-21 + 2.0**-126),
    "log": (np.log, _log(-22)),
    "log2": (np.log2, _log(-22)),
    "log1p": (np.log1p, _log(-21)),
    "tanh": (np.tanh, lambda value, _: np.minimum(2.0**-20, 2.0**-18 * np.abs(value))),
    "erf": (scipy.special.erf, lambda value, _: np.full(value.shape, 2.0**-20)),
    "log10": (np.log10, _log(-22)),
    "expm1": (
        np.expm1,
        lambda value, x: (
            np.where(
                np.abs(x) < 0.25,
                np.abs(value) * 2.0**-21,
                (np.abs(value) + 1) * (2.0**-20 + 2.0**-22 * np.abs(x)),
            )
            + 2.0**-126
        ),
    ),
    "sinh": (np.sinh, lambda v, x: np.abs(v) * (2.0**-19 + 2.0**-21 * np.abs(x)) + 2.0**-126),
    "cosh": (np.cosh, lambda v, x: v * (2.0**-20 + 2.0**-22 * np.abs(x)) + 2.0**-126),
    "sin": (_below_2_50(np.sin), relative(-22)),
    "cos": (_below_2_50(np.cos), relative(-22)),
    "tan": (_below_2_50(np.tan), relative(-20)),
    "asin": (np.arcsin, relative(-20)),
    "acos": (np.arccos, relative(-20)),
    "atan": (np.arctan, relative(-21)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), relative(-21)),
    "sqrt": (np.sqrt, _exact),
    "absf": (np.abs, _exact),
    "floor": (np.floor, _exact),
    "ceil": (np.ceil, _exact),
    "trunc": (np.trunc, _exact),
    "roundeven": (np.rint, _exact),
}
EXPONENTS = (-3.0, -2.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 7.25, 64.0, 101.0)


def _power(exponent: float) -> tuple[Callable[[Array], Array], Error]:
    def value(x: Array) -> Array:
        y = np.full(x.shape, exponent)  # of a single 0.5 numpy takes the root
        return np.where((exponent == 0.5) & np.isneginf(x), np.inf, np.power(x, y))

    def error(result: Array, x: Array) -> Array:
        factors = abs(exponent) * np.maximum(np.abs(np.log2(np.abs(x))), 1)
        if exponent == int(exponent):
            factors = np.full(x.shape, abs(exponent) / 2)
        return np.abs(result) * (2.0**-21 + 2.0**-21 * factors) + 2.0**-126

    return value, error


def _check(text: str, element: str, value: Callable[[Array], Array], error: Error) -> None:
    dtype = DTYPES[element]
    x = any_codes(OutputSpec((COUNT,), np.dtype(dtype)), np.random.default_rng(1))
    out = np.zeros(COUNT, dtype)
    tcir.compile(text, "simt-elementwise")(x, out)
    info = ml_dtypes.finfo(dtype)
    with np.errstate(all="ignore"):
        exact = value(x.astype(np.float64))
        room = error(exact, x.astype(np.float64))
        unit = np.maximum(np.abs(exact) * float(info.eps), float(info.smallest_subnormal))
        got, want = (each.astype(dtype).astype(np.float64) for each in (out, exact))
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        near = np.abs(got - exact) <= np.where(np.isfinite(room), room, 0) + unit
        # Beside the largest number one side may overflow.
        edge = np.abs(exact) > float(info.max) * (1 - 2.0**-7)
        wrong = ~(same | near | (edge & (np.abs(got) >= float(info.max) * (1 - 2.0**-6))))
    assert not wrong.any(), (x[wrong][:4], exact[wrong][:4], out[wrong][:4])
    assert np.isfinite(want).sum() > COUNT // 4


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize(
    "name",
    FUNCTIONS,
)
def test_functions(name: str, element: str) -> None:
    kind = f"tensor<{COUNT}x{element}>"
    body = f"%y = math.{name} %x : {kind}\n return %y : {kind}"
    _check(f"func.func @f(%x: {kind}) -> {kind} {{\n {body}\n}}", element, *FUNCTIONS[name])


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers(exponent: float, element: str) -> None:
    kind = f"tensor<{COUNT}x{element}>"
    body = f"%k = arith.constant dense<{exponent}> : {kind}\n %y = math.powf %x, %k : {kind}"
    text = f"func.func @f(%x: {kind}) -> {kind} {{\n {body}\n return %y : {kind}\n}}"
    _check(text, element, *_power(exponent))


def test_a_whole_exponent_of_any_size() -> None:
    """Negative numbers stay negative, or become positive."""
    kind = "tensor<8xf32>"
    body = (
        "%k = arith.constant dense<{}> : tensor<8xi32>\n %y = math.fpowi %x, %k : {}, tensor<8xi32>"
    )
    x = np.array([-1.5, -1.0, -0.99, 0.0, 0.5, 1.0, 1.25, -2.0], np.float32)
    for exponent in (-7, 3, 100, 101):
        text = body.format(exponent, kind)
        out = np.zeros(8, np.float32)
        program = f"func.func @f(%x: {kind}) -> {kind} {{\n {text}\n return %y : {kind}\n}}"
        tcir.compile(program, "simt-elementwise")(x, out)
        with np.errstate(divide="ignore"):
            want = x.astype(np.float64) ** exponent
        assert (np.sign(out) == np.sign(want)).all()
        finite = np.isfinite(want)
        room = np.abs(want[finite]) * (abs(exponent) + 2) * 2.0**-22
        assert (np.abs(out[finite] - want[finite]) <= room).all() and np.isinf(out[~finite]).all()
