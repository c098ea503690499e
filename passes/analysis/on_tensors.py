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
                f"expected tensors, got {value.type} (tiling makes the buffers, in shared and "
                "tensor memory, and needs to know which op made each value); take tensors and "
                "return the result: lower before bufferisation, not after it\n"
                f"smallest accepted example: {SMALLEST_MATMUL}",
                value.location,
            )
