"""Decomposes linalg.softmax."""

from __future__ import annotations

from tcir._mlir import import_bindings, ir
from tcir.dialect.walk import walk

DECOMPOSED = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @decompose(%root: !transform.any_op {transform.readonly}) {
    %ops = transform.structured.match ops{["linalg.softmax"]} in %root
        : (!transform.any_op) -> !transform.any_op
    %made = transform.structured.decompose_interface %ops : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
"""


def decompose_softmax(module: ir.Module) -> None:
    """Replaces every ``linalg.softmax`` by a maximum, exponentials, their sum, and quotients, as
    upstream does: two reductions and elementwise ops over its dimension."""
    if any(op.operation.name == "linalg.softmax" for op in walk(module.operation)):
        script = ir.Module.parse(DECOMPOSED)
        interpreter = import_bindings("dialects.transform.interpreter")
        interpreter.apply_named_sequence(module.operation, script.body.operations[0], script)
