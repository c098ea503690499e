"""Main module of the child process that `tcir.onnx.children` starts; only this process reads a
model's bytes.
"""

from __future__ import annotations

import onnx

from tcir.errors import InputError
from tcir.interp.types import Array
from tcir.onnx.asking import refused
from tcir.onnx.evaluator import evaluated
from tcir.onnx.lowering import linalg
from tcir.onnx.model import Imported, Shapes
from tcir.onnx.precision import in_f64, with_wide
from tcir.onnx.reading import WAY_OUT, inputs_of, label, read, specialised, value_of
from tcir.passmanager.pipeline import as_pipeline
from tcir.program.source import load_module, mlir_context
from tcir.session._apart_main import serve
from tcir.session.session import Session


def imported(path: str, *, data: bytes | None, shapes: Shapes) -> Imported:
    """Reads a model from a file, or from bytes, and imports it for inputs of these shapes."""
    model = specialised(read(path, data), shapes)
    try:
        mlir = linalg(model)
    except InputError as error:
        raise _told(error, refused(model, linalg), "torch-mlir has linalg for") from error
    return Imported(
        model.SerializeToString(),
        mlir,
        tuple(map(value_of, inputs_of(model))),
        tuple(map(value_of, model.graph.output)),
        tuple(label(each) for each in model.graph.node if each.op_type != "Constant"),
    )


def _told(error: InputError, ops: dict[str, str], who: str) -> InputError:
    """The error to report: `error`, or if `ops` names the rejected ops, an error that lists them.

    who: completes "expected ops that …"
    """
    if not ops:
        return error
    lines = "".join(f"\n  {op}: {reason}" for op, reason in ops.items())
    return InputError(f"expected ops that {who}, got {len(ops)} others; {WAY_OUT}:{lines}")


def explained(error: str, *, data: bytes, pipeline: str, target: str) -> None:
    """Raises a pipeline's error again. If the pipeline also rejects some of the model's ops on
    their own, the error lists these ops.
    """

    def attempt(model: onnx.ModelProto) -> None:
        with mlir_context() as context:
            module = load_module(linalg(model), context)
            Session(module, as_pipeline(pipeline), target=target).run_passes()

    model = onnx.ModelProto.FromString(data)
    raise _told(InputError(error), refused(model, attempt), f"pipeline {pipeline!r} lowers")


def reference(name: str, *, data: bytes, inputs: list[Array], wide: bool) -> list[Array]:
    """The results of ONNX's own evaluator, in f64, or node by node in f32.

    Values of f16 and bf16 are summed in f32 or a wider type. name: name of the model, for errors.
    """
    model = onnx.ModelProto.FromString(data)
    names = [each.name for each in inputs_of(model)]
    types = [value_of(each).dtype for each in inputs_of(model)]
    given = [
        each.view(kind) if each.dtype.kind in "iu" else each
        for each, kind in zip(inputs, types, strict=True)
    ]
    if wide:
        given = [
            each.astype("float64") if kind.kind not in "iub" else each
            for each, kind in zip(given, types, strict=True)
        ]
    try:
        made = in_f64(model) if wide else with_wide(model)
        return evaluated(made, dict(zip(names, given, strict=True)))
    except Exception as error:  # whatever an op's Python raises
        raise InputError(f"cannot run {name}: {type(error).__name__}: {error}") from error


def main() -> None:
    """Answers requests that arrive on stdin, until stdin is closed."""
    serve({"imported": imported, "explained": explained, "reference": reference})
