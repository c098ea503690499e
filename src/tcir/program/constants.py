"""The constants of a program: buffers that come after the caller's inputs, and that no caller
passes.

Attributes of the `builtin.module`:

``tc.constants``: the values of the constants, in the order of their numbers
``tc.folded``:    names of the launches that computed some of the constants at compile time
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcir._mlir import ir
    from tcir.interp.types import Array

CONSTANTS, FOLDED = "tc.constants", "tc.folded"


def constants_of(module: ir.Module) -> list[ir.DenseElementsAttr]:
    """Returns the values of the constants of `module`."""
    attributes = module.operation.attributes
    return list(attributes[CONSTANTS]) if CONSTANTS in attributes else []


def constant_arrays(module: ir.Module) -> list[Array]:
    """Returns the values of the constants of `module` as arrays of their elements' types."""
    values = constants_of(module)
    if not values:
        return []
    from tcir.interp.types import constant  # needs numpy

    with module.context:
        return [constant(each, each.type) for each in values]


def folded_launches(module: ir.Module) -> tuple[str, ...]:
    """Returns the names of the launches that computed constants of `module` at compile time."""
    attributes = module.operation.attributes
    names = attributes.get(FOLDED, ())
    return tuple(str(each.value) for each in names)
