"""Models made with onnx.helper, in any floating type, with weights of a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT16, FLOAT, DOUBLE = TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE
Shape = tuple[int | str, ...]


@dataclass
class Builder:
    """A graph in the making; floating numbers are of `kind`. Weights are f16 numbers in any."""

    kind: int
    opset: int = 22
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    @property
    def dtype(self) -> Any:
        """numpy's name of `kind`."""
        return helper.tensor_dtype_to_np_dtype(self.kind)

    def input(self, name: str, *shape: int | str, kind: int | None = None) -> str:
        """An input."""
        self.inputs.append(helper.make_tensor_value_info(name, kind or self.kind, shape))
        return name

    def weight(self, *shape: int, scale: float = 1.0, offset: float = 0.0) -> str:
        """Normal numbers, rounded to f16."""
        numbers = self.generator.standard_normal(shape) * scale + offset
        return self.constant(numbers.astype(np.float16).astype(self.dtype))

    def constant(self, array: Any, dtype: Any = None) -> str:
        """An initializer."""
        name = f"weight.{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def op(self, kind: str, *inputs: str, results: int = 1, **attributes: Any) -> Any:
        """A node; the name of its result, or of several."""
        names = [f"{kind.lower()}_{len(self.nodes)}" + "'" * n for n in range(results)]
        made = helper.make_node(kind, inputs, names, name=f"my {kind}", **attributes)
        self.nodes.append(made)
        return names[0] if results == 1 else names

    def model(self, **outputs: tuple[str, Shape] | tuple[str, Shape, int]) -> onnx.ModelProto:
        """The model; outputs: the result of a node, its shape and type, by name."""
        infos = []
        for name, (result, shape, *kind) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [result], [name], name=f"to {name}"))
            infos.append(helper.make_tensor_value_info(name, kind[0] if kind else self.kind, shape))
        graph = helper.make_graph(self.nodes, "graph", self.inputs, infos, self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        made.ir_version = 10
        return made


def mlp(kind: int) -> onnx.ModelProto:
    b = Builder(kind)
    x = b.input("input.1", "batch", 64)
    h = b.op("Gemm", x, b.weight(128, 64, scale=0.125), b.weight(128), transB=1)
    y = b.op("MatMul", b.op("Relu", h), b.weight(128, 32, scale=0.1))
    return b.model(logits=(y, ("batch", 32)))


def conv_net(kind: int) -> onnx.ModelProto:
    b = Builder(kind)
    x = b.input("x", 1, 16, 12, 12)
    h = b.op("Conv", x, b.weight(32, 16, 3, 3, scale=0.08), b.weight(32), pads=[1, 1, 1, 1])
    norm = [b.weight(32), b.weight(32), b.weight(32), b.weight(32, scale=0.01, offset=1)]
    h = b.op("Relu", b.op("BatchNormalization", h, *norm))
    h = b.op("MaxPool", h, kernel_shape=[2, 2], strides=[2, 2])
    h = b.op("Conv", h, b.weight(16, 32, 1, 1, scale=0.2))
    h = b.op("Flatten", b.op("GlobalAveragePool", h))
    return b.model(y=(b.op("Gemm", h, b.weight(16, 8, scale=0.25), b.weight(8)), (1, 8)))


def layer_norm(kind: int) -> onnx.ModelProto:
    b = Builder(kind)
    x = b.input("x", 16, 128)
    h = b.op("LayerNormalization", x, b.weight(128, offset=1), b.weight(128))
    return b.model(y=(b.op("MatMul", h, b.weight(128, 32, scale=0.1)), (16, 32)))


def attention(kind: int) -> onnx.ModelProto:
    b = Builder(kind)
    q, k, v = (b.input(name, 2, 32, 16) for name in "qkv")
    scores = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 2, 1]))
    scores = b.op("Mul", scores, b.constant(0.25, b.dtype))
    y = b.op("MatMul", b.op("Softmax", scores, axis=-1), v)
    return b.model(y=(y, (2, 32, 16)))


def pooling(kind: int) -> onnx.ModelProto:
    b = Builder(kind)
    x = b.input("x", 2, 4, 16, 16)
    means = b.op("AveragePool", x, kernel_shape=[4, 4], strides=[4, 4])
    whole = b.op("GlobalAveragePool", x)
    tops = b.op("GlobalMaxPool", x)
    return b.model(means=(means, (2, 4, 4, 4)), gate=(b.op("Mul", whole, tops), (2, 4, 1, 1)))


def gelu_block(kind: int) -> onnx.ModelProto:
    b = Builder(kind)
    x = b.input("x", 32, 64)
    h = b.op("Gelu", b.op("MatMul", x, b.weight(64, 128, scale=0.1)))
    return b.model(y=(b.op("Add", x, b.op("MatMul", h, b.weight(128, 64, scale=0.1))), (32, 64)))


def llama_mlp(kind: int) -> onnx.ModelProto:
    b = Builder(kind, opset=23)
    x = b.input("x", 16, 64)
    h = b.op("RMSNormalization", x, b.weight(64, offset=1), epsilon=1e-5)
    gate = b.op("MatMul", h, b.weight(64, 96, scale=0.1))
    gate = b.op("Mul", gate, b.op("Sigmoid", gate))
    h = b.op("Mul", gate, b.op("MatMul", h, b.weight(64, 96, scale=0.1)))
    return b.model(y=(b.op("MatMul", h, b.weight(96, 64, scale=0.1)), (16, 64)))


def int8_weights(kind: int) -> onnx.ModelProto:
    b = Builder(kind)
    x = b.input("x", 16, 64)
    codes = b.constant(b.generator.integers(-127, 128, (64, 32)), np.int8)
    scale = b.constant(0.0078125, b.dtype)
    w = b.op("DequantizeLinear", codes, scale)
    return b.model(y=(b.op("MatMul", x, w), (16, 32)))


def dynamic_reshape(kind: int) -> onnx.ModelProto:
    """The nodes that exporters write for x.view(batch, -1)."""
    b = Builder(kind)
    x = b.input("x", "batch", 4, 16)
    batch = b.op("Gather", b.op("Shape", x), b.constant([0], np.int64))
    shape = b.op("Concat", batch, b.constant([-1], np.int64), axis=0)
    y = b.op("MatMul", b.op("Reshape", x, shape), b.weight(64, 16, scale=0.1))
    return b.model(y=(y, ("batch", 16)))


def classifier(kind: int) -> onnx.ModelProto:
    """Bytes in; two outputs, one of integers."""
    b = Builder(kind)
    pixels = b.input("pixels", 4, 64, kind=TensorProto.UINT8)
    x = b.op("Mul", b.op("Cast", pixels, to=kind), b.constant(0.0078125, b.dtype))
    logits = b.op("MatMul", x, b.weight(64, 16, scale=0.25))
    best = b.op("ArgMax", logits, axis=1, keepdims=0)
    chances = b.op("Softmax", logits, axis=-1)
    return b.model(chances=(chances, (4, 16)), best=(best, (4,), TensorProto.INT64))


def decoder(kind: int) -> onnx.ModelProto:
    """Transposed convolutions: without zeros between pixels, and with them. (Those of groups ONNX's
    evaluator does not take.)"""
    b = Builder(kind)
    x = b.input("x", 1, 8, 5, 6)
    even = b.weight(8, 16, 4, 4, scale=0.1)
    h = b.op("ConvTranspose", x, even, b.weight(16), strides=[2, 2], pads=[1, 1, 1, 1])
    odd = b.weight(16, 8, 3, 3, scale=0.1)
    y = b.op("ConvTranspose", b.op("Relu", h), odd, strides=[2, 2], output_padding=[1, 1],
             pads=[1, 1, 1, 1])  # fmt: skip
    return b.model(y=(y, (1, 8, 20, 24)))


MODELS: dict[str, tuple[Callable[[int], onnx.ModelProto], dict[str, tuple[int, ...]]]] = {
    "mlp": (mlp, {"input.1": (16, 64)}),
    "conv net": (conv_net, {}),
    "layer norm": (layer_norm, {}),
    "attention": (attention, {}),
    "pooling": (pooling, {}),
    "gelu block": (gelu_block, {}),
    "llama mlp": (llama_mlp, {}),
    "int8 weights": (int8_weights, {}),
    "dynamic reshape": (dynamic_reshape, {"x": (8, 4, 16)}),
    "classifier": (classifier, {}),
    "decoder": (decoder, {}),
}
"""Models, and shapes for their dynamic inputs."""
