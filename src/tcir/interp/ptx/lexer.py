"""Splits PTX text into tokens, and reads the numbers among them (PTX ISA 4.1–4.5)."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from tcir.interp.ptx.errors import PtxSyntaxError
from tcir.interp.ptx.syntax import Imm

_SHOWN = 80  # characters of a token that a message shows
#: Characters of a module; the largest kernels of shipping libraries stay far below it.
MAX_TEXT = 64 << 20


class Token(NamedTuple):
    kind: str  # "word", "number", "numbers", "place", "string", "punct", "end"
    text: str
    line: int
    column: int
    offset: int


_SPACE = re.compile(
    r"(?:[ \t\r\f\v\n]++|//[^\n]*+|/\*.*?\*/|(?:(?<=\n)|(?<!.))\#[^\n]*+)*+", re.DOTALL
)
"""Also lines of a preprocessor, `# 1 "file.cu"`."""
_TOKEN = re.compile(
    _SPACE.pattern
    + r"""(?:
    (?P<word>\.[A-Za-z_$%][\w$]*+(?:::[\w$]++)*+|[A-Za-z_$%][\w$]*+(?:(?:\.|::)[\w$]++)*+)
  | (?P<punct>[][(){},;:@!|+\-*=<>&~?%^]|/(?!\*))
  | (?P<number>0[fF][0-9a-fA-F]{8}(?![\w.])|0[dD][0-9a-fA-F]{16}(?![\w.])
      |0[xX][0-9a-fA-F]+U?|0[bB][01]+U?
      |(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+U?)
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
"""Operands of `.loc` as compilers write them: one token, since every other line of a kernel may
be a `.loc`."""


def tokenize(text: str) -> list[Token]:
    """Returns the tokens of `text`; the last token has the kind "end". Raises PtxSyntaxError with
    line and column.
    """
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
    """The unexpected text where a token should start, after spaces and comments."""
    spaces = _SPACE.match(text, at)
    at = spaces.end() if spaces else at
    what = "comment without end" if text.startswith("/*", at) else f"character {text[at]!r}"
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return PtxSyntaxError(f"unexpected {what}", line, column)


class Tokens:
    """Reads the tokens of a text, one after the other."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0

    @property
    def peek(self) -> Token:
        return self.tokens[self.at]

    def next(self) -> Token:
        token = self.tokens[self.at]
        if token.kind != "end":
            self.at += 1
        return token

    def fail(self, expected: str, token: Token | None = None) -> PtxSyntaxError:
        token = token or self.peek
        text = token.text if len(token.text) <= _SHOWN else f"{token.text[:_SHOWN]}…"
        return PtxSyntaxError(f"expected {expected}, got {text!r}", token.line, token.column)

    def expect(self, text: str) -> Token:
        if self.peek.text != text or self.peek.kind == "string":
            raise self.fail(repr(text))
        return self.next()

    def accept(self, text: str) -> bool:
        token = self.tokens[self.at]
        if token.text != text or token.kind == "string":
            return False
        self.at += 1
        return True

    def word(self, what: str = "a name") -> str:
        if self.peek.kind != "word":
            raise self.fail(what)
        return self.next().text

    def integer(self, what: str = "an integer") -> int:
        token = self.peek
        negative = self.accept("-")
        value = self.number(what)
        if not isinstance(value.value, int):
            raise self.fail(what, token)
        return -value.value if negative else value.value

    def number(self, what: str = "a number") -> Imm:
        token = self.next()
        if token.kind != "number":
            raise self.fail(what, token)
        text = token.text
        head = text[:2].lower()
        if head == "0f":
            return Imm(int(text[2:], 16), "f32")
        if head == "0d":
            return Imm(int(text[2:], 16), "f64")
        if any(c in text for c in ".eE") and head != "0x":
            try:
                bits = struct.unpack("<Q", struct.pack("<d", float(text)))[0]
            except (ValueError, OverflowError):
                raise self.fail("a float", token) from None
            return Imm(bits, "f64")
        text = text.rstrip("U")
        if len(text) > 70:
            raise self.fail("an integer of at most 64 bits", token)
        if head in ("0x", "0b"):
            value = int(text, 0)
        elif text != "0" and text.startswith("0"):
            try:
                value = int(text, 8)
            except ValueError:
                raise self.fail("an octal integer", token) from None
        else:
            value = int(text)
        if value >= 1 << 64:
            raise self.fail("an integer of at most 64 bits", token)
        return Imm(value)
