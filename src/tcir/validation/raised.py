"""A program whose block quantisation, where it is written in linalg, is one op.

Through that op errors are carried (`tcir.validation.quantised`); not through its shifts and masks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcir.passmanager.pipeline import Pipeline
from tcir.passmanager.remarks import remarks_to

if TYPE_CHECKING:
    from tcir._mlir import ir


def with_quantisation_raised(module: ir.Module) -> ir.Module:
    """A copy of the module after raise-quantise, without its remarks."""
    from tcir._mlir import ir

    copy = ir.Module.parse(module.operation.get_asm(print_generic_op_form=True), module.context)
    with remarks_to(lambda _, __: None):
        for each in Pipeline(["raise-quantise"]):
            each.run(copy)
    return copy
