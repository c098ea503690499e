"""Finds the ops of a rejected model that cannot be lowered, by trying each kind of op alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx
from onnx import helper

from tcir.errors import Error
from tcir.onnx.reading import label

VIEWS = ("Constant", "Dropout", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Split",
         "Squeeze", "Transpose", "Unsqueeze")  # fmt: skip
"""Ops that compute nothing: no kernel consists of them alone, but they are part of kernels."""


def refused(model: onnx.ModelProto, attempt: Callable[[onnx.ModelProto], object]) -> dict[str, str]:
    """Finds the kinds of ops that `attempt` rejects; for each kind, returns the labels of its nodes
    and the first line of the error. attempt: lowers a model of a single node, or raises an error.
    """
    kinds: dict[bytes, tuple[onnx.ModelProto, list[str]]] = {}
    for node, single in _singles(model):
        kinds.setdefault(_kind(single), (single, []))[1].append(label(node))
    errors = {}
    for single, labels in kinds.values():
        try:
            attempt(single)
        except Error as error:
            more = f" and {len(labels) - 1} others like it" if len(labels) > 1 else ""
            errors[f"{labels[0]}{more}"] = str(error).splitlines()[0].removeprefix(f"{labels[0]}: ")
    return errors


def _singles(model: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, onnx.ModelProto]]:
    """Each node as a model of its own, with the weights and constants that it reads."""
    weights = {each.name: each for each in model.graph.initializer}
    constants = {node.output[0]: node for node in model.graph.node if node.op_type == "Constant"}
    typed = (*model.graph.input, *model.graph.value_info, *model.graph.output)
    values = {each.name: each for each in typed}
    for node in model.graph.node:
        if node.op_type in VIEWS:
            continue
        names = list(dict.fromkeys(filter(None, node.input)))
        graph = helper.make_graph(
            [*(constants[name] for name in names if name in constants), node],
            "main",
            [values[n] for n in names if n in values and n not in weights and n not in constants],
            [values[name] for name in node.output if name],
            [weights[name] for name in names if name in weights],
        )
        single = helper.make_model(graph, opset_imports=model.opset_import)
        single.ir_version = model.ir_version
        yield node, single


def _kind(single: onnx.ModelProto) -> bytes:
    """Key of a kind of op: the op, its attributes, types and shapes, without names."""
    plain = onnx.ModelProto.FromString(single.SerializeToString())
    graph, names = plain.graph, dict[str, str]()
    for node in graph.node:
        node.name = ""
        for own in (node.input, node.output):
            own[:] = [names.setdefault(name, f"v{len(names)}") if name else "" for name in own]
    for value in (*graph.input, *graph.output, *graph.initializer):
        value.name = names.get(value.name, "")
    for tensor in graph.initializer:
        if len(tensor.raw_data) > 1024:
            tensor.raw_data = b""
    return plain.SerializeToString(deterministic=True)
