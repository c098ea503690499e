"""A context for all examples: to load the dialects into one takes ten times as long as to read an
example."""

from __future__ import annotations

from functools import cache

from tcir._mlir import ir
from tcir.program.source import mlir_context


@cache
def shared_context(*, allow_unregistered: bool = False) -> ir.Context:
    """The context of the tests of examples that accept ops of any dialect, or of the others."""
    with mlir_context(allow_unregistered=allow_unregistered) as context:
        return context
