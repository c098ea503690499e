"""Translates the NVVM dialect to LLVM IR."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.codegen.worker import WORKER
from tcir.errors import InputError, format_location

# Ops of these dialects have a translation …
_TRANSLATED = ("llvm.", "nvvm.")
# … except those that exist to be rewritten into others first.
_NEEDS_CONVERSION = {"nvvm.inline_ptx", "nvvm.mbarrier.try_wait.parity"}


def kernel_module(module: ir.Module) -> ir.OpView:
    """The one `gpu.module` of `module`; `InputError` if there is none or more than one."""
    found = [op for op in module.body.operations if op.operation.name == "gpu.module"]
    if len(found) != 1:
        raise InputError(
            f"expected exactly one gpu.module, got {len(found)}; "
            "the pass convert-tc-to-nvvm creates it"
        )
    return found[0]


def translate(module: ir.Module) -> str:
    """Translates the kernels in `module` to LLVM IR; the module must have one `gpu.module` of llvm
    and nvvm ops.

    Locations become debug locations. `InputError` names an op that cannot be translated.
    """
    gpu_module = kernel_module(module)
    for op in gpu_module.regions[0].blocks[0].operations:
        _check(op.operation)
    bodies = (
        op.operation.get_asm(enable_debug_info=True, use_local_scope=True)
        for op in gpu_module.regions[0].blocks[0].operations
    )
    result: str = WORKER.call("translate", "\n".join(bodies), ".mlir")
    return result


def _check(op: ir.Operation) -> None:
    # Not `Operation.walk`: it turns what its callback raises into a RuntimeError.
    if not op.name.startswith(_TRANSLATED) or op.name in _NEEDS_CONVERSION:
        raise InputError(
            f"{format_location(op.location)}expected only ops of llvm and nvvm, got '{op.name}'; "
            "run the passes of tcir.passes.nvvm.lower_to_llvm first"
        )
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                _check(inner.operation)
