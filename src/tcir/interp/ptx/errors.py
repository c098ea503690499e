"""The error of a PTX text."""

from __future__ import annotations

from tcir.errors import InputError


class PtxSyntaxError(InputError, ValueError):
    """Text that is not PTX; `line` and `column` (both from 1) say where."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"{line}:{column}: {message}")
        self.line = line
        self.column = column
