"""A short form of ``tc`` IR for reading; `tcir.dialect.read_pretty` reads it back.

Python-defined ops print in MLIR's generic form, which repeats every type. `pretty` prints the
module as MLIR does and then rewrites the lines of ``tc`` ops and the spelling of ``tc`` types::

    "tc.mma"(%0, %4, %7, %true) {a_slice = 0 : i64, ashift = true, b_slice = 1 : i64} : (…) -> ()
    tc.mma %0, %4[j=0], %7[j=1] acc=%true .ashift

Values keep MLIR's names, or at least MLIR's numbers, so that both forms can be compared. Everything
else is printed as MLIR prints it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from tcir._mlir import ext, ir
from tcir.dialect.base import DIALECTS
from tcir.dialect.declared import as_declared, counted_sizes
from tcir.dialect.operation import Names, Op

_SHAPED = re.compile(r'!tc\.(smem|tmem)<array<i64: ([\d, ]+)>, (\w+)(?:, "(\w+)", "(\w+)")?>')
_STAGED = re.compile(
    r'!tc\.(staged|fragment)<array<i64: ([\d, ]+)>, (\w+), "(\w+)", (?:array<i64: (.*?)>|"(.*?)")>'
)
BARE = re.compile(r"(?!(?:-?\d+|true|false|unit)$)[\w.+\-]+")
"""Strings without quotes."""
_ELIDED = 16
"""Element count above which reports elide dense constants."""


NOUNS = {
    "tc.make_tensor_map": "map",
    "tc.mbarrier_init": "bar",
    "tc.smem_tile": "smem",
    "tc.tmem_alloc": "tmem",
    "tc.tmem_tile": "columns",
    "tc.tmem_ld": "rows",
}
"""Names of results by op; results of other ops are named after the op."""


def pretty(module: Any, elided: int | None = None, *, named: bool = False) -> str:
    """The short form of ``module``, which is an `ir.Module` or an operation, as text.

    elided: number of elements above which the values of a constant are left out
    named:  whether results of ``tc`` ops are named after their kind, followed by MLIR's number:
            ``%bar6``
    """
    lines = pretty_lines(module, elided)
    return "".join(
        f"{line}\n" for line in (_named(lines) if named else (each for each, _ in lines))
    )


def _named(lines: list[tuple[str, Op | None]]) -> Iterator[str]:
    names: dict[str, str] = {}  # regions beside each other use the same numbers
    for line, op in lines:
        results = re.match(r"\s*(%\S+(?:, %\S+)*) = ", line)
        for number in re.findall(r"%\d+", results[1]) if results else ():
            names.pop(number, None)
            if op is not None:
                noun = NOUNS.get(op.OPERATION_NAME, op.OPERATION_NAME.rpartition(".")[2])
                names[number] = f"%{noun}{number[1:]}"
        yield re.sub(r"%\d+\b", lambda found: names.get(found[0], found[0]), line)


def pretty_lines(
    module: ir.Module | ir.Operation, elided: int | None = _ELIDED, *, verified: bool = False
) -> list[tuple[str, Op | None]]:
    """The lines of `pretty`, each with the ``tc`` op that begins on it, if any.

    verified: whether the module is known to be valid; if not, MLIR verifies it before printing
    """
    operation = getattr(module, "operation", module)
    asm = operation.get_asm(large_elements_limit=elided, assume_verified=verified)
    lines = asm.splitlines()
    ours = re.compile(rf'^(\s*)((?:%\S+ = )?)"((?:{"|".join(DIALECTS)})\.\w+)"\(([^()]*)\)')
    ops = _tc_ops(operation)
    out: list[tuple[str, Op | None]] = []
    roles: list[str] = []  # indentation of the roles (and epilogues) that are open
    for line in lines:
        op = None
        if roles and line.startswith(f"{roles[-1]}^bb0(") and out[-1][0].endswith("{"):
            header = _types(line.strip().removeprefix("^bb0").removesuffix(":"))
            out[-1] = (out[-1][0].removesuffix("{") + f"{header} {{", out[-1][1])
            continue
        if roles and line.startswith(roles[-1] + "})"):
            line = roles.pop() + "}"
        elif match := ours.match(line):
            op = next(ops, None)
            if op is None or op.OPERATION_NAME != match[3]:
                return [(each, None) for each in lines]  # not understood: as MLIR prints it
            if as_declared(op):
                line = match[1] + match[2] + _short(op, match[4])
                if len(op.regions):  # the arguments of a body follow those of the op
                    roles.append(match[1])
        out.append((_types(line), op))
    return out


def _tc_ops(operation: Any) -> Iterator[Op]:
    """The ops of our dialects inside ``operation``, in print order."""
    for region in operation.regions:
        for block in region:
            for op in block:
                if isinstance(op, Op):
                    yield op
                yield from _tc_ops(op.operation)


def _types(line: str) -> str:
    """``!tc.smem<array<i64: 128, 64>, f16, "K", "128B">`` as ``smem<128x64xf16 K 128B>``."""

    def shaped(match: re.Match[str]) -> str:
        kind, shape, element, major, swizzle = match.groups()
        extra = f" {major} {swizzle}" if major else ""
        return f"{kind}<{shape.replace(', ', 'x')}x{element}{extra}>"

    def staged(match: re.Match[str]) -> str:
        kind, shape, element, role, swizzle, atom = match.groups()
        return f"{kind}<{shape.replace(', ', 'x')}x{element} {role} {atom or f'[{swizzle}]'}>"

    line = _STAGED.sub(staged, _SHAPED.sub(shaped, line))
    line = re.sub(r"!tc\.ring<(\d+) : i64, ", r"ring<\1 x ", line)
    plain = "mbarrier|tensor_map|tmem_base|lane_mask_table|launch_response_table"
    return re.sub(rf"!tc\.({plain})\b", r"\1", line)


class _Names(dict[str, str]):
    """Operands and attributes of one op as text; remembers which attributes were shown."""

    def __init__(self, op: Op, operands: str) -> None:
        self.op = op
        self.left = {name: op.attributes[name] for name in op.attributes}
        self.left.pop("operandSegmentSizes", None)
        fields = ext.partition_fields(type(op)._fields)[0]
        names = iter(operands.split(", ") if operands else [])
        sizes = list(op.attributes.get("operandSegmentSizes", [])) or [1] * len(fields)
        if op.traits.counted:
            sizes = counted_sizes([f.variadicity.name for f in fields], len(op.operands))
        self.groups = {f.name: [next(names) for _ in range(n)] for f, n in zip(fields, sizes)}

    def __missing__(self, name: str) -> str:
        """Operand(s) or attribute ``name``."""
        if name in self.groups:
            return ", ".join(self.groups[name])
        self.left.pop(name, None)
        return _attribute(self.op.attributes[name])

    def rest(self) -> str:
        """The attributes that the short form has not printed yet."""
        shown = [f" {name}={_attribute(self.left[name])}" for name in sorted(self.left)]
        return "".join(shown)


def _attribute(attribute: Any) -> str:
    if isinstance(attribute, ir.BoolAttr):
        return "true" if attribute.value else "false"
    if isinstance(attribute, ir.IntegerAttr):
        return str(attribute.value if str(attribute.type) == "i64" else attribute)
    if isinstance(attribute, ir.StringAttr):
        return attribute.value if BARE.fullmatch(attribute.value) else str(attribute)
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return "[" + ", ".join(map(str, attribute)) + "]"
    return str(attribute)


def _short(op: Op, operands: str) -> str:
    names = _Names(op, operands)
    name = op.OPERATION_NAME
    form: str | Callable[[Names], str] = op.form
    shown = form(names) if callable(form) else form.format_map(names) or _operands(names)
    text = f"{name} {shown}".rstrip() + names.rest()
    results = ", ".join(str(r.type) for r in op.results)
    text += f" : {results}" if results and name not in KNOWN else ""
    return text + " {" if len(op.regions) else text


KNOWN = ("tc.make_tensor_map", "tc.tmem_alloc", "tc.slot")
"""Ops whose result type is redundant."""


def _operands(names: _Names) -> str:
    fields = ext.partition_fields(type(names.op)._fields)[0]
    groups = {f.name for f in fields if f.variadicity.name != "single"}
    if len(groups) < 2:
        return ", ".join(value for group in names.groups.values() for value in group)
    single = [
        value for name, group in names.groups.items() if name not in groups for value in group
    ]
    rest = [f" {name}({names[name]})" for name in names.groups if name in groups if names[name]]
    return ", ".join(single) + "".join(rest)
