"""Numbers from global memory: ``memref.load``."""

from __future__ import annotations

from tcir._mlir import ir, llvm
from tcir.dialect import tc
from tcir.errors import PassError

from .converter import Converter, GlobalTensor, lower


@lower("memref.load")
def convert_load(converter: Converter, op: ir.OpView) -> None:
    """A load executed by every thread; only of a tensor without dimensions."""
    source = converter.record(op.operation.operands[0], GlobalTensor)
    if source.shape or not isinstance(source.element, ir.F32Type):
        raise PassError(
            f"expected memref.load of memref<f32>, got {op.operation.operands[0].type}; other "
            "tensors are loaded by TMA"
        )
    pointer = converter.pointers[source.argument]
    converter.values[op.operation.results[0]] = llvm.load(
        source.element, pointer, alignment=tc.element_bytes(source.element)
    )
