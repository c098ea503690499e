"""The error for invalid PTX text."""

from __future__ import annotations

from tcir.errors import InputError


class PtxSyntaxError(InputError, ValueError):
    """Raised for text that is not valid PTX, at `line` and `column` (both counted from 1)."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"{line}:{column}: {message}")
        self.line = line
        self.column = column
