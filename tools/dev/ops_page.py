"""Writes docs/reference/ops.md from the ops, types and rules.

    python -m tcir.tools.dev.ops_page [--check | --load-pass-plugin FILE.py]

Everything on the page is derived from the op classes, their verifier rules, and the tables of the
rules that execute and lower the ops. With a plugin, the page also has the plugin's ops, and it is
printed instead of written.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import tcir
from tcir._mlir import ext, ir
from tcir.dialect import tc as tc
from tcir.dialect.base import DIALECTS
from tcir.dialect.kernel import verify  # noqa: F401  (registers the rules of kernels)
from tcir.dialect.kernel.view import SUBJECT
from tcir.dialect.operation import Op, all_ops
from tcir.dialect.rules import Rule, rules_of
from tcir.interp.rules import Rules
from tcir.interp.tensor import evaluate
from tcir.interp.tile import execute
from tcir.opt.listing import load_plugin
from tcir.passes.nvvm.converter import RULES as LOWERINGS
from tcir.passmanager.pipeline import registered_passes
from tcir.tools.dev.counter_examples import diagnose, illegal, values
from tcir.tools.dev.generated_page import write_or_check

TARGET = Path(__file__).resolve().parents[2] / "docs" / "reference" / "ops.md"

INTRO = """\
<!-- Written by `python -m tcir.tools.dev.ops_page`; edit dialect/ instead. -->

# The `tc` dialect

The page lists the ops, types and rules of the dialect between `linalg` and NVVM. Ops that are
defined in Python print in MLIR's generic form; `tc-opt --emit=pretty` prints a shorter form.
Section numbers are those of the PTX ISA 9.1. A rule with the source `tc` is a rule of the dialect,
not of the hardware. `{value}` stands for a value in a message. Below each rule are changes to the
example above it that break the rule, with the values in the message; the examples of rules about
whole kernels are in `test/dialect/pairs`.
"""


def render() -> str:
    """The text of the page, with the ops of every declared dialect."""
    types = [type_ for dialect in DIALECTS.values() for type_ in dialect.types]
    parts = [INTRO, "## Types\n", *map(_type, types), _rules("Any op", "tc")]
    for heading, ops in _groups().items():
        parts += [f"## {heading}\n", *map(_op, ops)]
    parts += ["## Kernels\n", inspect.cleandoc(KERNEL) + "\n", _rules("Rules", SUBJECT)]
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def _groups() -> dict[str, list[type[Op]]]:
    """The ops by the heading of their file, its docstring's first line; those on tensors first.

    Files are in order of their names, not in the order in which something imported them.
    """
    groups: dict[str, list[type[Op]]] = {}
    for op in sorted(all_ops(), key=lambda op: (not _on_tensors(op), op.__module__)):
        heading = inspect.cleandoc(sys.modules[op.__module__].__doc__ or "").partition("\n")[0]
        groups.setdefault(heading.rstrip("."), []).append(op)
    return groups


def _on_tensors(op: type[Op]) -> bool:
    return any(field.constraint is ir.RankedTensorType for field in op._fields)


KERNEL = """
A kernel is a `func.func` with the attribute `tc.kernel`, the extents `tc.grid` and `tc.block`
(`array<i64: x, y, z>`) and `tc.target`; `tc.cluster` where CTAs form clusters. `tc.async` says
that barriers are placed and ops take effect later; `tc.smem_bytes` and `tc.tmem_columns` appear
once memory is planned. The pass `verify-tc-kernel` checks these rules, each violation at the op at
fault.
"""


def _type(type_: Any) -> str:
    name = f"!{type_.type_name}"
    example = _example(type_) if hasattr(type_, "example") else ""
    parts = [f"### `{name}`\n", _doc(type_) + "\n", example, _rules("Rules", name)]
    return "\n".join(part for part in parts if part)


def _op(op: type[Op]) -> str:
    name = op.OPERATION_NAME
    sections = ", ".join(dict.fromkeys(re.findall(r"\d+\.\d+(?:\.\d+)*", op.__doc__ or "")))
    parts = [
        f"### `{name}`\n",
        _doc(op) + "\n",
        _fields(op),
        f"PTX ISA: {sections}\n" if sections else "",
        _facts(op),
        _example(op),
        _rules("Rules", name),
    ]
    return "\n".join(part for part in parts if part)


def _example(declared: Any) -> str:
    return f"```mlir\n{inspect.cleandoc(declared.example)}\n```\n"


_ISSUERS = {"thread": "one thread", "warp": "a whole warp", "cta": "the whole CTA, outside roles"}


def _facts(op: type[Op]) -> str:
    """Facts from the op's traits, and the files that define, execute and lower it."""
    traits = op.traits
    facts = {
        "Issued by": _ISSUERS.get(traits.issued_by, ""),
        "Role": f"`{traits.role}`" if traits.role else "",
        "Completed by": f"`{traits.completed_by}`" if traits.completed_by else "",
        "Defined in": _file(sys.modules[op.__module__]),
        "Executed by": _executor(op),
        "Lowered by": _lowering(op),
    }
    return "\n".join(f"- {name}: {fact}" for name, fact in facts.items() if fact) + "\n"


def _executor(op: type[Op]) -> str:
    name = op.OPERATION_NAME
    levels: dict[str, Rules[Any]] = {"tensor": evaluate, "tile": execute}
    return ", ".join(
        f"{_file(rules[name])} ({level} level)" for level, rules in levels.items() if name in rules
    )


def _lowering(op: type[Op]) -> str:
    if op.OPERATION_NAME in LOWERINGS:
        return _file(LOWERINGS[op.OPERATION_NAME])
    passes = registered_passes()
    return ", ".join(f"{_file(passes[name])} (`{name}`)" for name in op.traits.lowered_by)


def _file(thing: Any) -> str:
    """The source file of a module, class or function: from the repository's root, or its name."""
    path = Path(inspect.getsourcefile(thing) or "")
    package = Path(inspect.getsourcefile(tcir) or "").resolve().parent
    if path.is_relative_to(package):
        inside = path.relative_to(package)
        top = inside.parts[0] in ("dialect", "passes", "pipelines", "tools")
        return f"`{inside if top else Path('src/tcir') / inside}`"
    return f"`{path.name}`"


def _doc(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__).replace("``", "`")


def _fields(op: Any) -> str:
    operands, attributes, results, regions = ext.partition_fields(op._fields)
    kinds = [("operand", operands), ("attribute", attributes), ("result", results)]
    rows = [
        f"| {kind} | `{field.name}` | {_constraint(field)} |"
        for kind, fields in kinds
        for field in fields
    ]
    rows += [f"| region | `{region.name}` | one block |" for region in regions]
    if not rows:
        return ""
    return "\n".join(["| | name | kind |", "|---|---|---|", *rows]) + "\n"


def _constraint(field: Any) -> str:
    name = " or ".join(_names(field.constraint))
    return {"optional": f"{name}, optional", "variadic": f"{name}, any number"}.get(
        field.variadicity.name, name
    )


_NAMES = {
    "AffineMapAttr": "affine map",
    "FloatAttr": "number",
    "IntegerAttr": "integer",
    "StringAttr": "string",
    "IndexType": "`index`",
    "IntegerType": "`i1`",
    "VectorType": "`vector`",
    "MemRefType": "`memref`",
    "RankedTensorType": "`tensor`",
}


def _names(constraint: Any) -> list[str]:
    if constraint is Any:
        return ["see rules"]
    if get_args(constraint):
        return [name for each in get_args(constraint) for name in _names(each)]
    if issubclass(constraint, ir.DynamicType):
        return [f"`!{constraint.type_name}`"]
    return [_NAMES[constraint.__name__]]


def _rules(heading: str, subject: str) -> str:
    rules = rules_of(subject)
    if not rules:
        return ""
    lines = [f"{heading}:\n"]
    for rule in rules:
        text = f"- **{rule.name}** ({rule.source}): `{rule.subject}: {rule.text}`"
        lines += [*_wrapped(text, ""), *_counter_examples(rule)]
    return "\n".join(lines) + "\n"


def _counter_examples(rule: Rule) -> list[str]:
    """One line per illegal example: the change, and the values in the message."""
    lines = []
    for changes, text in zip(rule.bad, illegal(rule), strict=True):
        (_, message), *_ = diagnose(text)
        changed = "; ".join(f"{_code(a)} → {_code(b)}" for a, b in changes.items())
        filled = ", ".join(
            f"{name} = {_code(v)}" for name, v in (values(rule, message) or {}).items()
        )
        lines += _wrapped(f"- {changed}" + (f": {filled}" if filled else ""), "    ")
    return lines


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        100,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _code(text: str) -> str:
    return f"`{text}`" if text else "nothing"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--load-pass-plugin", action="append", default=[], metavar="FILE.py")
    options, rest = parser.parse_known_args(argv)
    for plugin in options.load_pass_plugin:
        load_plugin(plugin)
    if options.load_pass_plugin:
        print(render(), end="")
        return 0
    return write_or_check(TARGET, render, "tcir.tools.dev.ops_page", rest)


if __name__ == "__main__":
    sys.exit(main())
