"""The tokens of a module, one after the other, and the numbers among them (PTX ISA 4.5.1)."""

from __future__ import annotations

import struct

from tcir.interp.ptx.errors import PtxSyntaxError
from tcir.interp.ptx.lexer import Token, tokenize
from tcir.interp.ptx.syntax import Imm

_SHOWN = 80  # characters of a token that a message shows


class Tokens:
    """Reads tokens."""

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
