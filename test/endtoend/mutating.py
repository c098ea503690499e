"""Random single faults in a module, as a mistaken pass would leave them.

A fault edits one operation of the generic text; what MLIR's parser or a verifier refuses is
drawn again, so every fault is a program that they take for valid.
"""

from __future__ import annotations

import random
import re
from typing import Any

import tcir
from tcir._mlir import ir
from tcir.program.source import load_module

TRIES = 400
INTEGER = re.compile(r"(?<![%\w^!#.x<])-?\d+(?![\w.])")
"""A number in an attribute or in inline assembly, not part of a name or a type."""
VALUE = re.compile(r"%[\w#]+")
LABEL = re.compile(r"\^bb\d+")
ENUM = re.compile(r"#(\w+)<(\w+ )?(\w+)>")
WORD = re.compile(r'(?<!sym_name) = "(\w+)"')
BLIND = re.compile(r"(overflowFlags|operandSegmentSizes|alignment|ordering) = [^,}]*")
"""Attributes that say nothing to an execution."""
ALIKE = [
    {f"{dialect}.{name}" for name in names.split()}
    for dialect, names in (
        ("arith", "addi subi muli divui divsi remui remsi andi ori xori shli shrui minui maxsi"),
        ("arith", "addf subf mulf divf maximumf minimumf maxnumf minnumf"),
        ("arith", "extui extsi"),
        ("llvm", "add sub mul udiv sdiv urem srem and or xor shl lshr ashr"),
        ("llvm", "fadd fsub fmul fdiv"),
        ("llvm", "zext sext"),
    )
]
"""Operations with operands and results of the same types."""


class NoFaultError(Exception):
    """Nothing was found that the verifiers accept, such as in a few operations on tensors."""


class Mutation:
    """One fault, drawn by `seed`; calling it puts the fault into a module, and `what` tells it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.what = ""

    def __call__(self, module: Any) -> None:
        text = module.operation.get_asm(print_generic_op_form=True)
        lines = [line.partition("  // ")[0] for line in text.splitlines()]
        kinds = [
            self.erase, self.repeat, self.exchange, self.number, self.number, self.number,
            self.operand, self.operand, self.operation, self.branch, self.word,
        ]  # fmt: skip
        for _ in range(TRIES):
            changed, kind = list(lines), self.random.choice(kinds)
            at = self.random.randrange(1, len(lines) - 1)
            if not kind(changed, at) or changed == lines or not _put(module, "\n".join(changed)):
                continue
            new = next((line for line in changed if line not in lines), "nothing")
            self.what = f"{kind.__name__}: {lines[at].strip()} -> {new.strip()}"
            return
        raise NoFaultError

    def erase(self, lines: list[str], at: int) -> bool:
        """An operation is missing; what used its result uses another value."""
        if not _whole(lines[at]):
            return False
        result, equals, _ = lines[at].strip().partition(" = ")
        if equals:
            known = _values(lines, at)
            if not known or ":" in result:
                return False
            other = self.random.choice(known)
            use = re.compile(re.escape(result) + r"(?![\w#])")
            lines[at + 1 :] = [use.sub(other, line) for line in lines[at + 1 :]]
        del lines[at]
        return True

    def repeat(self, lines: list[str], at: int) -> bool:
        """An operation without results stands there twice."""
        if not _whole(lines[at]) or not lines[at].strip().startswith('"'):
            return False
        lines.insert(at, lines[at])
        return True

    def exchange(self, lines: list[str], at: int) -> bool:
        """Two neighbours change places, one of them without results."""
        pair = lines[at : at + 2]
        if not all(map(_whole, pair)) or not any(line.strip().startswith('"') for line in pair):
            return False
        lines[at : at + 2] = pair[::-1]
        return True

    def number(self, lines: list[str], at: int) -> bool:
        """A number in an attribute, a constant or an instruction's text."""
        text, arrow, types = lines[at].rpartition(" : (")
        if not arrow:
            return False
        blind = [m.span() for m in BLIND.finditer(text)]
        found = [m for m in INTEGER.finditer(text) if not any(a <= m.start() < b for a, b in blind)]
        if not found:
            return False
        one = self.random.choice(found)
        old = int(one[0])
        new = self.random.choice(
            [old + 1, old - 1, 0, 1, 2 * old, old + 16, -old, old // 2, 1 << 40]
        )
        lines[at] = text[: one.start()] + str(new) + text[one.end() :] + arrow + types
        return True

    def operand(self, lines: list[str], at: int) -> bool:
        """An operand is another value: one of the same operation, a near one or any."""
        left, equals, right = lines[at].partition(" = ") if _whole(lines[at]) else ("", "", "")
        text = right if lines[at].strip().startswith("%") else lines[at]
        found, known = list(VALUE.finditer(text)), _values(lines, at)
        if not found or not known:
            return False
        one = self.random.choice(found)
        near = self.random.choice([[m[0] for m in found], known[-30:], known])
        changed = text[: one.start()] + self.random.choice(near) + text[one.end() :]
        lines[at] = left + equals + changed if text is right else changed
        return True

    def operation(self, lines: list[str], at: int) -> bool:
        """An operation is another one of the same types."""
        name = re.search(r'"([\w.]+)"\(', lines[at])
        group = next((g for g in ALIKE if name and name[1] in g), None)
        if name is None or group is None:
            return False
        other = self.random.choice(sorted(group - {name[1]}))
        lines[at] = lines[at].replace(name[0], f'"{other}"(', 1)
        return True

    def branch(self, lines: list[str], at: int) -> bool:
        """A branch goes to another block."""
        if "[^bb" not in lines[at]:
            return False
        return self._another(lines, at, LABEL)

    def word(self, lines: list[str], at: int) -> bool:
        """An enumeration or a string attribute is another one of the module."""
        return self._another(lines, at, self.random.choice([ENUM, WORD]))

    def _another(self, lines: list[str], at: int, pattern: re.Pattern[str]) -> bool:
        found = list(pattern.finditer(lines[at]))
        if not found:
            return False
        one = self.random.choice(found)
        others = sorted({m[0] for line in lines for m in pattern.finditer(line)})
        lines[at] = lines[at][: one.start()] + self.random.choice(others) + lines[at][one.end() :]
        return True


def _whole(line: str) -> bool:
    """Whether an operation begins and ends on the line."""
    return line.strip().startswith(('"', "%")) and not line.endswith("({")


def _values(lines: list[str], at: int) -> list[str]:
    """Names of the values that are defined above, the nearest last."""
    names: list[str] = []
    for line in lines[:at]:
        text = line.strip()
        if text.startswith("%"):
            names.append(text.partition(" ")[0].partition(":")[0])
        elif text.startswith("^"):
            names += VALUE.findall(text)
    return names


def _put(module: Any, text: str) -> bool:
    """Replaces what `module` holds by the module of `text`; False if that is refused."""
    with module.context:
        try:
            new = load_module(text, module.context)
        except (tcir.InputError, tcir.NativeCrashError):
            return False
        old, attributes = module.operation.attributes, new.operation.attributes
        for name in [name for name in old if name not in attributes]:
            del old[name]
        for name in attributes:
            old[name] = attributes[name]
        for op in list(module.body.operations):
            op.operation.erase()
        with ir.InsertionPoint(module.body), ir.Location.unknown():
            for op in new.body.operations:
                op.operation.clone()
    return True
