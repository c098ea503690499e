"""The program after one pass, as text for people to read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tcir.program.source import position

if TYPE_CHECKING:
    from tcir._mlir import ir


SITES = 6
"""Largest number of the named program lines that a report shows."""
_OP = re.compile(r"[^\s(]+?:\d+:\d+: \w+\.[\w.]+")
_PTX_LINE = re.compile(r"\bline (\d+)\b")


@dataclass(frozen=True)
class State:
    """IR in the short form of ``--emit=pretty``, or PTX.

    ops: for the name of an op in findings (``FILE:LINE:COLUMN: OP``): its lines in this text, from
    1
    """

    text: str
    ptx: bool = False
    ops: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, module: ir.Module, *, verified: bool = False) -> State:
        """Returns the state of `module`. verified: whether the module is known to be valid."""
        from tcir.dialect.pretty import pretty_lines

        lines = pretty_lines(module, verified=verified)
        ops: dict[str, tuple[int, ...]] = {}
        for number, (_, op) in enumerate(lines, start=1):
            if op is not None:
                file, row, column = position(op.location)
                name = f"{file}:{row}:{column}: {op.OPERATION_NAME}"
                ops[name] = (*ops.get(name, ()), number)
        return cls("".join(f"{line}\n" for line, _ in lines), ops=ops)

    def sites(self, words: str) -> dict[int, str]:
        """Returns the lines of the program that the text `words` names, by line number, in the
        order in which it names them.
        """
        found = [int(number) for number in _PTX_LINE.findall(words)] if self.ptx else []
        for name in _OP.findall(words):
            found += self.ops.get(name, ())
        text = self.text.splitlines()
        return {line: text[line - 1].strip() for line in found if line <= len(text)}
