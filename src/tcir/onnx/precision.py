"""Converts ONNX models so that they compute in other element types.

torch-mlir sums f16 and bf16 in f16 and bf16, one element after the other. ONNX does not specify the
type of sums. onnxruntime sums in f32 and rounds once; the nodes of `SUMS` are converted to do the
same.
"""

from __future__ import annotations

from collections.abc import Container

import onnx
from onnx import TensorProto, helper, numpy_helper

NARROW = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
FLOATING = (*NARROW, TensorProto.FLOAT, TensorProto.DOUBLE)
SUMS = frozenset((
    # reductions
    "ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
    "ReduceProd", "ReduceSumSquare", "CumSum", "CumProd", "Sum", "Mean", "Einsum",
    # pools
    "AveragePool", "GlobalAveragePool", "LpPool", "GlobalLpPool",
    # normalisation
    "LayerNormalization", "GroupNormalization", "InstanceNormalization", "BatchNormalization",
    "RMSNormalization", "LpNormalization", "MeanVarianceNormalization", "LRN", "Softmax",
    "LogSoftmax",
    # losses, and resampling
    "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "Resize", "Upsample", "GridSample",
    # steps whose state is a sum
    "LSTM", "GRU", "RNN",
    # torch-mlir has these of f32
    "QuantizeLinear", "DequantizeLinear",
))  # fmt: skip
"""Ops that add or multiply many numbers. Matrix products and convolutions are not among them:
torch-mlir sums these in f32."""


def with_wide(model: onnx.ModelProto, ops: Container[str] | None = None) -> onnx.ModelProto:
    """A copy of the model in which the nodes of `ops` compute f16 and bf16 values in f32 and round
    the result once.

    ops: names of ops; None: all

    The model must state the type of each value (`reading.inferred`).
    """
    copy = _copy(model)
    types = types_of(copy.graph)
    nodes = [made for node in copy.graph.node for made in _widened(node, types, ops)]
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def types_of(graph: onnx.GraphProto) -> dict[str, int]:
    """The element type of each value."""
    values = (*graph.input, *graph.value_info, *graph.output)
    types = {each.name: each.type.tensor_type.elem_type for each in values}
    return types | {each.name: each.data_type for each in graph.initializer}


def _widened(
    node: onnx.NodeProto, types: dict[str, int], ops: Container[str] | None
) -> list[onnx.NodeProto]:
    """The node, with casts of its f16 and bf16 inputs and results around it if it computes in
    f32."""
    chosen = node.op_type not in ("Cast", "Constant") if ops is None else node.op_type in ops
    if not chosen or not any(types.get(name) in NARROW for name in (*node.input, *node.output)):
        return [node]
    wide = onnx.NodeProto.FromString(node.SerializeToString())
    before, after = [], []
    for number, name in enumerate(node.input):
        if types.get(name) in NARROW:
            wide.input[number] = f"{node.output[0]}/wide/{number}"
            before.append(_cast(node, name, wide.input[number], TensorProto.FLOAT))
    for number, name in enumerate(node.output):
        if types.get(name) in NARROW:
            wide.output[number] = f"{name}/wide"
            after.append(_cast(node, wide.output[number], name, types[name]))
    return [*before, wide, *after]


def _cast(node: onnx.NodeProto, source: str, to: str, kind: int) -> onnx.NodeProto:
    return helper.make_node("Cast", [source], [to], name=node.name, to=kind)


def in_f64(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of the model with every floating-point type replaced by f64."""
    copy = _copy(model)
    del copy.graph.value_info[:]
    _graph_in_f64(copy.graph)
    return copy


def _graph_in_f64(graph: onnx.GraphProto) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type in FLOATING:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for tensor in graph.initializer:
        _tensor_in_f64(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in ("to", "dtype", "stash_type") and attribute.i in FLOATING:
                attribute.i = TensorProto.DOUBLE
            if attribute.type == onnx.AttributeProto.TENSOR:
                _tensor_in_f64(attribute.t)
            for inner in (attribute.g, *attribute.graphs):
                _graph_in_f64(inner)


def _tensor_in_f64(tensor: onnx.TensorProto) -> None:
    if tensor.data_type in FLOATING:
        wide = numpy_helper.to_array(tensor).astype("float64")
        tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy
