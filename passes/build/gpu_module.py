"""The `gpu.module` that all kernels of a program share."""

from __future__ import annotations

from typing import Any

from tcir._mlir import gpu, ir

NAME = "kernels"


def kernels_block(module: ir.Module) -> Any:
    """The block of ``gpu.module @kernels`` in `module`, which is made if there is none yet."""
    for op in module.body.operations:
        if op.operation.name == "gpu.module":
            return op.operation.regions[0].blocks[0]
    with ir.InsertionPoint(module.body):
        made = gpu.GPUModuleOp(NAME)
    return made.regions[0].blocks.append()


def buffer_number(kernel: Any, argument: int) -> int:
    """The number of the buffer that argument `argument` of a tile-level kernel is: ``tc.args``."""
    attributes = kernel.operation.attributes
    return list(attributes["tc.args"])[argument] if "tc.args" in attributes else argument
