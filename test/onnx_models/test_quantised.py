"""ONNX's quantised products: on tensor cores, with the numbers of ONNX's own evaluator."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("onnx") is None:
    pytest.skip("onnx is not installed", allow_module_level=True)

import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tcir.onnx

SHAPES = {
    "Conv": ((2, 16, 9, 9), (32, 16, 3, 3), (2, 32, 9, 9)),
    "MatMul": ((40, 64), (64, 32), (40, 32)),
}


def model(op: str, signed: bool) -> onnx.ModelProto:
    """One node, with zero points of 3 and of 0, which weights have mostly."""
    draw = np.random.default_rng(0)
    product = "Conv" if "Conv" in op else "MatMul"
    x, w, y = SHAPES[product]
    own, kind = (np.int8, TensorProto.INT8) if signed else (np.uint8, TensorProto.UINT8)
    given = {
        "w": draw.integers(-127, 128, w).astype(np.int8),
        "zx": np.array(3, own), "zw": np.array(0, np.int8), "zy": np.array(5, own),
        "sx": np.array(0.02, np.float32), "sw": np.array(0.01, np.float32),
        "sy": np.array(0.3, np.float32),
        "b": draw.integers(-500, 500, w[0]).astype(np.int32),
    }  # fmt: skip
    names = "x w zx zw" if op.endswith("Integer") else "x sx zx w sw zw sy zy"
    names += " b" * (op == "QLinearConv")
    pads = {"pads": [1, 1, 1, 1]} if product == "Conv" else {}
    node = helper.make_node(op, names.split(), ["y"], **pads)
    result = TensorProto.INT32 if op.endswith("Integer") else kind
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", kind, x)],
        [helper.make_tensor_value_info("y", result, y)],
        [numpy_helper.from_array(array, n) for n, array in given.items() if n in names.split()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9)


@pytest.mark.parametrize("signed", [True, False], ids=["int8", "uint8"])
@pytest.mark.parametrize("op", ["ConvInteger", "QLinearConv", "QLinearMatMul"])
@pytest.mark.parametrize("target", ["sm_100a", "sm_90a"])
def test_a_tensor_core_multiplies(op: str, signed: bool, target: str) -> None:
    program = model(op, signed)
    dims = program.graph.input[0].type.tensor_type.shape.dim
    own = np.int8 if signed else np.uint8
    x = np.random.default_rng(1).integers(
        np.iinfo(own).min, np.iinfo(own).max, [d.dim_value for d in dims], own, endpoint=True
    )
    compiled = tcir.onnx.compile(program, x, target=target)
    kernels = [part.kernel.ptx for part in compiled.table if part.kernel is not None]
    assert any(name in ptx for ptx in kernels for name in ("tcgen05.mma", "wgmma.mma_async"))
    (wanted,) = ReferenceEvaluator(program).run(None, {"x": x})
    got = compiled(x)["y"]
    assert got.dtype == wanted.dtype
    off = np.abs(got.astype(np.int64) - wanted)
    if op.endswith("Integer"):
        assert not off.any()
    else:  # the product of the scales is rounded otherwise: next to a tie the other whole number
        assert off.max() <= 1 and off.mean() < 0.002


def test_every_level() -> None:
    program = model("QLinearConv", signed=True)
    compiled = tcir.onnx.compile(program, np.zeros(SHAPES["Conv"][0], np.int8))
    assert compiled.validate().verdict == "held"
