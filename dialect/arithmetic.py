"""Sets of ops that do the same kind of arithmetic: upstream ops are listed by name, ops of the
project's own dialects by a trait of their class."""

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
    """A set of ops. Upstream ops belong to it by name, other ops by the trait ``arithmetic`` of
    their class (`tcir.dialect.operation.Traits`)."""

    names: frozenset[str] = frozenset()
    declared: frozenset[operation.Arithmetic] = frozenset()

    @staticmethod
    def of(*declared: operation.Arithmetic) -> Arithmetic:
        """Returns the ops of the project's dialects whose class declares one of the given kinds of
        arithmetic."""
        return Arithmetic(declared=frozenset(declared))

    def __or__(self, other: Arithmetic | Set[str]) -> Arithmetic:
        more = other if isinstance(other, Arithmetic) else Arithmetic(frozenset(other))
        return Arithmetic(self.names | more.names, self.declared | more.declared)

    def has(self, op: ir.Operation) -> bool:
        """Whether the op is in the set. A structured op is looked up by its own name, not by the
        ops of its body."""
        return op.name in self.names or traits_of(op).arithmetic in self.declared
