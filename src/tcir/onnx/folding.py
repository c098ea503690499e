"""Folds nodes that compute constants, such as shapes. Exporters write such nodes for dynamic
dimensions, and ONNX's function bodies contain them. torch-mlir folds only some of them.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tcir.interp.types import Array

MOST_ELEMENTS = 1024
"""Maximum number of elements of a folded constant; weights are left as they are."""
RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli",
          "Multinomial", "Dropout")  # fmt: skip


def folded(model: onnx.ModelProto, *, floats: bool) -> bool:
    """Replaces nodes whose inputs are all constants by initializers; returns whether there were any
    such nodes.

    floats: whether nodes with floating-point results, rounded to their type, are also folded

    The shapes that `model` states for values are trusted.
    """
    graph = model.graph
    shapes = {
        each.name: each.type.tensor_type
        for each in (*graph.input, *graph.value_info, *graph.output)
    }
    constants = {
        each.name: numpy_helper.to_array(each)
        for each in graph.initializer
        if np.prod(each.dims) <= MOST_ELEMENTS
    }
    outputs = {each.name for each in graph.output}
    kept, made = [], list[onnx.TensorProto]()
    for node in graph.node:
        results = None
        if not outputs & set(node.output) and _is_small(node, shapes):
            results = _shape(node, shapes) or _evaluated(node, constants, model, floats)
        if results is None:
            kept.append(node)
            continue
        for name, value in zip(node.output, results, strict=True):
            constants[name] = value
            made.append(numpy_helper.from_array(value, name))
    del graph.node[:]
    graph.node.extend(kept)
    graph.initializer.extend(made)
    return bool(made)


def _is_small(node: onnx.NodeProto, shapes: dict[str, onnx.TypeProto.Tensor]) -> bool:
    """Whether the results are known to have at most `MOST_ELEMENTS` elements; computing others may
    need any amount of memory."""
    for name in node.output:
        tensor = shapes.get(name)
        if tensor is None or not tensor.HasField("shape"):
            return False
        dims = tensor.shape.dim
        known = all(each.HasField("dim_value") for each in dims)
        if not known or math.prod(each.dim_value for each in dims) > MOST_ELEMENTS:
            return False
    return True


def _shape(node: onnx.NodeProto, shapes: dict[str, onnx.TypeProto.Tensor]) -> list[Array] | None:
    """The result of `Shape` or `Size` for a value of known shape; None for other nodes and
    values."""
    tensor = shapes.get(node.input[0]) if node.op_type in ("Shape", "Size") else None
    if tensor is None or not tensor.HasField("shape"):
        return None
    dims = list(tensor.shape.dim)
    if node.op_type == "Size":
        known = all(each.HasField("dim_value") for each in dims)
        return [np.array(np.prod([d.dim_value for d in dims]), np.int64)] if known else None
    given = {each.name: each.i for each in node.attribute}
    part = dims[given.get("start", 0) : given.get("end", len(dims))]
    if not all(each.HasField("dim_value") for each in part):
        return None
    return [np.array([each.dim_value for each in part], np.int64)]


def _evaluated(
    node: onnx.NodeProto, constants: dict[str, Array], model: onnx.ModelProto, floats: bool
) -> list[Array] | None:
    """The results of a node whose inputs are constants, by ONNX's own evaluator; None for a node
    that is not folded."""
    names = list(filter(None, node.input))
    if node.op_type in RANDOM or not all(name in constants for name in names):
        return None
    if any(attribute.g.node or attribute.graphs for attribute in node.attribute):
        return None
    graph = helper.make_graph(
        [node],
        "constant",
        [_value(name, constants[name]) for name in names],
        [helper.make_empty_tensor_value_info(name) for name in node.output],
    )
    single = helper.make_model(graph, opset_imports=model.opset_import)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = ReferenceEvaluator(single).run(None, {n: constants[n] for n in names})
    except Exception:  # whatever an op's Python raises: the node stays, and is told of later
        return None
    results = [np.asarray(each) for each in found if isinstance(each, np.ndarray | np.generic)]
    small = all(each.size <= MOST_ELEMENTS for each in results) and len(results) == len(found)
    taken = floats or node.op_type == "Constant" or all(r.dtype.kind in "iub" for r in results)
    return results if small and taken else None


def _value(name: str, array: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
    )
