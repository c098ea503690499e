"""tcir.jax.compile beside JAX in f64."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("jax") is None:
    pytest.skip("jax is not installed", allow_module_level=True)

import jax
import jax.numpy as jnp
import ml_dtypes
from jax import lax

import tcir
import tcir.jax

sys.path.insert(0, str(Path(__file__).parents[1]))
from tiers import slow_but

from .functions import FUNCTIONS, mlp, rope

QUICK = ("mlp", "rope")


def arrays(name: str, dtype: Any) -> Any:
    """Arguments: normal numbers, weights of a size that keeps sums near 1, in f16."""
    generator = np.random.default_rng(3)

    def made(shape: tuple[int, ...]) -> np.ndarray:
        scale = shape[-2] ** -0.5 if len(shape) > 1 and len(shape) != 3 else 1.0
        return (generator.standard_normal(shape) * scale).astype(np.float16).astype(dtype)

    return jax.tree.map(made, FUNCTIONS[name][1], is_leaf=_is_shape)


def _is_shape(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, int) for each in value)


def check(name: str, dtype: Any, bound: float) -> tcir.jax.Compiled:
    function = FUNCTIONS[name][0]
    arguments = arrays(name, dtype)
    compiled = tcir.jax.compile(function, *arguments)
    got = compiled(*arguments)
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda each: jnp.asarray(each, jnp.float64), arguments)
        right = jax.tree.map(np.asarray, function(*wide))
    assert jax.tree.structure(got) == jax.tree.structure(right)
    for mine, exact in zip(jax.tree.leaves(got), jax.tree.leaves(right), strict=True):
        assert np.shape(mine) == exact.shape
        error = np.abs(np.asarray(mine, np.float64) - exact).max()
        assert error <= bound * np.abs(exact).max(), error
    return compiled


@pytest.mark.parametrize("name", slow_but(QUICK, FUNCTIONS))
def test_functions_in_f16(name: str) -> None:
    check(name, np.float16, 3e-3)


@pytest.mark.parametrize("name", slow_but((), ["mlp", "attention", "gradient"]))
def test_functions_in_bf16(name: str) -> None:
    check(name, ml_dtypes.bfloat16, 2e-2)


@pytest.mark.parametrize("name", slow_but((), ["mlp", "conv", "recurrent"]))
def test_functions_in_f32_as_tf32(name: str) -> None:
    check(name, np.float32, 3e-3)


def test_pytrees_numbers_and_what_comes_back() -> None:
    def function(batch: dict[str, Any], *, power: int, flag: str | None = None) -> Any:
        y = (batch["x"] @ batch["w"]) ** power
        return {"y": y, "again": y, "x": batch["x"], "two": 2}, flag is None

    given = {"x": np.eye(16, dtype=np.float16) * 2, "w": np.ones((16, 8), np.float16)}
    compiled = tcir.jax.compile(function, given, power=2)
    result, none = compiled(given, power=2)
    assert isinstance(result["y"], np.ndarray) and np.array_equal(result["y"], np.full((16, 8), 4))
    assert np.array_equal(result["again"], result["y"]) and result["two"] == 2 and none
    assert np.array_equal(result["x"], given["x"])
    assert str(compiled.table) == "dot_general, integer_pow: layers, 1 launch"
    result, _ = compiled(jax.tree.map(jnp.asarray, given), power=2)
    assert isinstance(result["y"], jax.Array)
    for wrong, words in (
        (({**given, "x": given["x"][:8]},), "argument 0['x']: expected float16[16, 16]"),
        (({"x": given["x"]},), "expected arguments as at compile time"),
        (({**given, "w": "w"},), "expected arguments as at"),
        (({**given, "w": object()},), "argument 0['w']: expected arrays, numbers or strings"),
    ):
        with pytest.raises(tcir.InputError, match=re.escape(words)):
            compiled(*wrong, power=2)
    with pytest.raises(tcir.InputError, match=r"argument power: expected 2, .*got 3"):
        compiled(given, power=3)


def _branches_on_numbers(x: Any) -> Any:
    return x if x.sum() > 0 else -x


def _fails(x: Any) -> Any:
    raise RuntimeError("no such luck")


def _sorts(x: Any) -> Any:
    return jnp.sort(x)


def _loops(x: Any) -> Any:
    return lax.while_loop(lambda x: x.sum() < 3, lambda x: x + x, x)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (_branches_on_numbers, "JAX cannot trace the function: TracerBoolConversionError"),
        (_fails, "function: RuntimeError: no such luck"),
        (_sorts, "test_compile.py:{line}:.* stablehlo.sort is not lowered to linalg"),
        (_loops, "test_compile.py:{line}:.* stablehlo.while .*from a loop in Python"),
        (lambda x: x, "got one without a primitive"),
        (lambda x: 3, "got one without a primitive"),
        ("function", "expected a function, got str"),
    ],
)
def test_what_is_not_lowered(function: Callable[..., Any], words: str) -> None:
    if "{line}" in words:
        words = words.format(line=function.__code__.co_firstlineno + 1)
    with pytest.raises(tcir.InputError, match=words) as error:
        tcir.jax.compile(function, np.ones((4, 8), np.float16))
    assert error.value.exit_code == 3


def test_arguments_that_are_no_numbers() -> None:
    for wrong in (object(), jax.random.key(0), np.array(["a"]), np.array([None])):
        with pytest.raises(tcir.InputError, match="argument 1: expected"):
            tcir.jax.compile(lambda x, y: x + x, np.ones(8, np.float16), wrong)


def test_products_and_sums_of_f16_are_kept_in_f32() -> None:
    """Beside numpy in f16 with sums in f32; XLA's own may be in f16."""
    x = np.random.default_rng(0).random((4, 1024)).astype(np.float16)
    ones = np.ones((1024, 8), np.float16)

    def function(x: Any, w: Any) -> Any:
        return lax.dot(x, w), lax.reduce_sum_p.bind(x, axes=(1,), out_sharding=None)

    compiled = tcir.jax.compile(function, x, ones)
    for got, summed in zip(compiled(x, ones), (x @ ones, x.sum(-1)), strict=True):
        shape = summed.shape
        exact = np.broadcast_to(
            x.astype(np.float64).sum(-1).reshape(4, *[1] * (len(shape) - 1)), shape
        )
        assert np.array_equal(got, exact.astype(np.float16))


def test_the_import_is_the_first_line_of_validate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a program with a wrong import the line is `different`."""
    compiled = tcir.jax.compile(rope, np.ones((8, 16), np.float16))
    monkeypatch.setattr("tcir.imported.program.validate", lambda *_, **__: tcir.Report())
    line = compiled.validate().passes[0]
    assert (line.name, line.verdict) == ("JAX → linalg", "within bound") and "JAX" in line.compared
    mlir = compiled.part.mlir.replace("arith.subf", "arith.addf")
    assert mlir != compiled.part.mlir
    object.__setattr__(compiled.part, "mlir", mlir)
    line = compiled.validate().passes[0]
    assert line.verdict == "different" and "the largest error against f64" in line.compared


@pytest.mark.slow
def test_validate_holds() -> None:
    arguments = arrays("mlp", np.float16)
    report = tcir.jax.compile(mlp, *arguments).validate()
    assert report.verdict == "held" and report.passes[0].name == "JAX → linalg"
