"""Converts an ONNX model to `linalg` with torch-mlir's importer; runs in a child process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import onnx

from tcir._mlir import import_bindings, ir, is_mlir_error, passmanager
from tcir.errors import InputError
from tcir.onnx.precision import SUMS, with_wide
from tcir.onnx.reading import inferred, label, nodes_of
from tcir.onnx.rewrites import rewritten

_TORCH = "builtin.module(torch-onnx-to-torch-backend-pipeline)"
_LINALG = (
    "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true})"
)
KNOWN = ("arith", "builtin", "cf", "complex", "func", "linalg", "math", "scf", "tensor")
"""Dialects that imported programs may contain."""


def linalg(model: onnx.ModelProto) -> str:
    """The `linalg` program of a model with fixed shapes. Raises InputError, which names the node
    that cannot be lowered.
    """
    declared = {each.name: each for each in model.graph.output}
    plain = inferred(rewritten(model), declared, floats=True)
    wide = inferred(with_wide(plain, SUMS), declared)
    labels = {}
    for number, node in enumerate(nodes_of(wide.graph)):
        labels[f"node {number}"] = label(node)
        node.name = f"node {number}"
    wide.graph.name = re.sub(r"\W", "_", model.graph.name) or "main"
    return _lowered(wide, labels)


def _lowered(model: onnx.ModelProto, labels: dict[str, str]) -> str:
    importer = import_bindings("extras.onnx_importer")
    with ir.Context() as context, _diagnostics(context) as said:
        import_bindings("_mlir_libs._torchMlir").register_dialect(context)
        info = importer.ModelInfo(model)
        module = info.create_module(context=context).operation
        try:
            importer.NodeImporter.define_function(info.main_graph, module).import_all()
            for pipeline in (_TORCH, _LINALG):
                passmanager.PassManager.parse(pipeline).run(module)
        except importer.OnnxImportError as error:
            raise InputError(f"torch-mlir cannot import it: {str(error)[:300]}") from error
        except Exception as error:
            if is_mlir_error(error):
                raise InputError(_first([*said, ("", str(error))], labels)) from error
            raise
        _check_ops(module, labels)
        return _named(str(module.get_asm(enable_debug_info=True)), labels)


@contextmanager
def _diagnostics(context: ir.Context) -> Iterator[list[tuple[str, str]]]:
    """Collects the location and text of each diagnostic instead of printing it."""
    said: list[tuple[str, str]] = []

    def keep(diagnostic: ir.Diagnostic) -> bool:
        said.append((str(diagnostic.location), diagnostic.message))
        return True

    context.emit_error_diagnostics = True
    handler = context.attach_diagnostic_handler(keep)
    try:
        yield said
    finally:
        handler.detach()


def _named(text: str, labels: dict[str, str]) -> str:
    """The program's text, with the model's names of nodes in its locations."""
    return re.sub(r'loc\("(node \d+)"', lambda found: f'loc("{_escaped(labels[found[1]])}"', text)


def _escaped(text: str) -> str:
    return re.sub(r'["\\\x00-\x1f]', "_", text)


def _first(said: list[tuple[str, str]], labels: dict[str, str]) -> str:
    """Text of the first diagnostic, with the node at its location."""
    location, message = said[0]
    return f"{_place(location, labels)}{message.splitlines()[0][:300]}"


def _check_ops(module: ir.Operation, labels: dict[str, str]) -> None:
    """Raises InputError for an op of another dialect (`KNOWN`) and for a result whose shape is
    dynamic, that is, depends on numbers."""

    failed: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        dynamic = [str(each.type) for each in op.results if "?" in str(each.type)]
        if op.name.partition(".")[0] not in KNOWN:
            failed.append(f"{_place(op.location, labels)}{op.name} is not lowered")
        elif dynamic:
            failed.append(
                f"{_place(op.location, labels)}expected shapes that follow from those of the "
                f"inputs, got {dynamic[0]}: kernels have fixed shapes"
            )
        return ir.WalkResult.INTERRUPT if failed else ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    if failed:
        raise InputError(failed[0])


def _place(location: object, labels: dict[str, str]) -> str:
    node = re.search(r"node \d+", str(location))
    return f"{labels[node[0]]}: " if node else ""
