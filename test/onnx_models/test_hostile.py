"""Files that mean harm: each is an error with status 3, and nothing dies."""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

if importlib.util.find_spec("onnx") is None:
    pytest.skip("onnx is not installed", allow_module_level=True)

import onnx
from onnx import TensorProto, helper

import tcir.onnx
from tcir.errors import Error, InputError, InternalError
from tcir.onnx.children import readers

from .models import FLOAT16, MODELS, Builder, mlp


def _two(first: list[str], second: list[str]) -> onnx.ModelProto:
    """Two nodes with these inputs, whose results are a and b."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Add", first, ["a"]), helper.make_node("Add", second, ["b"])],
        "g",
        [value("x", FLOAT16, [8])],
        [value("b", FLOAT16, [8])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def _huge() -> onnx.ModelProto:
    b = Builder(FLOAT16)
    x = b.input("x", 2**40, 2**20)
    return b.model(y=(b.op("Relu", x), (2**40, 2**20)))


def _many() -> onnx.ModelProto:
    b = Builder(FLOAT16)
    x = b.input("x", 1)
    y = b.op("Expand", x, b.constant([2**31, 2**31], "int64"))
    return b.model(y=(y, (2**31, 2**31)))


def _negative() -> onnx.ModelProto:
    b = Builder(FLOAT16)
    return b.model(y=(b.op("Relu", b.input("x", -3, 8)), (-3, 8)))


def _promised() -> onnx.ModelProto:
    """A weight of 2^60 numbers of which the file has none."""
    model = mlp(FLOAT16)
    model.graph.initializer[0].dims[:] = [2**30, 2**30]
    return model


def _outside() -> onnx.ModelProto:
    model = mlp(FLOAT16)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../../../etc/passwd")
    return model


def _filled() -> onnx.ModelProto:
    """Constants of 2^41 numbers, whose sum is small."""
    b = Builder(FLOAT16)
    x = b.input("x", 1, 1)
    ones = b.op("ConstantOfShape", b.constant([2**31, 2**10], "int64"))
    total = b.op("Cast", b.op("ReduceSum", ones), to=FLOAT16)
    return b.model(y=(b.op("Add", x, total), (1, 1)))


def _counted() -> onnx.ModelProto:
    """A range of 2^40 numbers."""
    b = Builder(FLOAT16)
    x = b.input("x", 1)
    numbers = b.op("Range", *(b.constant(n, "int64") for n in (0, 2**50, 1)))
    total = b.op("Cast", b.op("ReduceSum", numbers, keepdims=0), to=FLOAT16)
    return b.model(y=(b.op("Add", x, total), (1,)))


def _loop() -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["on"], ["on.out"]),
         helper.make_node("Add", ["state", "state"], ["state.out"])],
        "body",
        [value("i", TensorProto.INT64, []), value("on", TensorProto.BOOL, []),
         value("state", FLOAT16, [8])],
        [value("on.out", TensorProto.BOOL, []), value("state.out", FLOAT16, [8])],
    )  # fmt: skip
    b = Builder(FLOAT16)
    x, count = b.input("x", 8), b.input("count", kind=TensorProto.INT64)
    return b.model(y=(b.op("Loop", count, "", x, body=body), (8,)))


def _strings() -> onnx.ModelProto:
    b = Builder(FLOAT16)
    x = b.input("x", 4, kind=TensorProto.STRING)
    return b.model(y=(b.op("Identity", x), (4,), TensorProto.STRING))


def _bytes(make: Callable[[], onnx.ModelProto]) -> bytes:
    return make().SerializeToString()


FILES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "text": lambda: b"module {}\n",
    "truncated": lambda: _bytes(lambda: mlp(FLOAT16))[:-100],
    "cyclic": lambda: _bytes(lambda: _two(["x", "b"], ["a", "a"])),
    "of itself": lambda: _bytes(lambda: _two(["x", "a"], ["a", "a"])),
    "out of nothing": lambda: _bytes(lambda: _two(["x", "nothing"], ["a", "a"])),
    "huge": lambda: _bytes(_huge),
    "expanded": lambda: _bytes(_many),
    "negative": lambda: _bytes(_negative),
    "promised": lambda: _bytes(_promised),
    "outside": lambda: _bytes(_outside),
    "filled": lambda: _bytes(_filled),
    "counted": lambda: _bytes(_counted),
    "loop": lambda: _bytes(_loop),
    "names": lambda: _bytes(lambda: mlp(FLOAT16)).replace(b"my Gemm", b"my \xff\xfe00"),
    "strings": lambda: _bytes(_strings),
}


@pytest.mark.parametrize("name", FILES)
def test_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(FILES[name]())
    with pytest.raises(InputError) as error:
        tcir.onnx.compile(path, {} if name != "promised" else {"input.1": (4, 64)})
    assert error.value.exit_code == 3 and "model.onnx" in str(error.value)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_damaged_bytes(seed: int) -> None:
    """Bytes of a model replaced at random: a model still, or an error of tcir's."""
    draw = random.Random(seed)
    whole = bytearray(_bytes(lambda: MODELS["pooling"][0](FLOAT16)))
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(draw.choice([1, 1, 2, 8])):
            data[draw.randrange(len(data))] = draw.randrange(256)
        try:
            readers().imported("model.onnx", bytes(data), [])
        except Error as error:
            assert not isinstance(error, InternalError), error


@pytest.mark.slow
def test_command_has_status_3(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(FILES["truncated"]())
    done = subprocess.run(
        [sys.executable, "-m", "tcir.onnx", str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 3 and done.stderr.startswith(f"error: {path}: expected an ONNX model")
    assert "Traceback" not in done.stderr


def test_what_is_no_model() -> None:
    for wrong in (None, 3, b"bytes", object()):
        with pytest.raises(InputError, match=r"expected a path or an onnx\.ModelProto"):
            tcir.onnx.compile(wrong)
    with pytest.raises(InputError, match="expected an ONNX model"):
        tcir.onnx.compile(onnx.ModelProto())
