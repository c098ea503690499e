"""Decomposes linalg.pack and linalg.unpack."""

from __future__ import annotations

from tcir._mlir import import_bindings, ir
from tcir.dialect.walk import walk

PACKS = ("linalg.pack", "linalg.unpack")
LOWERED = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @lower(%root: !transform.any_op {transform.readonly}) {
    %packs = transform.structured.match ops{["linalg.pack"]} in %root
        : (!transform.any_op) -> !transform.op<"linalg.pack">
    transform.structured.lower_pack %packs : (!transform.op<"linalg.pack">) -> (
        !transform.op<"tensor.pad">, !transform.op<"tensor.expand_shape">,
        !transform.op<"linalg.transpose">)
    %unpacks = transform.structured.match ops{["linalg.unpack"]} in %root
        : (!transform.any_op) -> !transform.op<"linalg.unpack">
    transform.structured.lower_unpack %unpacks : (!transform.op<"linalg.unpack">) -> (
        !transform.op<"tensor.empty">, !transform.op<"linalg.transpose">,
        !transform.op<"tensor.collapse_shape">, !transform.op<"tensor.extract_slice">,
        !transform.op<"linalg.copy">)
    transform.yield
  }
}
"""


def lower_packs(module: ir.Module) -> None:
    """Replaces every ``linalg.pack`` and ``linalg.unpack`` by padding or a slice, a transpose, and
    reshapes, as upstream does."""
    if any(op.operation.name in PACKS for op in walk(module.operation)):
        script = ir.Module.parse(LOWERED)
        interpreter = import_bindings("dialects.transform.interpreter")
        interpreter.apply_named_sequence(module.operation, script.body.operations[0], script)
