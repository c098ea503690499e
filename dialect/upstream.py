"""Tables of facts about upstream ops; passes, bounds and launches look an op up by its name.

A table lists classes such as `arith.AddFOp`, because a misspelled class is an error at import, and
an editor can go to the definition of a class. Ops of dialects whose classes are not imported here
are listed by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypeVar

from tcir._mlir import arith, ir, tensor

WITHOUT_CLASSES = ("affine", "builtin", "cf", "gpu", "linalg", "llvm", "math", "nvvm")
"""Dialects listed by name. Their ops have no classes here: the bindings' modules are imported late
or not at all, since linalg's takes longer than all others together (`tcir._mlir_dialects`)."""

OpKey: TypeAlias = type[ir.OpView] | str
T = TypeVar("T")


def name_of(op: OpKey) -> str:
    """Name of an op, given by its class or by its name. Raises TypeError for a name if the op has a
    class in the bindings, because the class must be used then."""
    if not isinstance(op, str):
        return str(op.OPERATION_NAME)
    if op.partition(".")[0] not in WITHOUT_CLASSES:
        raise TypeError(
            f"expected the class of {op}, or an op of {', '.join(WITHOUT_CLASSES)}, got its name"
        )
    return op


def names(*ops: OpKey) -> frozenset[str]:
    """Names of the given ops, each given by its class or by its name."""
    return frozenset(map(name_of, ops))


def by_name(table: Mapping[OpKey, T]) -> dict[str, T]:
    """Copies a table whose keys are op classes or op names; the keys of the copy are names."""
    return {name_of(op): fact for op, fact in table.items()}


MAXIMA = names(arith.MaximumFOp, arith.MaxNumFOp)
"""Largest of two floats: the first gives NaN where one operand is NaN, the second the other one."""
RESHAPES = (tensor.CollapseShapeOp, tensor.ExpandShapeOp)
"""Ops whose result has the bytes of their operand: other dimensions, elements in the same order."""
FLOAT_TO_INTEGER = names(arith.FPToSIOp, arith.FPToUIOp)
