"""Sets of ops with the same arithmetic: upstream ops by name, ops of our dialects by trait."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcir.dialect import operation
from tcir.dialect.operation import traits_of

if TYPE_CHECKING:
    from tcir._mlir import ir


@dataclass(frozen=True)
class Arithmetic:
    """A set of ops: by name, or by the trait ``arithmetic`` (`tcir.dialect.operation.Traits`)."""

    names: frozenset[str] = frozenset()
    declared: frozenset[operation.Arithmetic] = frozenset()

    @staticmethod
    def of(*declared: operation.Arithmetic) -> Arithmetic:
        """Returns the ops whose class declares one of these kinds of arithmetic."""
        return Arithmetic(declared=frozenset(declared))

    def __or__(self, other: Arithmetic | Set[str]) -> Arithmetic:
        more = other if isinstance(other, Arithmetic) else Arithmetic(frozenset(other))
        return Arithmetic(self.names | more.names, self.declared | more.declared)

    def has(self, op: ir.Operation) -> bool:
        """Whether the op is in the set; a structured op counts by its own name, not by its body."""
        return op.name in self.names or traits_of(op).arithmetic in self.declared
