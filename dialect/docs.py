"""Writes ``docs/ops.md`` from the ops, types and rules: ``python -m tcir.dialect.docs``."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from typing import Any, get_args

from tcir._mlir import ext, ir
from tcir.dialect import tc as tc
from tcir.dialect.base import TC
from tcir.dialect.examples import EXAMPLES
from tcir.dialect.kernel import verify  # noqa: F401  (registers the rules of kernels)
from tcir.dialect.kernel.view import SUBJECT
from tcir.dialect.rules import rules_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "ops.md"
GROUPS = {
    "highlevel": "Contractions on tensors",
    "block_scaled": "Block-scaled contractions",
    "repack": "Layout changes",
    "codes": "Packing of 4- and 6-bit elements",
    "memory": "Memory and barriers",
    "tma": "TMA",
    "movement": "Data movement",
    "lanes": "Lanes of a warp",
    "halo": "Shift and halo",
    "compute": "Tensor core",
    "block_scale": "Tensor core, block-scaled",
    "warp": "Warp level",
    "sync": "Synchronisation",
    "structure": "Roles",
}
"""Modules of ops in reading order, with their headings."""

INTRO = """\
<!-- Written by `python -m tcir.dialect.docs`; edit dialect/*.py instead. -->

# The `tc` dialect

Ops, types and rules of the dialect between `linalg` and NVVM. Python-defined ops print in MLIR's
generic form; `tc-opt --emit=pretty` prints a shorter one for reading. Section numbers are those of
the PTX ISA 9.1. A rule whose source is `tc` is the dialect's own, not the hardware's. Every rule
has a legal and an illegal example in `test/dialect/invalid_*.mlir`; `{value}` stands for what a
message fills in.
"""


def render() -> str:
    """The page."""
    parts = [INTRO, "## Types\n", *map(_type, TC.types), _rules("Any op", "tc")]
    for module, heading in GROUPS.items():
        parts.append(f"## {heading}\n")
        parts += [_op(op) for op in TC.operations if op.__module__.endswith(f".ops.{module}")]
    parts += ["## Kernels\n", inspect.cleandoc(KERNEL) + "\n", _rules("Rules", SUBJECT)]
    return "\n".join(part for part in parts if part).rstrip() + "\n"


KERNEL = """
A kernel is a `func.func` with the attribute `tc.kernel`, the extents `tc.grid` and `tc.block`
(`array<i64: x, y, z>`) and `tc.target`; `tc.cluster` where CTAs form clusters. `tc.async` says
that barriers are placed and ops take effect later; `tc.smem_bytes` and `tc.tmem_columns` appear
once memory is planned. The pass `verify-tc-kernel` checks these rules, each violation at the op at
fault.
"""


def _type(type_: Any) -> str:
    name = f"!{type_.type_name}"
    parts = [f"### `{name}`\n", _doc(type_) + "\n", _rules("Rules", name)]
    return "\n".join(part for part in parts if part)


def _op(op: Any) -> str:
    name = op.OPERATION_NAME
    sections = ", ".join(dict.fromkeys(re.findall(r"\d+\.\d+(?:\.\d+)*", op.__doc__)))
    parts = [
        f"### `{name}`\n",
        _doc(op) + "\n",
        _fields(op),
        f"PTX ISA: {sections}\n" if sections else "",
        f"```mlir\n{EXAMPLES[name].strip()}\n```\n",
        _rules("Rules", name),
    ]
    return "\n".join(part for part in parts if part)


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
    "IntegerAttr": "integer",
    "StringAttr": "string",
    "IndexType": "`index`",
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
    wrap = textwrap.TextWrapper(
        100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    lines = [f"{heading}:\n"]
    for rule in rules:
        text = f"- **{rule.name}** ({rule.source}): `{rule.subject}: {rule.text}`"
        lines += wrap.wrap(text)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
