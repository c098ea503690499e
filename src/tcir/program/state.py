"""The program after a step, as text for people to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tcir.program.source import position

if TYPE_CHECKING:
    from tcir._mlir import ir


@dataclass(frozen=True)
class State:
    """IR in the short form of ``--emit=pretty``, or PTX.

    ops: the lines (from 1) of ops of ours, by what findings call them: ``FILE:LINE:COLUMN: OP``
    """

    text: str
    ptx: bool = False
    ops: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, module: ir.Module) -> State:
        from tcir.dialect.pretty import pretty_lines

        lines = pretty_lines(module)
        ops: dict[str, tuple[int, ...]] = {}
        for number, (_, op) in enumerate(lines, start=1):
            if op is not None:
                file, row, column = position(op.location)
                name = f"{file}:{row}:{column}: {op.OPERATION_NAME}"
                ops[name] = (*ops.get(name, ()), number)
        return cls("".join(f"{line}\n" for line, _ in lines), ops=ops)
