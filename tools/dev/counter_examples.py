"""Examples of the verifier's rules: the ``example`` of an op with changes, and the errors that it
then causes."""

from __future__ import annotations

import inspect
import re
from functools import cache

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.base import DIALECTS
from tcir.dialect.kernel.verify import verify_kernel
from tcir.dialect.rules import Changes, Rule, subject_name


def illegal(rule: Rule) -> list[str]:
    """Yields modules that break `rule` and no other rule."""
    return [changed(example_of(rule.subject), each) for each in rule.bad]


def legal(rule: Rule) -> list[str]:
    """Yields modules, other than the example itself, that break no rule."""
    return [changed(example_of(rule.subject), each) for each in rule.good]


def example_of(subject: str) -> str:
    """The ``example`` of the op or type that rules call `subject`, such as ``tc.mma`` or
    ``!tc.smem``."""
    declared = (each for d in DIALECTS.values() for each in (*d.operations, *d.types))
    return next(
        inspect.cleandoc(each.example) for each in declared if subject_name(each) == subject
    )


def changed(text: str, changes: Changes) -> str:
    """`text` with all of `changes` made at once. Each change replaces every occurrence of its
    words.

    Raises:
        ValueError: for a change whose words do not occur.
    """
    patterns = [_words(old) for old in changes]
    for old, pattern in zip(changes, patterns, strict=True):
        if not re.search(pattern, text):
            raise ValueError(f"expected a part of the example, got {old!r}:\n{text}")
    new = list(changes.values())
    return re.sub("|".join(f"({p})" for p in patterns), lambda m: new[_group(m)], text)


def _words(old: str) -> str:
    before = r"(?<![\w.])" if re.match(r"\w", old) else ""
    after = r"(?![\w.])" if re.search(r"\w$", old) else ""
    return before + r"\s+".join(map(re.escape, old.split())) + after


def _group(match: re.Match[str]) -> int:
    assert match.lastindex
    return match.lastindex - 1


def diagnose(text: str) -> list[tuple[int, str]]:
    """Yields (line, message) for every error in ``text``, including errors of kernel rules."""
    context = _context(len(DIALECTS))
    errors: list[tuple[int, str]] = []

    def note(diagnostic: ir.Diagnostic) -> bool:
        errors.append((_line(diagnostic.location), diagnostic.message))
        return True

    context.emit_error_diagnostics = True
    handler = context.attach_diagnostic_handler(note)
    try:
        module = ir.Module.parse(text, context)
    except ir.MLIRError:
        return errors
    finally:
        handler.detach()
    for op in module.body.operations:
        if "tc.kernel" in op.attributes:
            errors += [(_line(location), message) for location, message in verify_kernel(op)]
    return errors


@cache
def _context(dialects: int) -> ir.Context:
    """One for all examples: to declare the dialect takes as long as ten of them."""
    context = ir.Context()
    tc.load(context)
    return context


def _line(location: ir.Location) -> int:
    found = re.search(r":(\d+):\d+", str(location))
    assert found, location
    return int(found[1])


def values(rule: Rule, message: str) -> dict[str, str] | None:
    """The values that `message` has for the placeholders of the rule's text; None if the message
    does not come from this rule."""
    seen: set[str] = set()

    def value(match: re.Match[str]) -> str:
        name = match[1]
        again = name in seen
        seen.add(name)
        return f"(?P={name})" if again else f"(?P<{name}>.*?)"

    text = re.sub(r"\\\{(\w+)\\\}", value, re.escape(f"{rule.subject}: {rule.text}"))
    found = re.fullmatch(text, message, re.S)
    return found and found.groupdict()
