"""`tcir.onnx.compile`: compiles an ONNX model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from tcir.errors import Error, InputError, InternalError
from tcir.imported.program import ModelPart
from tcir.onnx.children import readers
from tcir.onnx.compiled import Compiled
from tcir.onnx.model import Shapes
from tcir.passmanager.pipeline import as_pipeline
from tcir.progress import compiling
from tcir.session.apart import compilers
from tcir.session.session import check_target
from tcir.target import DEFAULT_TARGET


def compile(
    model: object,
    inputs: Mapping[str, object] | Sequence[object] = (),
    *,
    pipeline: str = "layers",
    target: str = DEFAULT_TARGET.name,
) -> Compiled:
    """Compiles an ONNX model, as a whole, to a kernel.

    model:  a path (external data is next to it), or an `onnx.ModelProto`
    inputs: arrays, or shapes as tuples, by input name or in the model's order; they fix the model's
        dynamic dimensions. Inputs of fixed shape may be left out

    torch-mlir's importer converts the model to `linalg`; weights become constants. Sums of f16 and
    bf16 are computed in f32; f32 is multiplied as tf32. Raises InputError for a file that is not a
    model, for inputs that do not match the model's, and for ops that cannot be lowered, which the
    error names; no part falls back to another runtime.
    """
    as_pipeline(pipeline)
    check_target(pipeline, target)
    path, data = _source(model)
    compilers().start()  # while another child imports the model
    try:
        imported = readers().imported(path, data, _shapes(inputs))
        try:
            with compiling("tcir.onnx", len(imported.nodes)):
                kernel = compilers().compile(imported.mlir, pipeline, target)
        except InternalError:
            raise
        except Error as error:
            readers().explain(str(error), imported.data, pipeline, target)
    except InternalError:
        raise
    except Error as error:
        raise InputError(f"{path}: {error}") from error
    ops = tuple(each.partition(" ")[0] for each in imported.nodes)
    return Compiled(path, imported, ModelPart(ops, kernel, imported.mlir, pipeline), target)


def _source(model: object) -> tuple[str, bytes | None]:
    """A model's path and None, or for a `ModelProto` its name and its bytes. InputError for other
    objects and for models of more than 2 GiB."""
    if isinstance(model, str | os.PathLike):
        return os.fspath(model), None
    if not hasattr(model, "graph") or not hasattr(model, "SerializeToString"):
        raise InputError(
            f"onnx.compile: expected a path or an onnx.ModelProto, got {type(model).__name__}"
        )
    try:
        return f"model {model.graph.name!r}", model.SerializeToString()
    except Exception as error:  # protobuf's own, of a message of more than 2 GiB
        raise InputError(f"onnx.compile: expected a model of at most 2 GiB: {error}") from error


def _shapes(inputs: object) -> Shapes:
    """Shape and type of each given input, by name or in order."""
    if isinstance(inputs, Mapping):
        return {str(name): _shape(str(name), value) for name, value in inputs.items()}
    if not isinstance(inputs, Sequence) or isinstance(inputs, str):
        inputs = [inputs]
    return [_shape(str(number), value) for number, value in enumerate(inputs)]


def _shape(name: str, value: object) -> tuple[tuple[int, ...], str]:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return tuple(map(int, value.shape)), str(value.dtype)
    if isinstance(value, tuple | list) and all(type(each) is int for each in value):
        return tuple(value), ""
    raise InputError(
        f"onnx.compile: input {name}: expected an array, or a shape as a tuple of integers, got "
        f"{type(value).__name__}"
    )
