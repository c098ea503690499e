"""Checks that the input of a pipeline consists of functions on tensors, not on buffers."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.dialect.attributes import is_buffer
from tcir.errors import PassError
from tcir.passes.emit.diagnostics import SMALLEST_MATMUL
from tcir.passes.emit.tensor_functions import functions_with_body


def check_on_tensors(module: ir.Module) -> None:
    """Rejects the first function with memrefs that is not a tiled kernel (``tc.kernel``)."""
    for function in functions_with_body(module):
        if "tc.kernel" in function.attributes:
            continue
        results = [r for op in function.entry_block for r in op.operation.results]
        for value in filter(is_buffer, [*function.arguments, *results]):
            raise PassError(
                f"expected operands and results that are tensors, got {value.type} (the tiling "
                "passes create the buffers in shared and tensor memory, and for that they need to "
                "know which op made each value); run this pipeline before bufferisation, on "
                "functions that take tensors and return the result\nsmallest accepted example: "
                f"{SMALLEST_MATMUL}",
                value.location,
            )
