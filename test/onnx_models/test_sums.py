"""Sums of f16 are kept in f32: linalg beside numpy in f64, and in f16 with sums in f32."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np
import pytest

if importlib.util.find_spec("onnx") is None:
    pytest.skip("onnx is not installed", allow_module_level=True)

from tcir.errors import InputError
from tcir.interp.tensor import run
from tcir.onnx._child_main import imported, reference
from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context

from .models import FLOAT, FLOAT16, Builder

Array = np.ndarray
COUNT = 1024


def _layer_norm(x: Array) -> Array:
    spread = x - x.mean(-1, keepdims=True)
    return spread / np.sqrt((spread**2).mean(-1, keepdims=True) + x.dtype.type(1e-5))


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], Callable[[Array], Array]]] = {
    "GlobalAveragePool": ((1, 2, 32, 32), (1, 2, 1, 1), lambda x: x.mean((2, 3), keepdims=True)),
    "ReduceSum": ((2, COUNT), (2, 1), lambda x: x.sum(-1, keepdims=True)),
    "ReduceMean": ((2, COUNT), (2, 1), lambda x: x.mean(-1, keepdims=True)),
    "ReduceL2": ((2, COUNT), (2, 1), lambda x: np.sqrt((x**2).sum(-1, keepdims=True))),
    "LayerNormalization": ((2, COUNT), (2, COUNT), _layer_norm),
    "Softmax": ((2, COUNT), (2, COUNT), _softmax),
}


@pytest.mark.parametrize("op", CASES)
def test_sums_of_f16(op: str) -> None:
    shape, result, right = CASES[op]
    b = Builder(FLOAT16)
    inputs = [b.input("x", *shape)]
    if op == "LayerNormalization":
        inputs.append(b.constant(np.ones(COUNT), np.float16))
    elif op.startswith("Reduce"):
        inputs.append(b.constant([1], np.int64))
    model = b.model(y=(b.op(op, *inputs), result))
    found = imported("model", data=model.SerializeToString(), shapes=[])
    x = np.random.default_rng(0).random(shape).astype(np.float16)
    with mlir_context() as context:
        module = load_module(found.mlir, context)
        (got,) = run(module, "graph", [x], signature_of(module).outputs).outputs
    exact = right(x.astype(np.float64))
    own = right(x.astype(np.float32)).astype(np.float16)
    errors = [float(np.abs(each.astype(np.float64) - exact).max()) for each in (got, own)]
    assert got.dtype == np.float16 and errors[0] <= 1.5 * errors[1] + 1e-9, errors


def test_windows_of_lrn() -> None:
    """Beside numpy in f64; even sizes, of which torch-mlir has PyTorch's window, are refused."""
    for size in (3, 4):
        b = Builder(FLOAT)
        y = b.op("LRN", b.input("x", 2, 8, 4, 4), size=size, alpha=1.0)
        model = b.model(y=(y, (2, 8, 4, 4))).SerializeToString()
        if size == 4:
            with pytest.raises(InputError, match="LRN 'my LRN': expected an odd size, got 4"):
                imported("model", data=model, shapes=[])
            break
        found = imported("model", data=model, shapes=[])
        x = np.random.default_rng(0).standard_normal((2, 8, 4, 4)).astype(np.float32)
        padded = np.pad(x.astype(np.float64) ** 2, [(0, 0), (1, 1), (0, 0), (0, 0)])
        exact = x / (1 + (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) / 3) ** 0.75
        (own,) = reference("model", data=found.data, inputs=[x], wide=True)
        assert np.abs(own - exact).max() < 1e-6
        with mlir_context() as context:
            module = load_module(found.mlir, context)
            (got,) = run(module, "graph", [x], signature_of(module).outputs).outputs
        assert np.abs(got - exact).max() < 1e-5
