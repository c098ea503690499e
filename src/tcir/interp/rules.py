"""Tables of rules: one function per op, found by one lookup. User code can add rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tcir.dialect.walk import nested
from tcir.errors import format_location

if TYPE_CHECKING:
    from tcir._mlir import ir

Rule = TypeVar("Rule", bound=Callable[..., Any])


class Rules(Generic[Rule]):
    """The rules of one level of programs, by op.

    Use an instance as a decorator, ``@execute(tc.MmaOp)``. The ops of upstream dialects are given
    by name, ``@execute("scf.for")``, so that their classes need not be imported. A later rule for
    the same op replaces the earlier one, so user code can add ops and replace the rules of tcir.
    """

    def __init__(self, level: str) -> None:
        self.level = level
        self._rules: dict[str, Rule] = {}

    def __call__(self, *ops: str | type[ir.OpView]) -> Callable[[Rule], Rule]:
        """Decorator: the function is the rule of every op in `ops`."""

        def register(function: Rule) -> Rule:
            for op in ops:
                self._rules[op if isinstance(op, str) else op.OPERATION_NAME] = function
            return function

        return register

    def __getitem__(self, name: str) -> Rule:
        return self._rules[name]

    def __contains__(self, name: str) -> bool:
        return name in self._rules

    def names(self) -> list[str]:
        """Names of all ops with a rule, sorted."""
        return sorted(self._rules)

    def missing(self, operation: ir.Operation) -> list[str]:
        """One line of text for each op nested in `operation` that has no rule, with its
        location.
        """
        sites = dict.fromkeys(
            site_of(op) for op in nested(operation) if op.operation.name not in self._rules
        )
        return [f"{site}: no rule at {self.level} level" for site in sites]


def site_of(op: ir.OpView | ir.Operation) -> str:
    """How reports name an op: its location and its name."""
    return f"{format_location(op.location)}{op.operation.name}"
