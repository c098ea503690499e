"""Verifier rules as data: each rule has one error message and one source.

A rule is a function of one operation that returns ``None`` if the operation keeps the rule, else
the values for the message. The functions are next to their ops::

    @verify(
        MmaOp,
        "n-range",
        "PTX ISA 9.7.16.2, table 39",
        "N must be {legal}, got {n}",
        bad={"array<i64: 64, 64>": "array<i64: 20, 64>"},
    )
    def _(op: MmaOp) -> Broken:
        return None if ... else {"legal": ..., "n": n}

``bad`` is a counter-example: the op's ``example`` with these changes breaks this rule. ``good`` has
changes after which the example still keeps the rule, for example at a limit or with attributes that
the example does not have. A rule with neither ``bad`` nor ``good`` has its two examples in
``test/dialect/pairs``.

Rules of one op run in the order of their definition and stop at the first broken one, so each may
rely on the rules above it. ``!tc.smem`` and other types also have rules: they run for every operand
and result of that type before the rules of the op itself. Rules about a whole kernel are in
`tcir.dialect.kernel`. The documentation and the tests iterate over `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tcir._mlir import ir
from tcir.dialect.attributes import UNSIGNED, integers, not_arrays
from tcir.dialect.declared import as_declared, wrong_sizes
from tcir.dialect.types import RingType

Broken = Mapping[str, object] | None
Function = TypeVar("Function", bound=Callable[..., Any])
Changes = Mapping[str, str]
"""Changes to an op's ``example``: maps text (whole words, any white space between them) to its
replacement, wherever it occurs."""
Examples = Changes | tuple[Changes, ...]


@dataclass(frozen=True)
class Rule:
    """One verifier rule: its subject (an op or type), name, source, message and check, and changes
    to the subject's example.

    bad:  changes that make a counter-example, which breaks this rule
    good: changes that make further examples, which break no rule
    """

    subject: str
    name: str
    source: str
    text: str
    check: Callable[[Any], Any]
    bad: tuple[Changes, ...] = ()
    good: tuple[Changes, ...] = ()

    @property
    def key(self) -> str:
        """The rule's name in tests and documentation, such as ``tc.mma/n-range``."""
        return f"{self.subject}/{self.name}"

    def message(self, values: Mapping[str, object]) -> str:
        """The error message for one violation, with `values` filled in."""
        return f"{self.subject}: {self.text.format(**values)}"


RULES: dict[str, Rule] = {}
"""Every rule by key, in order of definition."""
_BY_SUBJECT: dict[str, list[Rule]] = {}


Subject = str | type[Any]
"""An op or type class, or a name: ``tc`` (any op) or ``tc.kernel``."""


def subject_name(subject: Subject) -> str:
    """The name of a subject of rules in messages and on the generated page, such as ``tc.mma`` or
    ``!tc.smem``."""
    if isinstance(subject, str):
        return subject
    if issubclass(subject, ir.Type):
        return f"!{subject.type_name}"
    return str(subject.OPERATION_NAME)


def verify(
    subject: Subject,
    name: str,
    source: str,
    text: str,
    *,
    bad: Examples = (),
    good: Examples = (),
) -> Callable[[Function], Function]:
    """Registers the decorated check as the rule ``name`` of an op or type class."""

    def register(check: Function) -> Function:
        rule = Rule(subject_name(subject), name, source, text, check, _all(bad), _all(good))
        if rule.key in RULES:
            raise ValueError(f"expected one rule of each name, got {rule.key} twice")
        RULES[rule.key] = rule
        _BY_SUBJECT.setdefault(rule.subject, []).append(rule)
        return check

    return register


def _all(changes: Examples) -> tuple[Changes, ...]:
    return changes if isinstance(changes, tuple) else (changes,)


def one_of(op: ir.OpView, name: str, legal: Iterable[str]) -> Broken:
    """Values ``legal`` and ``got`` for the error message if the string attribute `name` is present
    and illegal; else None."""
    got, names = op.attributes.get(name, None), list(legal)
    if got is None or (isinstance(got, ir.StringAttr) and got.value in names):
        return None
    return {"legal": ", ".join(f'"{each}"' for each in names), "got": got}


def same_rules(
    subject: Subject, of: Subject, bad: Mapping[str, Examples], good: Mapping[str, Examples] = {}
) -> None:
    """Registers for the op `subject` the rules of a similar op `of`: those whose names are keys of
    `bad`.

    bad, good: changes to the example of `subject`, by the name of the rule, as in `verify`
    """
    for name in bad:
        found = RULES[f"{subject_name(of)}/{name}"]
        again = verify(
            subject, name, found.source, found.text, bad=bad[name], good=good.get(name, ())
        )
        again(found.check)


def rules_of(subject: str) -> list[Rule]:
    """The rules about ``subject``, which is an op (``tc.mma``), a type (``!tc.smem``) or
    ``kernel``."""
    return _BY_SUBJECT.get(subject, [])


def broken_rule(op: ir.OpView) -> str | None:
    """Message of the first rule that ``op`` breaks, else None. Rules of its operands' and results'
    types are checked first."""
    types = dict.fromkeys(value.type for value in (*op.operands, *op.results))
    for each in types:
        if message := _broken_type(each):
            return message
    return _first(rules_of(op.OPERATION_NAME), op)


def _broken_type(type_: ir.Type) -> str | None:
    message = _first(rules_of(f"!{getattr(type_, 'type_name', '')}"), type_)
    if message is None and isinstance(type_, RingType):
        return _broken_type(type_.of)
    return message


def _first(rules: list[Rule], subject: Any) -> str | None:
    for each in rules:
        values = each.check(subject)
        if values is not None:
            return each.message(values)
    return None


def report_broken(op: ir.OpView) -> bool:
    """Reports the first broken rule at ``op``'s location. Returns True if the op breaks no rule.

    MLIR calls this before it checks the declared kinds of operands and attributes. An op that is
    malformed in that sense is left to MLIR's own diagnostic, which follows at once.
    """
    message = _first(rules_of("tc"), op)
    if message is None and as_declared(op):
        message = broken_rule(op)
    if message is not None:
        op.location.emit_error(message)
    return message is None


@verify(
    "tc",
    "operand-sizes",
    "tc",
    "{op} needs operandSegmentSizes = array<i32: ...>, one size for each of {names}, for {n} "
    "operands in all, got {got}",
)
def _(op: ir.OpView) -> Broken:
    names = wrong_sizes(op)
    return None if names is None else _sizes(op, names)


def _sizes(op: ir.OpView, names: list[str]) -> Broken:
    got = op.attributes.get("operandSegmentSizes", "none")
    return {"op": op.OPERATION_NAME, "names": ", ".join(names), "n": len(op.operands), "got": got}


def unsigned_problem(op: ir.OpView, element: str) -> Broken:
    """Values for the error message unless ``unsigned`` has a 0 or 1 for each of two i8 operands."""
    if UNSIGNED not in op.attributes:
        return None
    well_formed = not_arrays(op, unsigned=2) is None and set(integers(op, UNSIGNED)) <= {0, 1}
    legal = well_formed and element == "i8"
    return None if legal else {"got": op.attributes[UNSIGNED], "element": element}
