"""Reads ONNX models. This is done in a child process, because files may be damaged or malicious."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import helper, inliner, shape_inference

from tcir.errors import InputError, did_you_mean
from tcir.files import read_bytes
from tcir.onnx.folding import folded
from tcir.onnx.model import ModelValue, Shapes

MOST_BYTES = (1 << 31) - 1
"""Maximum size in bytes of a model with its weights: protobuf's limit of a message."""
MOST_ELEMENTS = 1 << 40
"""Maximum number of elements of a tensor of a model; shape inference allocates memory for them."""
WAY_OUT = (
    "nothing else runs them; compute these outside of the model, or export it with others (in a "
    "newer opset, without ops of a runtime's own domain)"
)
NESTED = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def read(path: str, data: bytes | None) -> onnx.ModelProto:
    """Reads a model from a file with its external data, or from bytes. Raises InputError for data
    that is not a valid model.
    """
    model = onnx.ModelProto()
    try:
        model.ParseFromString(read_bytes(path) if data is None else data)
    except DecodeError as error:
        raise InputError(
            f"expected an ONNX model, got a file that is damaged or not a model ({error})"
        ) from error
    if not model.graph.node and not model.graph.output:
        raise InputError("expected an ONNX model, got one without a graph; onnx.save writes it")
    _check_names(model.graph)
    _load_external(model, path if data is None else "")
    if model.ByteSize() > MOST_BYTES:
        raise InputError(
            f"expected a model of at most 2 GiB with its weights, got {model.ByteSize()} bytes: "
            "weights are constants of the program; split the model and compile the parts"
        )
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError) as error:
        raise InputError(f"ONNX's checker rejects the model: {_line(error)}") from error
    model = inliner.inline_local_functions(model) if model.functions else model
    _check_domains(model)
    return model


def _check_domains(model: onnx.ModelProto) -> None:
    foreign = [node for node in nodes_of(model.graph) if node.domain not in ("", "ai.onnx")]
    if foreign:
        words = ", ".join(f"{label(node)} of {node.domain}" for node in foreign[:8])
        more = f" and {len(foreign) - 8} more" if len(foreign) > 8 else ""
        raise InputError(f"expected ops of ONNX's own domain, got {words}{more}: {WAY_OUT}")


def _check_names(graph: onnx.GraphProto) -> None:
    """Raises InputError for a name that is not UTF-8; protobuf would return its bytes or raise at
    each use."""
    try:
        names = [graph.name, *(each.name for each in graph.initializer)]
        for value in (*graph.input, *graph.output, *graph.value_info):
            symbols = (dim.dim_param for dim in value.type.tensor_type.shape.dim)
            names += [value.name, *symbols]
        for node in nodes_of(graph):
            names += [node.name, node.op_type, node.domain, *node.input, *node.output]
            names += [attribute.name for attribute in node.attribute]
    except UnicodeDecodeError as error:
        raise InputError(f"expected names in UTF-8, got {error.object!r:.60}") from error
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"expected names in UTF-8, got {name!r:.60}")


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """All tensors of a graph: its weights and the constants of nodes."""
    yield from graph.initializer
    for node in nodes_of(graph):
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                yield from inner.initializer


def _load_external(model: onnx.ModelProto, path: str) -> None:
    outside = [
        each for each in _tensors(model.graph) if each.data_location == onnx.TensorProto.EXTERNAL
    ]
    if not outside:
        return
    if not path:
        raise InputError(
            f"expected a model with its weights, got {outside[0].name!r} in a file of its own: "
            "give the model's path, or onnx.load_external_data_for_model(model, folder) first"
        )
    try:
        onnx.load_external_data_for_model(model, str(Path(path).parent))
    except Exception as error:  # onnx raises what it likes for data that is missing or outside
        raise InputError(f"the model's external data must be next to it: {_line(error)}") from error


def specialised(model: onnx.ModelProto, shapes: Shapes) -> onnx.ModelProto:
    """The model with the given shapes of its inputs and the inferred shapes of all values.

    shapes: shape and type of each input, by name or in the model's order

    Raises InputError for inputs that the model does not have, and for a value whose shape depends
    on data.
    """
    _set_inputs(model, shapes)
    name_nodes(model)
    declared = {
        each.name: onnx.ValueInfoProto.FromString(each.SerializeToString())
        for each in model.graph.output
    }
    del model.graph.value_info[:]
    for each in model.graph.output:
        each.type.tensor_type.ClearField("shape")
    return inferred(model, declared)


def inferred(
    model: onnx.ModelProto, declared: Mapping[str, onnx.ValueInfoProto], *, floats: bool = False
) -> onnx.ModelProto:
    """The model with the type and shape of each value, and with constants folded.

    declared: types and shapes of outputs, used where they cannot be inferred from the model
    floats:   see `folded`

    Raises InputError for a value whose shape depends on data.
    """
    changed = True
    while changed:
        try:
            model = shape_inference.infer_shapes(
                model, check_type=True, strict_mode=True, data_prop=True
            )
        except (shape_inference.InferenceError, ValueError, RuntimeError) as error:
            raise InputError(
                f"expected inputs whose shapes fit the model: {_line(error)}"
            ) from error
        changed = folded(model, floats=floats)
    for each in model.graph.output:
        if not is_static(each) and is_static(declared.get(each.name, each)):
            each.CopyFrom(declared[each.name])
    known = {each.name: each for each in (*model.graph.value_info, *model.graph.output)}
    for node in model.graph.node:
        for name in filter(None, node.output):
            _check_value(node, name, known.get(name))
    return model


def _set_inputs(model: onnx.ModelProto, shapes: Shapes) -> None:
    expected = inputs_of(model)
    names = [each.name for each in expected]
    if not isinstance(shapes, Mapping):
        if len(shapes) > len(expected):
            raise InputError(
                f"expected {len(names)} inputs ({', '.join(names)}), got {len(shapes)}"
            )
        shapes = dict(zip(names, shapes, strict=False))
    for name in shapes:
        if name not in names:
            raise InputError(
                f"expected inputs of the model, got {name!r}{did_you_mean(name, names)}"
            )
    named: dict[str, tuple[int, str]] = {}
    for each in expected:
        symbols = [dim.dim_param for dim in each.type.tensor_type.shape.dim]
        _set_input(each, shapes.get(each.name))
        for symbol, size in zip(symbols, value_of(each).shape, strict=False):
            before, where = named.setdefault(symbol, (size, each.name))
            if symbol and before != size:
                raise InputError(
                    f"input {each.name!r}: expected the dimension {symbol!r} to be {before}, as in "
                    f"{where!r}, got {size}"
                )


def _set_input(value: onnx.ValueInfoProto, given: tuple[tuple[int, ...], str] | None) -> None:
    """Fixes the shape of an input. InputError for a shape or type that the model does not accept,
    and for an input that kernels do not support."""
    tensor = value.type.tensor_type
    if value.type.WhichOneof("value") != "tensor_type":
        raise InputError(
            f"input {value.name!r}: expected a tensor, got {value.type.WhichOneof('value')}: "
            "kernels have no other arguments"
        )
    own = dtype_of(tensor.elem_type)
    if own.kind in "OSUc":
        raise InputError(
            f"input {value.name!r}: expected real numbers, got "
            f"{onnx.TensorProto.DataType.Name(tensor.elem_type)}: kernels support no other elements"
        )
    dims = [
        each.dim_value if each.HasField("dim_value") else each.dim_param or "?"
        for each in tensor.shape.dim
    ]
    words = f"[{', '.join(map(str, dims))}]"
    if given is None:
        if any(type(each) is int and each < 0 for each in dims):
            raise InputError(f"input {value.name!r}: expected sizes of at least 0, got {words}")
        if not is_static(value):
            raise InputError(
                f"input {value.name!r}: expected a shape for {words}, got none: kernels have fixed "
                f"shapes; give an array or a shape (--shape {value.name}=1x3x224x224)"
            )
        return
    shape, dtype = given
    if dtype and own.name != dtype:
        raise InputError(f"input {value.name!r}: expected an array of {own}, got {dtype}")
    fits = not tensor.HasField("shape") or (
        len(dims) == len(shape)
        and all(isinstance(d, str) or d == n for d, n in zip(dims, shape, strict=True))
    )
    if not fits or any(n < 0 for n in shape):
        raise InputError(f"input {value.name!r}: expected the shape {words}, got {list(shape)}")
    del tensor.shape.dim[:]
    tensor.shape.dim.extend(onnx.TensorShapeProto.Dimension(dim_value=n) for n in shape)


def inputs_of(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs of a model: those without an initializer."""
    weights = {each.name for each in model.graph.initializer}
    return [each for each in model.graph.input if each.name not in weights]


def value_of(value: onnx.ValueInfoProto) -> ModelValue:
    """Name, shape and type of an input or output."""
    tensor = value.type.tensor_type
    shape = tuple(each.dim_value for each in tensor.shape.dim)
    return ModelValue(value.name, shape, dtype_of(tensor.elem_type))


def dtype_of(kind: int) -> np.dtype:
    """The numpy (or ml_dtypes) type for a `TensorProto.DataType`. Raises InputError for a number
    that is not an ONNX type.
    """
    try:
        return np.dtype(helper.tensor_dtype_to_np_dtype(kind))
    except (KeyError, TypeError) as error:
        raise InputError(f"expected an element type of ONNX, got the number {kind}") from error


def is_static(value: onnx.ValueInfoProto) -> bool:
    """Whether the value is a tensor of known shape."""
    tensor = value.type.tensor_type
    known = value.type.HasField("tensor_type") and tensor.HasField("shape")
    return known and all(each.HasField("dim_value") for each in tensor.shape.dim)


def label(node: onnx.NodeProto) -> str:
    """Describes a node in messages: its op and its name."""
    return f"{node.op_type} {node.name!r}"


def name_nodes(model: onnx.ModelProto) -> None:
    """Gives each node without a name the name of its first output."""
    for node in nodes_of(model.graph):
        node.name = node.name or next(filter(None, node.output), "")


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """All nodes of a graph, including the nodes of its branches and loops."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type in NESTED:
                for inner in (attribute.g, *attribute.graphs):
                    yield from nodes_of(inner)


def _check_value(node: onnx.NodeProto, name: str, value: onnx.ValueInfoProto | None) -> None:
    if value is not None and not value.type.HasField("tensor_type"):
        raise InputError(
            f"{label(node)}: expected tensors, got {name!r} of {value.type.WhichOneof('value')}: "
            "kernels have no sequences, maps or optional values"
        )
    if value is None or not is_static(value):
        raise InputError(
            f"{label(node)}: expected results of a shape that follows from those of the inputs, "
            f"got {name!r}: kernels have fixed shapes; compute it outside of the model"
        )
    shape = [each.dim_value for each in value.type.tensor_type.shape.dim]
    if math.prod(shape) > MOST_ELEMENTS:
        raise InputError(f"{label(node)}: expected at most 2^40 elements, got {name!r} of {shape}")


def _line(error: Exception) -> str:
    """The message of onnx's error as one line of at most 300 characters."""
    return " ".join(str(error).split())[:300]
