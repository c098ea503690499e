"""PTX text to tokens (PTX ISA 4.1–4.5)."""

from __future__ import annotations

import re
from typing import NamedTuple

from tcir.interp.ptx.errors import PtxSyntaxError

#: Characters of a module; the largest kernels of shipping libraries stay far below it.
MAX_TEXT = 64 << 20


class Token(NamedTuple):
    kind: str  # "word", "number", "numbers", "string", "punct", "end"
    text: str
    line: int
    column: int
    offset: int


_TOKEN = re.compile(
    r"""
    [ \t\r\f\v]*+(?:
    (?P<space>//[^\n]*|\Z)
  | (?P<newline>\n)
  | (?P<comment>/\*.*?\*/)
  | (?P<number>0[fF][0-9a-fA-F]{8}(?![\w.])|0[dD][0-9a-fA-F]{16}(?![\w.])
      |0[xX][0-9a-fA-F]+U?|0[bB][01]+U?
      |\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+U?)
  | (?P<word>\.?[A-Za-z_$%][\w$]*(?:(?:\.|::)[\w$]+)*)
  | (?P<string>"[^"\n]*")
  | (?P<punct>[][(){},;:@!|+\-*=<>&~?%^]|/(?!\*)))
    """,
    re.VERBOSE | re.DOTALL,
)

_SPACES = " \t\r\f\v"
_NUMBERS = re.compile(r"\s*+((?:0|[1-9]\d{0,17}+)(?:\s*+,\s*+(?:0|[1-9]\d{0,17}+))*+)(?=\s*+\})")
"""The values of a table: decimal integers, which are one token. It never goes back over them: to be
ready to takes five times as long."""


def tokenize(text: str) -> list[Token]:
    """Tokens of `text`, the last of kind "end". Raises PtxSyntaxError with line and column."""
    if len(text) > MAX_TEXT:
        raise PtxSyntaxError(f"expected at most {MAX_TEXT} characters, got {len(text)}", 1, 1)
    tokens: list[Token] = []
    line, start, at, last = 1, 0, 0, ""
    match_token = _TOKEN.match
    while at < len(text):
        match = match_token(text, at)
        if match is None:
            raise _unexpected(text, at, line, start)
        kind, group = match.lastgroup, match.lastindex
        assert kind is not None and group is not None
        first, at = match.span(group)
        if kind == "newline":
            line, start = line + 1, at
        elif kind == "comment":
            line += text.count("\n", first, at)
            start = max(start, text.rfind("\n", first, at) + 1)
        elif kind != "space":
            word = text[first:at]
            tokens.append(Token(kind, word, line, first - start + 1, first))
            if word == "{" and last == "=":
                values = _NUMBERS.match(text, at)
                if values is not None:
                    before, at = at, values.end()
                    column = values.start(1) - start + 1
                    tokens.append(Token("numbers", values[1], line, column, values.start(1)))
                    if broken := text.count("\n", before, at):
                        line, start = line + broken, text.rindex("\n", before, at) + 1
            last = word
    tokens.append(Token("end", "end of text", line, at - start + 1, at))
    return tokens


def _unexpected(text: str, at: int, line: int, start: int) -> PtxSyntaxError:
    """What stands where no token does, behind spaces; start: of the line."""
    while text[at] in _SPACES:
        at += 1
    what = "comment without end" if text.startswith("/*", at) else f"character {text[at]!r}"
    return PtxSyntaxError(f"unexpected {what}", line, at - start + 1)
