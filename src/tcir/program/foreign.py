"""Detects programs in dialects that tools other than tcir lower, so that errors can name the
dialect and the tool.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tcir.errors import PassError

if TYPE_CHECKING:
    from tcir._mlir import ir

_STABLEHLO = (
    "StableHLO; `torch-mlir-opt FILE --stablehlo-legalize-to-linalg` (of the wheel torch-mlir) "
    "converts it to linalg; tcir.jax.compile does so for a function"
)
_ONNX = "ONNX; tcir.onnx.compile, or `python -m tcir.onnx model.onnx`, compiles the model itself"
_TRITON = "Triton; `python -m tcir.triton script.py` runs its kernels"
UNREAD = {
    "stablehlo": _STABLEHLO,
    "chlo": _STABLEHLO + "; jax.export writes other ops instead",
    "vhlo": _STABLEHLO,
    "mhlo": "MHLO, which StableHLO has replaced; convert it to that first",
    "torch": "torch-mlir; `torch-mlir-opt FILE --pass-pipeline='builtin.module("
    "torch-backend-to-linalg-on-tensors-backend-pipeline)'` (of the wheel torch-mlir) converts "
    "it to linalg; tcir.torch.compile does so for a module",
    "torch_c": "torch-mlir between its passes; run its pipeline to the end",
    "tm_tensor": "torch-mlir (sorts, scans, scatters), which no pipeline lowers; compute these "
    "outside the program, or import the model with tcir.torch.compile, which leaves them out",
    "onnx": _ONNX,
    "tt": _TRITON,
    "ttg": _TRITON,
    "ttng": _TRITON,
}
"""Dialect that the bindings do not have -> its project, and how to lower it."""
UNLOWERED = {
    "tosa": "TOSA; `tc-opt FILE --pass-pipeline='builtin.module(func.func(tosa-to-linalg-named,"
    "tosa-to-linalg,tosa-to-arith,tosa-to-tensor),canonicalize)'` converts it to linalg",
}
"""Dialect that is read but lowered by no pass of tcir -> its project, and how to lower it."""
BYTECODE = b"ML\xefR"
"""First bytes of a file of MLIR bytecode."""
_OP = re.compile(rf'^(\s*(?:%[^="\n]*= )?)"?({"|".join(UNREAD)})(\.[\w.]+)', re.MULTILINE)


def check_dialects(text: str, name: str, context: ir.Context) -> None:
    """Raises MLIRError, with a diagnostic at the first op that the MLIR bindings do not have."""
    from tcir._mlir import ir

    found = _OP.search(text)
    if found is None or context.allow_unregistered_dialects:
        return
    line = text.count("\n", 0, found.start(2)) + 1
    column = found.start(2) - text.rfind("\n", 0, found.start(2))
    ir.Location.file(name, line, column, context).emit_error(
        f"expected ops of dialects that pipelines lower, got {found[2]}{found[3]} of "
        f"{UNREAD[found[2]]}"
    )
    raise ir.MLIRError("in a dialect that is lowered elsewhere", [])


def check_lowered(module: ir.Module) -> None:
    """Raises `PassError` at the first op that no pass of tcir can lower."""
    from tcir._mlir import ir

    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.partition(".")[0] in UNLOWERED:
            found.append(op)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    if found:
        op = found[0]
        raise PassError(
            f"expected ops of dialects that pipelines lower, got {op.name} of "
            f"{UNLOWERED[op.name.partition('.')[0]]}",
            op.location,
        )
