"""Tables of rules: one function per op name, found in one step and open to user code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from tcir.errors import format_location

Rule = TypeVar("Rule", bound=Callable[..., Any])


class Rules(Generic[Rule]):
    """The rules of one level, by op name.

    Use an instance as a decorator, ``@rule("linalg.fill")``; a later rule for the same name
    replaces the earlier one, so user code can add ops and override ours.
    """

    def __init__(self, level: str) -> None:
        self.level = level
        self._rules: dict[str, Rule] = {}

    def __call__(self, *names: str) -> Callable[[Rule], Rule]:
        """Decorator: the function is the rule of every op in `names`."""

        def register(function: Rule) -> Rule:
            for name in names:
                self._rules[name] = function
            return function

        return register

    def __getitem__(self, name: str) -> Rule:
        return self._rules[name]

    def __contains__(self, name: str) -> bool:
        return name in self._rules

    def names(self) -> list[str]:
        """Every op with a rule, sorted."""
        return sorted(self._rules)

    def missing(self, operation: Any) -> list[str]:
        """One line per op nested in `operation` that has no rule, with its location."""
        return [
            f"{format_location(op.location)}{op.name}: no rule at {self.level} level"
            for op in nested(operation)
            if op.name not in self._rules
        ]


def nested(operation: Any) -> Iterator[Any]:
    """The operations inside `operation`'s regions, in program order, outer before inner."""
    for region in operation.regions:
        for block in region.blocks:
            for op in block.operations:
                yield op.operation
                yield from nested(op.operation)


def site_of(operation: Any) -> str:
    """What a report shows for an op: its location and its name."""
    return f"{format_location(operation.location)}{operation.name}"
