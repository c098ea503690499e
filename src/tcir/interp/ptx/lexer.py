"""PTX text to tokens (PTX ISA 4.1–4.5)."""

from __future__ import annotations

import re
from typing import NamedTuple

from tcir.interp.ptx.errors import PtxSyntaxError

#: Characters of a module; the largest kernels of shipping libraries stay far below it.
MAX_TEXT = 64 << 20


class Token(NamedTuple):
    kind: str  # "word", "number", "numbers", "place", "string", "punct", "end"
    text: str
    line: int
    column: int
    offset: int


_SPACE = re.compile(r"(?:[ \t\r\f\v\n]++|//[^\n]*+|/\*.*?\*/)*+", re.DOTALL)
_TOKEN = re.compile(
    _SPACE.pattern
    + r"""(?:
    (?P<word>\.?[A-Za-z_$%][\w$]*+(?:(?:\.|::)[\w$]++)*+)
  | (?P<punct>[][(){},;:@!|+\-*=<>&~?%^]|/(?!\*))
  | (?P<number>0[fF][0-9a-fA-F]{8}(?![\w.])|0[dD][0-9a-fA-F]{16}(?![\w.])
      |0[xX][0-9a-fA-F]+U?|0[bB][01]+U?
      |\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+U?)
  | (?P<string>"[^"\n]*")
  | (?P<end>\Z))
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_INTEGER = r"(?:[1-9][0-9]{0,17}+|0)"
_NUMBERS = re.compile(rf"\s*+(?P<numbers>{_INTEGER}(?:\s*+,\s*+{_INTEGER})*+)(?=\s*+\}})")
"""The values of a table: decimal integers, which are one token. It never goes back over them: to be
ready to takes five times as long."""
_PLACE = re.compile(
    rf"[ \t]+(?P<place>{_INTEGER} {_INTEGER} {_INTEGER}"
    r"(?:, function_name [\w$]+, inlined_at [0-9]+ [0-9]+ [0-9]+)?)(?=\r?\n)"
)
"""What stands behind `.loc` as compilers write it: one token, since every other line of a kernel
may be such a one."""


def tokenize(text: str) -> list[Token]:
    """Tokens of `text`, the last of kind "end". Raises PtxSyntaxError with line and column."""
    if len(text) > MAX_TEXT:
        raise PtxSyntaxError(f"expected at most {MAX_TEXT} characters, got {len(text)}", 1, 1)
    tokens: list[Token] = []
    new = tuple.__new__
    match_token, append = _TOKEN.match, tokens.append
    line, start, first, at, last, word, kind = 1, 0, 0, 0, "", "", ""
    while kind != "end":
        match = None
        if word == ".loc":
            match = _PLACE.match(text, at)
        elif word == "{" and last == "=":
            match = _NUMBERS.match(text, at)
        if match is None and (match := match_token(text, at)) is None:
            raise _unexpected(text, at)
        kind, before, last = match.lastgroup or "", first, word
        first, at = match.span(kind)
        if broken := text.count("\n", before, first):
            line, start = line + broken, text.rindex("\n", before, first) + 1
        word = text[first:at]
        append(new(Token, (kind, word, line, first - start + 1, first)))
    tokens[-1] = Token("end", "end of text", *tokens[-1][2:])
    return tokens


def _unexpected(text: str, at: int) -> PtxSyntaxError:
    """What stands where no token does, behind spaces and comments."""
    spaces = _SPACE.match(text, at)
    at = spaces.end() if spaces else at
    what = "comment without end" if text.startswith("/*", at) else f"character {text[at]!r}"
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return PtxSyntaxError(f"unexpected {what}", line, column)
