"""Converts the short form of `tcir.dialect.pretty` to MLIR's own form of the same module.

Lines keep their numbers. An op's ``form`` is used for printing and for reading: filled with
placeholders, it becomes a regular expression whose groups are operands and attributes. The types of
operands come from MLIR, which parses the module without the ``tc`` ops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice, product

from tcir._mlir import ext, ir
from tcir.dialect.base import load
from tcir.dialect.operation import Op, all_ops
from tcir.dialect.pretty import BARE

VALUE = r"%[\w$.\-]+(?:#\d+)?"
_VALUES = rf"{VALUE}(?:, {VALUE})*"
_NAMED = rf"{VALUE}(?::\d+)?(?:, {VALUE}(?::\d+)?)*"
_ATTRIBUTE = r'\[[^\]]*\]|"(?:[^"\\]|\\.)*"|[^\s,\[\]():]+'
_LINE = re.compile(
    rf"^(?P<indent>\s*)(?:(?P<results>{_NAMED}) = )?(?P<name>[a-z]\w*\.\w+)(?P<rest>(?: .*)?)$"
)
_RESULTS = re.compile(rf"^\s*({_NAMED}) = ")
_KEY = re.compile(r" ([\w.]+)=")


_OF_OWN = {"tc.make_tensor_map": "!tc.tensor_map", "tc.tmem_alloc": "!tc.tmem_base"}
"""Result types that are not written; that of a slot is its ring's."""


class UnreadableError(Exception):
    """A line that is not in the short form. Its field ``line`` is the number of that line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@cache
def _classes() -> dict[str, type[Op]]:
    return {op.OPERATION_NAME: op for op in all_ops()}


class _Marks(dict[str, str]):
    """Placeholders for the fields of a form; records the requested names."""

    def __missing__(self, name: str) -> str:
        self[name] = f"\0{name}\0"
        return self[name]


@cache
def _patterns(name: str) -> list[tuple[re.Pattern[str], dict[str, str]]]:
    """Patterns of an op's form, and the attributes that each implies."""
    cls = _classes()[name]
    operands = {f.name: f.variadicity.name for f in ext.partition_fields(cls._fields)[0]}
    form: object = cls.form

    def filled(marks: dict[str, str]) -> str:
        return (str(form(marks)) if callable(form) else str(form).format_map(marks)).rstrip()

    if not form:
        return []
    asked = _Marks()
    shown = filled(asked)
    options = []
    for each in asked:
        mark = f"\0{each}\0"
        if each in operands:
            options.append([mark] if operands[each] == "single" else [mark, ""])
        else:
            options.append([mark] if mark in shown else ["true", "false"])
    found = []
    for choice in product(*options):
        marks = dict(zip(asked, choice, strict=True))
        text = re.sub(r" +", " ", filled(marks))
        parts = re.split("\0(\\w+)\0", text)
        pattern = "".join(
            re.escape(part)
            if n % 2 == 0
            else f"(?P={part})"
            if part in parts[:n]
            else f"(?P<{part}>{_VALUES if part in operands else _ATTRIBUTE})"
            for n, part in enumerate(parts)
        )
        implied = {key: value for key, value in marks.items() if value in ("true", "false")}
        found.append((re.compile(pattern + r"(?=$|[ {])"), implied))
    return sorted(found, key=lambda pair: -len(pair[0].pattern))


def read_pretty(text: str) -> str:
    """Converts the text of a module in the short form to text that MLIR can parse. UnreadableError
    names a line that is not in the short form.

    Raises MLIR's own error for ops of other dialects that cannot be parsed.
    """
    lines = text.split("\n")
    ops = {
        n: match
        for n, line in enumerate(lines)
        if (match := _LINE.match(line)) and match["name"] in _classes()
    }
    lines = [_long_types(line) for line in lines]
    types = _Types(lines, ops)
    return "\n".join(_assembled(lines, {n: each.generic(types) for n, each in types.ops.items()}))


class _Reading:
    """One op of ours: its operands in groups, its attributes, its results, its body's arguments."""

    def __init__(self, number: int, match: re.Match[str]) -> None:
        self.number, self.name = number, match["name"]
        self.head = f"{match['results']} = " if match["results"] else ""
        self.results = _result_names(self.head)
        rest, self.header = _header(match["rest"])
        self.result_types: list[str] = []
        if self.results:
            rest, self.result_types = _result_types(rest)
        self.cls = _classes()[self.name]
        self.operand_fields = ext.partition_fields(self.cls._fields)[0]
        self.attributes: dict[str, str] = {}
        self.groups: dict[str, list[str]] = {}
        self._split(rest.strip())

    def hole(self) -> tuple[str, str | None]:
        """A placeholder op without operands, which stands for the op on this line. The result type
        of a slot is provisional."""
        kinds = self.result_types or [_OF_OWN.get(self.name, "index")] * len(self.results)
        return self._pieces("tcir.hole", [], {}, [], kinds)

    def resolve(self, types: _Types) -> None:
        """Sets the types of the results whose types the line does not give."""
        if self.results and not self.result_types:
            kind = _OF_OWN.get(self.name)
            if kind is None and "ring" not in self.groups:
                raise UnreadableError(
                    self.number + 1, f"{self.name}: expected ' : ' and the types of its results"
                )
            if kind is None:
                found = re.fullmatch(
                    r"!tc\.ring<\d+ : i64, (.*)>", types.at(self.number, self.groups["ring"][0])
                )
                if found is None:
                    raise UnreadableError(self.number + 1, f"{self.name}: expected a ring")
                kind = found[1]
            self.result_types = [kind]

    def arguments(self) -> Iterator[tuple[str, str]]:
        """Names and types of the arguments of the op's body."""
        for each in _at_commas(_long_types(self.header)[1:-1]) if self.header else ():
            name, _, kind = each.partition(": ")
            yield name, kind

    def _split(self, rest: str) -> None:
        for pattern, flags in _patterns(self.name):
            if found := pattern.match(rest):
                values, implied = found.groupdict(), flags
                self._keys(rest[found.end() :])
                break
        else:
            if self.cls.form:
                raise UnreadableError(self.number + 1, f"expected {self.name} {_shape(self.cls)}")
            values, implied = self._unformed(rest), {}
        operands = {f.name for f in self.operand_fields}
        for name in operands:
            listed = values.get(name)
            self.groups[name] = listed.split(", ") if listed else []
        self.attributes |= {n: v for n, v in values.items() if n not in operands and v} | implied

    def _unformed(self, rest: str) -> dict[str, str | None]:
        """Operands of an op without a form, and the rest of the line."""
        found = re.match(rf"{_VALUES}(?=$| )", rest)
        names = found[0].split(", ") if found else []
        rest = f" {rest}" if not found else rest[found.end() :]
        variable = [f.name for f in self.operand_fields if f.variadicity.name != "single"]
        values: dict[str, str | None] = {}
        if len(variable) > 1:
            for name in variable:
                if group := re.match(rf" {name}\(({_VALUES})\)", rest):
                    values[name], rest = group[1], rest[group.end() :]
                else:
                    values[name] = None
        left = len(names) - sum(f.variadicity.name == "single" for f in self.operand_fields)
        given = iter(names)
        for f in self.operand_fields:
            if f.name not in values:
                count = 1 if f.variadicity.name == "single" else left
                values[f.name] = ", ".join(islice(given, count))
        self._keys(rest)
        return values

    def _keys(self, rest: str) -> None:
        """Attributes as ``name=value``."""
        if not rest.strip():
            return
        found = list(_KEY.finditer(rest))
        if not found or rest[: found[0].start()].strip():
            raise UnreadableError(
                self.number + 1, f"{self.name}: expected NAME=VALUE, got '{rest.strip()}'"
            )
        for each, end in zip(found, [*(f.start() for f in found[1:]), len(rest)]):
            self.attributes[each[1]] = rest[each.end() : end].strip()

    def generic(self, types: _Types) -> tuple[str, str | None]:
        """The op in MLIR's generic form, as text. If the op has a body, it is the text before the
        body and the text after the body."""
        operands = [value for f in self.operand_fields for value in self.groups[f.name]]
        attributes = {name: _mlir_attribute(value) for name, value in self.attributes.items()}
        single = all(f.variadicity.name == "single" for f in self.operand_fields)
        if not single and not self.cls.traits.counted:
            sizes = ", ".join(str(len(self.groups[f.name])) for f in self.operand_fields)
            attributes["operandSegmentSizes"] = f"array<i32: {sizes}>"
        kinds = [types.at(self.number, value) for value in operands]
        return self._pieces(self.name, operands, attributes, kinds, self.result_types)

    def _pieces(
        self,
        name: str,
        operands: Sequence[str],
        attributes: Mapping[str, str],
        kinds: Sequence[str],
        results: Sequence[str],
    ) -> tuple[str, str | None]:
        listed = ", ".join(f"{key} = {value}" for key, value in attributes.items())
        tail = (
            f"{f' {{{listed}}}' if listed else ''} : ({', '.join(kinds)}) -> ({', '.join(results)})"
        )
        call = f'{self.head}"{name}"({", ".join(operands)})'
        if self.header is None:
            return call + tail, None
        return (
            f"{call} ({{{f' ^bb0{_long_types(self.header)}:' if self.header else ''}",
            f"}}){tail}",
        )


class _Types:
    """Types of values by name and line: MLIR's own, of the module without our ops."""

    def __init__(self, lines: Sequence[str], ops: Mapping[int, re.Match[str]]) -> None:
        self._defined: dict[str, list[tuple[int, str]]] = {}
        readings = {n: _Reading(n, match) for n, match in ops.items()}
        text = "\n".join(_assembled(lines, {n: each.hole() for n, each in readings.items()}))
        for n, names, kinds in _definitions(lines, readings, text):
            for name, kind in zip(names, kinds):
                self._defined.setdefault(name, []).append((n, kind))
        self.ops = readings
        for n, each in sorted(readings.items()):
            each.resolve(self)
            for name, kind in zip(each.results, each.result_types, strict=True):
                self._defined.setdefault(name, []).append((n, kind))
            for name, kind in each.arguments():
                self._defined.setdefault(name, []).append((n, kind))

    def at(self, number: int, name: str) -> str:
        """The type of the value `name` as used on line `number`: the type of its last definition
        before that line."""
        before = [each for each in self._defined.get(name, ()) if each[0] < number]
        if not before:
            raise UnreadableError(number + 1, f"expected a value before this line, got {name}")
        return max(before)[1]


def _definitions(
    lines: Sequence[str], ours: Mapping[int, _Reading], text: str
) -> Iterator[tuple[int, list[str], list[str]]]:
    """Lines, names and types of the values that other ops and their bodies define."""
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        load(context)
        module = ir.Module.parse(text)
        found: list[tuple[int, list[str], list[str]]] = []
        seen: set[int] = set()

        def visit(op: ir.Operation) -> ir.WalkResult:
            where = op.location
            n = where.start_line - 1 if isinstance(where, ir.FileLineColLoc) else -1
            if n in seen or n < 0 or n in ours:
                return ir.WalkResult.ADVANCE
            seen.add(n)
            found.append((n, _result_names(lines[n]), [str(r.type) for r in op.results]))
            inner = [
                str(a.type)
                for region in list(op.regions)[:1]
                for b in list(region.blocks)[:1]
                for a in b.arguments
            ]
            found.append((n, _argument_names(lines[n]), inner))
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    for n, line in enumerate(lines):
        if block := re.fullmatch(r"\s*\^bb\d+\((.*)\):", line):
            pairs = [each.partition(": ") for each in _at_commas(block[1])]
            found.append((n, [name for name, _, _ in pairs], [kind for _, _, kind in pairs]))
    return iter(found)


def _result_names(line: str) -> list[str]:
    found = _RESULTS.match(line)
    names: list[str] = []
    for each in found[1].split(", ") if found else ():
        name, _, count = each.partition(":")
        names += [f"{name}#{n}" for n in range(int(count))] if count else [name]
    return names


def _argument_names(line: str) -> list[str]:
    """Argument names of a loop, a branch or a function whose body begins on the line."""
    if "func.func" in line:
        return re.findall(rf"[(,]\s*({VALUE}): ", line)
    if found := re.search(rf"scf\.for(?: unsigned)? ({VALUE}) = ", line):
        carried = re.search(r"iter_args\(([^)]*)\)", line)
        return [found[1], *(re.findall(rf"({VALUE}) = ", carried[1]) if carried else ())]
    if found := re.search(r"scf\.(?:forall|parallel) \(([^)]*)\)", line):
        shared = re.search(r"shared_outs\(([^)]*)\)", line)
        carried_names = re.findall(rf"({VALUE}) = ", shared[1]) if shared else []
        return [*found[1].split(", "), *carried_names]
    if found := re.search(r"scf\.while \(([^)]*)\)", line):
        return re.findall(rf"({VALUE}) = ", found[1])
    return []


def _assembled(lines: Sequence[str], pieces: Mapping[int, tuple[str, str | None]]) -> Iterator[str]:
    """The lines, with each op of ours as pieces: the op, or its parts before and after its body."""
    open_: list[tuple[str, str]] = []
    for n, line in enumerate(lines):
        indent = line[: len(line) - len(line.lstrip())]
        if n in pieces:
            head, tail = pieces[n]
            yield indent + head
            if tail is not None:
                open_.append((f"{indent}}}", tail))
        elif open_ and line == open_[-1][0]:
            yield indent + open_.pop()[1]
        else:
            yield line


_HEADER = re.compile(r" (\(%.*\) )?\{$")


def _header(rest: str) -> tuple[str, str | None]:
    """An op's own text, and the arguments of its body; None without a body."""
    found = _HEADER.search(rest)
    return (rest[: found.start()], (found[1] or "").strip()) if found else (rest, None)


def _result_types(rest: str) -> tuple[str, list[str]]:
    own, colon, kinds = rest.rpartition(" : ")
    in_string = own.replace('\\"', "").count('"') % 2
    if not colon or in_string or not kinds:
        return rest, []
    return own, _at_commas(_long_types(kinds))


def _at_commas(text: str) -> list[str]:
    """Parts between commas that no bracket encloses."""
    parts, depth = [""], 0
    for previous, c in zip(" " + text, text):
        depth += (c in "<([{") - (c in ")]}" or (c == ">" and previous != "-"))
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts]


def _mlir_attribute(text: str) -> str:
    if re.fullmatch(r"-?\d+", text):
        return f"{text} : i64"
    if re.fullmatch(r"\[(-?\d+(, -?\d+)*)?\]", text):
        inner = text[1:-1]
        return f"array<i64: {inner}>" if inner else "array<i64>"
    return f'"{text}"' if text not in ("true", "false", "unit") and BARE.fullmatch(text) else text


_SHAPED = re.compile(r"(?<![\w.!])(smem|tmem)<((?:\d+x)+)(\w+)(?: (\w+) (\w+))?>")
_STAGED = re.compile(
    r"(?<![\w.!])(staged|fragment)<((?:\d+x)+)(\w+) (\w+) (?:\[([^\]]*)\]|([^>\s]+))>"
)
_PLAIN = "mbarrier|tensor_map|tmem_base|lane_mask_table|launch_response_table"


def _long_types(line: str) -> str:
    """Types of ours as MLIR has them."""

    def shape(text: str) -> str:
        return f"array<i64: {', '.join(text.rstrip('x').split('x'))}>"

    def shaped(found: re.Match[str]) -> str:
        more = f', "{found[4]}", "{found[5]}"' if found[4] else ""
        return f"!tc.{found[1]}<{shape(found[2])}, {found[3]}{more}>"

    def staged(found: re.Match[str]) -> str:
        last = f'"{found[6]}"' if found[6] else f"array<i64: {found[5]}>"
        return f'!tc.{found[1]}<{shape(found[2])}, {found[3]}, "{found[4]}", {last}>'

    line = _STAGED.sub(staged, _SHAPED.sub(shaped, line))
    line = re.sub(r"(?<![\w.!])ring<(\d+) x ", r"!tc.ring<\1 : i64, ", line)
    return re.sub(
        rf"^(?:{_PLAIN})$|(?:(?<=[:,(>] )|(?<=\()|(?<=i64, ))(?:{_PLAIN})\b(?![.:])",
        r"!tc.\g<0>",
        line,
    )


def _shape(cls: type[Op]) -> str:
    form: object = cls.form
    return str(form(_Marks()) if callable(form) else form).replace("\0", "")
