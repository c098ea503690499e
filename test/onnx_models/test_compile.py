"""tcir.onnx.compile beside ONNX's own evaluator in f64."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("onnx") is None:
    pytest.skip("onnx is not installed", allow_module_level=True)

import onnx
from onnx.reference import ReferenceEvaluator

import tcir
import tcir.onnx

sys.path.insert(0, str(Path(__file__).parents[1]))
from tiers import slow_but

from .models import DOUBLE, FLOAT, FLOAT16, MODELS, Builder, mlp

QUICK = ("mlp", "pooling")


def arrays(compiled: tcir.onnx.Compiled, seed: int = 0) -> dict[str, np.ndarray]:
    """Inputs for a model."""
    generator = np.random.default_rng(seed)
    made = {}
    for value in compiled.inputs:
        numbers = generator.standard_normal(value.shape)
        if value.dtype.kind == "u":
            numbers = generator.integers(0, 256, value.shape)
        made[value.name] = numbers.astype(value.dtype)
    return made


def exact(name: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The results of the model, made in f64, on the same numbers."""
    evaluator = ReferenceEvaluator(MODELS[name][0](DOUBLE))
    given = {
        name: array if array.dtype.kind == "u" else array.astype(np.float64)
        for name, array in inputs.items()
    }
    return dict(zip(evaluator.output_names, evaluator.run(None, given), strict=True))


def check(name: str, kind: int, bound: float) -> tcir.onnx.Compiled:
    build, shapes = MODELS[name]
    compiled = tcir.onnx.compile(build(kind), shapes)
    inputs = arrays(compiled)
    results, right = compiled(inputs), exact(name, inputs)
    assert list(results) == list(right)
    for output, array in results.items():
        assert array.shape == right[output].shape
        if array.dtype.kind == "i":
            assert array.dtype == right[output].dtype and np.array_equal(array, right[output])
        else:
            error = np.abs(array.astype(np.float64) - right[output]).max()
            assert error < bound * np.abs(right[output]).max(), (output, error)
    return compiled


@pytest.mark.parametrize("name", slow_but(QUICK, MODELS))
def test_models_in_f16(name: str) -> None:
    check(name, FLOAT16, 2e-3)


@pytest.mark.parametrize("name", slow_but((), ["mlp", "conv net", "attention", "classifier"]))
def test_models_in_f32_as_tf32(name: str) -> None:
    check(name, FLOAT, 2e-3)


def test_names_table_and_calls() -> None:
    compiled = tcir.onnx.compile(mlp(FLOAT16), [(16, 64)])
    assert [each.name for each in compiled.inputs] == ["input.1"]
    assert [str(each) for each in compiled.outputs] == ["logits: float16[16, 32]"]
    assert str(compiled.table) == "Gemm, Relu, MatMul, Identity: layers, 2 launches"
    inputs = arrays(compiled)
    by_name, in_order = compiled(inputs)["logits"], compiled(inputs["input.1"])["logits"]
    assert np.array_equal(by_name, in_order)
    for wrong, words in (
        (({"x": inputs["input.1"]},), "got 'x'"),
        ((), "expected 1 arrays (input.1: float16[16, 64]), got 0"),
        ((inputs["input.1"], inputs["input.1"]), "got 2"),
        ((inputs["input.1"][:8],), "compile again for others"),
        ((inputs["input.1"].astype(np.float32),), "got float32"),
        (([[1.0]],), "np.asarray makes one"),
    ):
        with pytest.raises(tcir.InputError) as error:
            compiled(*wrong)
        assert words in str(error.value)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({}, "input 'input.1': expected a shape for [batch, 64], got none"),
        ({"input": (16, 64)}, "got 'input'; did you mean 'input.1'?"),
        ({"input.1": (16, 63)}, "expected the shape [batch, 64], got [16, 63]"),
        ({"input.1": (16,)}, "expected the shape [batch, 64], got [16]"),
        ({"input.1": np.ones((16, 64), np.float32)}, "expected an array of float16, got float32"),
        ({"input.1": "x"}, "expected an array, or a shape as a tuple of integers, got str"),
        ([(1, 64), (1, 64)], "expected 1 inputs (input.1), got 2"),
    ],
)
def test_inputs_that_are_not_the_model_s(inputs: Any, words: str) -> None:
    with pytest.raises(tcir.InputError) as error:
        tcir.onnx.compile(mlp(FLOAT16), inputs)
    assert words in str(error.value)


def test_a_symbol_has_one_size() -> None:
    b = Builder(FLOAT16)
    x, y = b.input("x", "n", 16), b.input("y", "n", 1)
    model = b.model(z=(b.op("Mul", x, y), ("n", 16)))
    with pytest.raises(tcir.InputError, match="expected the dimension 'n' to be 4, as in 'x'"):
        tcir.onnx.compile(model, {"x": (4, 16), "y": (1, 1)})


@pytest.mark.slow
def test_weights_in_a_file_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save_model(
        mlp(FLOAT16), path, save_as_external_data=True, size_threshold=0, location="weights.bin"
    )
    compiled = tcir.onnx.compile(path, {"input.1": (16, 64)})
    inputs = arrays(compiled)
    right = exact("mlp", inputs)["logits"]
    assert np.abs(compiled(inputs)["logits"] - right).max() < 2e-3 * np.abs(right).max()
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(tcir.InputError, match="external data must be next to it"):
        tcir.onnx.compile(path, {"input.1": (16, 64)})


def test_ops_that_are_not_lowered_are_named() -> None:
    """All of them, with what is said of each; nothing else runs them."""
    b = Builder(FLOAT16)
    x = b.input("x", 8, 64)
    _, places = b.op("TopK", x, b.constant([3], np.int64), results=2)
    sums = b.op("CumSum", x, b.constant(1, np.int64))
    model = b.model(
        y=(b.op("Relu", sums), (8, 64)), places=(places, (8, 3), onnx.TensorProto.INT64)
    )
    with pytest.raises(tcir.InputError) as error:
        tcir.onnx.compile(model)
    text = str(error.value)
    assert "got 2 others; nothing else runs them" in text
    assert "TopK 'my TopK': tm_tensor.sort is not lowered" in text
    assert "CumSum 'my CumSum': tm_tensor.scan is not lowered" in text and "Relu" not in text


def test_shapes_that_depend_on_numbers_and_other_domains_are_named() -> None:
    b = Builder(FLOAT16)
    x = b.input("x", 8)
    model = b.model(y=(b.op("NonZero", x), (1, "n"), onnx.TensorProto.INT64))
    with pytest.raises(tcir.InputError, match=r"NonZero 'my NonZero': .*kernels have fixed shapes"):
        tcir.onnx.compile(model)
    b = Builder(FLOAT16)
    model = b.model(y=(b.op("FusedMatMul", b.input("x", 8), domain="com.microsoft"), (8,)))
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(tcir.InputError, match=r"FusedMatMul 'my FusedMatMul' of com.microsoft"):
        tcir.onnx.compile(model)


@pytest.mark.slow
def test_an_op_that_the_pipeline_does_not_take_is_named() -> None:
    with pytest.raises(tcir.InputError) as error:
        tcir.onnx.compile(mlp(FLOAT16), [(16, 64)], pipeline="conv-implicit-gemm")
    text = str(error.value)
    assert "expected ops that pipeline 'conv-implicit-gemm' lowers, got" in text
    assert "MatMul 'my MatMul': " in text and "Gemm 'my Gemm': " in text and "Identity" not in text


def test_the_import_is_the_first_line_of_validate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a program with a wrong import the line is `different`."""
    compiled = tcir.onnx.compile(mlp(FLOAT16), [(16, 64)])
    monkeypatch.setattr("tcir.imported.program.validate", lambda *_, **__: tcir.Report())
    line = compiled.validate().passes[0]
    assert (line.name, line.verdict) == ("ONNX → linalg", "within bound")
    assert "with ONNX's evaluator in f64" in line.compared
    mlir = compiled.part.mlir.replace("arith.cmpf ugt", "arith.cmpf olt")
    assert mlir != compiled.part.mlir
    object.__setattr__(compiled.part, "mlir", mlir)
    line = compiled.validate().passes[0]
    assert line.verdict == "different" and "the largest error against f64" in line.compared


@pytest.mark.slow
def test_validate_holds() -> None:
    compiled = tcir.onnx.compile(mlp(FLOAT16), [(16, 64)])
    report = compiled.validate()
    assert report.verdict == "held" and report.passes[0].name == "ONNX → linalg"


@pytest.mark.slow
def test_command(tmp_path: Path) -> None:
    onnx.save_model(mlp(FLOAT16), tmp_path / "mlp.onnx")
    words = [sys.executable, "-m", "tcir.onnx", "mlp.onnx"]
    done = subprocess.run(
        [*words, "--shape", "input.1=16x64", "--emit=ptx", "-o", "mlp.ptx"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Gemm, Relu, MatMul, Identity: layers, 2 launches" in done.stdout
    assert ".target sm_100a" in (tmp_path / "mlp.ptx").read_text()
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "expected a shape for [batch, 64]" in done.stderr
