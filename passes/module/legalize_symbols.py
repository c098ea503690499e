"""legalize-symbols: gives kernels and shared memory names that are legal in PTX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect.walk import nested
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.program.symbols import legal_symbol

SYMBOL = "tc.symbol"
_NAMED = ("llvm.func", "llvm.mlir.global")
_REFERENCES = ("callee", "global_name")


@register_pass
@dataclass(frozen=True)
class LegalizeSymbols(Pass):
    """Renames functions and variables of the ``gpu.module`` whose names are illegal in PTX.

    Before::

        gpu.module @kernels {
          llvm.func @main.1(%x: !llvm.ptr<1>) attributes {nvvm.kernel}
        }

    After::

        gpu.module @kernels {
          llvm.func @"main$2e$1"(%x: !llvm.ptr<1>) attributes {nvvm.kernel, tc.symbol = "main.1"}
        }

    PTX names consist of letters, digits, ``_`` and ``$`` (PTX ISA 4.4);
    `tcir.program.symbols.legal_symbol` is one-to-one. ``tc.symbol`` keeps the original name, which
    launch files and ``--entry`` use. The code generator runs this pass if a name is illegal; no
    pipeline contains it. Preserves every value, bit for bit.
    """

    name: ClassVar[str] = "legalize-symbols"

    def run(self, module: ir.Module) -> None:
        for op in _unspellable(module):
            given = _name(op)
            op.attributes["sym_name"] = ir.StringAttr.get(legal_symbol(given))
            op.attributes[SYMBOL] = ir.StringAttr.get(given)
            for user in nested(op.parent):
                for key in _REFERENCES:
                    held = user.operation.attributes
                    if key in held and ir.FlatSymbolRefAttr(held[key]).value == given:
                        held[key] = ir.FlatSymbolRefAttr.get(legal_symbol(given))


def has_unspellable(module: ir.Module) -> bool:
    """Whether the name of a kernel or a variable is illegal in PTX."""
    return bool(_unspellable(module))


def _unspellable(module: ir.Module) -> list[ir.Operation]:
    """Functions and variables to rename; one with the attribute was."""
    bodies = [op.operation for op in module.body if op.operation.name == "gpu.module"]
    named = (op.operation for each in bodies for op in each.regions[0].blocks[0])
    return [
        op
        for op in named
        if op.name in _NAMED
        and SYMBOL not in op.attributes
        and legal_symbol(_name(op)) != _name(op)
    ]


def _name(op: ir.Operation) -> str:
    return str(ir.StringAttr(op.attributes["sym_name"]).value)
