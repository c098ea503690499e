"""Rewrites ops that torch-mlir does not lower to linalg, or lowers to a program that aborts for
some inputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper, inliner, numpy_helper

from tcir.errors import InputError
from tcir.onnx.precision import types_of
from tcir.onnx.reading import label, name_nodes

FUNCTIONS = (
    "AffineGrid", "Attention", "CastLike", "CausalConvWithState", "Celu", "CenterCropPad",
    "GroupNormalization", "LinearAttention", "MeanVarianceNormalization", "RMSNormalization",
    "RotaryEmbedding",
)  # fmt: skip
"""Ops that ONNX itself defines as functions of other ops."""


def rewritten(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of the model in which ops that torch-mlir cannot lower correctly are expressed by
    other ops, with the same results.
    """
    model = onnx.ModelProto.FromString(model.SerializeToString())
    model.graph.value_info.extend(
        helper.make_tensor_value_info(each.name, each.data_type, each.dims)
        for each in model.graph.initializer
    )  # which the inliner looks for
    try:
        model = inliner.inline_selected_functions(
            model, [("", name) for name in FUNCTIONS], inline_schema_functions=True
        )
    except RuntimeError as error:
        raise InputError(f"ONNX cannot inline its own functions: {error}") from error
    types = types_of(model.graph)
    nodes = [
        made for node in model.graph.node for made in REWRITES.get(node.op_type, _same)(node, types)
    ]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    name_nodes(model)
    return model


def _same(node: onnx.NodeProto, types: dict[str, int]) -> list[onnx.NodeProto]:
    return [node]


def _reciprocal(node: onnx.NodeProto, types: dict[str, int]) -> list[onnx.NodeProto]:
    """1 / x as a division; torch-mlir's version asserts that the result is finite."""
    dtype = helper.tensor_dtype_to_np_dtype(types[node.input[0]])
    one = numpy_helper.from_array(np.ones((), dtype), f"{node.output[0]}/one")
    return [
        helper.make_node("Constant", [], [one.name], name=node.name, value=one),
        helper.make_node("Div", [one.name, node.input[0]], node.output, name=node.name),
    ]


def _lrn(node: onnx.NodeProto, types: dict[str, int]) -> list[onnx.NodeProto]:
    """Leaves the node unchanged. InputError for an even size: the window's additional channel comes
    before the element in torch-mlir and PyTorch, and after it in ONNX."""
    size = next(each.i for each in node.attribute if each.name == "size")
    if size % 2 == 0:
        raise InputError(
            f"{label(node)}: expected an odd size, got {size}: torch-mlir uses PyTorch's window, "
            "which differs from ONNX's for even sizes"
        )
    return [node]


def _swish(node: onnx.NodeProto, types: dict[str, int]) -> list[onnx.NodeProto]:
    """x · sigmoid(alpha · x)."""
    x, result = node.input[0], node.output[0]
    alpha = next((each.f for each in node.attribute if each.name == "alpha"), 1.0)
    dtype = helper.tensor_dtype_to_np_dtype(types[x])
    factor = numpy_helper.from_array(np.array(alpha, dtype), f"{result}/alpha")
    return [
        helper.make_node("Constant", [], [factor.name], name=node.name, value=factor),
        helper.make_node("Mul", [factor.name, x], [f"{result}/scaled"], name=node.name),
        helper.make_node("Sigmoid", [f"{result}/scaled"], [f"{result}/gate"], name=node.name),
        helper.make_node("Mul", [x, f"{result}/gate"], [result], name=node.name),
    ]


def _with_zero_point(node: onnx.NodeProto, types: dict[str, int]) -> list[onnx.NodeProto]:
    """Adds a zero point of 0 to a node without one, since torch-mlir expects it."""
    if len(node.input) != 2:
        return [node]
    given = {each.name: each.i for each in node.attribute}
    kind = given.get("output_dtype", onnx.TensorProto.UINT8)
    zeros = node.output[0] + "/zeros"
    made = onnx.NodeProto.FromString(node.SerializeToString())
    made.input.append(zeros)
    if node.op_type == "DequantizeLinear":
        kind = types[node.input[0]]
    shape = node.output[0] + "/shape"
    zero = helper.make_tensor("value", kind, [1], [0])
    return [
        helper.make_node("Shape", [node.input[1]], [shape], name=node.name),
        helper.make_node("ConstantOfShape", [shape], [zeros], name=node.name, value=zero),
        made,
    ]


REWRITES: dict[str, Callable[[onnx.NodeProto, dict[str, int]], list[onnx.NodeProto]]] = {
    "LRN": _lrn,
    "Reciprocal": _reciprocal,
    "Swish": _swish,
    "QuantizeLinear": _with_zero_point,
    "DequantizeLinear": _with_zero_point,
}
