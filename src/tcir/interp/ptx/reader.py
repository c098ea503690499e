"""Tokens, numbers, registers and operands: the part of the parser below statements."""

from __future__ import annotations

import re
import struct

from tcir.interp.ptx.errors import PtxSyntaxError
from tcir.interp.ptx.lexer import Token, tokenize
from tcir.interp.ptx.syntax import (
    Address,
    Function,
    Imm,
    Not,
    Operand,
    Pair,
    Reg,
    Scope,
    Selected,
    Sink,
    Special,
    Symbol,
    Type,
    Vector,
)

_MAX_VECTOR = 256
_SHOWN = 80  # characters of a token that a message shows
_SPECIAL = re.compile(
    r"%(n?tid|n?ctaid|cluster_n?ctaid|n?clusterid)(\.[xyzw])?|%(laneid|n?warpid|n?smid|gridid"
    r"|is_explicit_cluster|cluster_n?ctarank|lanemask_(eq|le|lt|ge|gt)|clock|clock_hi|clock64"
    r"|globaltimer|globaltimer_(lo|hi)|envreg\d+|pm\d(_64)?|dynamic_smem_size|total_smem_size"
    r"|aggr_smem_size|current_graph_exec|reserved_smem_offset_\w+)"
)
#: Bytes and halves of a register, of the video instructions: .b0, .h1, .b3210.
_SELECTOR = re.compile(r"[bh]\d{1,4}")
_IDENTIFIER = re.compile(r"[a-zA-Z][\w$]*|[_$%][\w$]+", re.ASCII).fullmatch
_RANGED = re.compile(r"(.*?)(0|[1-9]\d*)\Z")


class Reader:
    """Reads tokens one after the other; knows the registers of the function it is in."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0
        self.files: dict[str, str] = {}
        self.source = ""
        self.function: Function | None = None

    # --- tokens -------------------------------------------------------------------------------
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

    def identifier(self, what: str) -> str:
        """A name that is declared here (PTX ISA 4.4)."""
        if not _IDENTIFIER(self.peek.text):
            raise self.fail(f"{what} ([a-zA-Z][a-zA-Z0-9_$]* or [_$%][a-zA-Z0-9_$]+)")
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

    # --- registers and operands ---------------------------------------------------------------
    def new_register(self, name: str, kind: Type) -> Reg:
        assert self.function is not None
        reg = Reg(name, kind, len(self.function.registers))
        self.function.registers.append(reg)
        return reg

    def lookup(self, name: str, scope: Scope) -> Reg | None:
        if name in scope.registers:
            return scope.registers[name]
        ranged = _RANGED.match(name)
        level: Scope | None = scope
        while level is not None:
            reg = level.registers.get(name)
            if reg is not None:
                return reg
            if ranged and len(ranged[2]) <= 8:
                found = level.ranges.get(ranged[1])
                if found and int(ranged[2]) < found[1]:
                    reg = level.registers[name] = self.new_register(name, found[0])
                    return reg
            level = level.parent
        return None

    def operand(self, scope: Scope) -> Operand:
        if self.tokens[self.at].kind == "punct":
            if self.accept("{"):
                return self.vector("}", scope)
            if self.accept("("):
                return self.vector(")", scope)
            if self.accept("["):
                return self.address(scope)
        first = self.atom(scope)
        if self.accept("|"):
            second = self.atom(scope)
            return Pair(first, second)
        if isinstance(first, Imm) and first.kind == "int":
            value = int(first.value)
            while self.peek.text in ("+", "-"):
                value += self.integer() if self.accept("+") else -self.integer_after_minus()
            return Imm(value)
        if isinstance(first, Symbol) and self.peek.text in ("+", "-"):
            offset = self.integer() if self.accept("+") else -self.integer_after_minus()
            return Symbol(first.name, offset)
        return first

    def integer_after_minus(self) -> int:
        self.expect("-")
        return self.integer()

    def vector(self, closing: str, scope: Scope) -> Vector:
        items: list[Operand] = []
        while not self.accept(closing):
            items.append(self.atom(scope))
            if len(items) > _MAX_VECTOR:
                raise self.fail(f"at most {_MAX_VECTOR} elements")
            if self.peek.text != closing:
                self.expect(",")
        return Vector(tuple(items))

    def prefixed(self, scope: Scope) -> Operand:
        """`!%p`, `-1`, `~1`."""
        token = self.peek
        if self.accept("!"):
            reg = self.lookup(self.word("a predicate"), scope)
            if reg is None or reg.type.kind != "pred":
                raise self.fail("a declared predicate register", token)
            return Not(reg)
        if self.accept("-"):
            imm = self.number()
            if imm.kind == "int":
                return Imm(-int(imm.value))
            sign = 1 << (31 if imm.kind == "f32" else 63)
            return Imm(int(imm.value) ^ sign, imm.kind)
        if self.accept("~"):
            return Imm(~self.integer())
        raise self.fail("an operand")

    def atom(self, scope: Scope) -> Operand:
        token = self.peek
        if token.kind == "punct":
            return self.prefixed(scope)
        if token.kind == "number":
            return self.number()
        if token.kind != "word":
            raise self.fail("an operand")
        name = self.next().text
        if name == "_":
            return Sink()
        reg = self.lookup(name, scope)
        if reg is not None:
            return reg
        base, _, selector = name.rpartition(".")
        whole = self.lookup(base, scope) if _SELECTOR.fullmatch(selector) else None
        if whole is not None:
            return Selected(whole, selector)
        if name == "WARP_SZ":
            return Imm(32)
        if name.startswith("%"):
            if _SPECIAL.fullmatch(name):
                return Special(name)
            raise self.fail("a declared register or a special register", token)
        if name.startswith("."):
            raise self.fail("an operand", token)
        return Symbol(name)

    def address(self, scope: Scope) -> Address:
        base = self.atom(scope)
        offset = 0
        coordinates: tuple[Operand, ...] | None = None
        while self.peek.text in ("+", "-"):
            offset += self.integer() if self.accept("+") else -self.integer_after_minus()
        if self.accept(","):
            if self.peek.text != "{":  # the sampler of a texture instruction
                self.atom(scope)
                self.expect(",")
            self.expect("{")
            coordinates = self.vector("}", scope).items
        self.expect("]")
        return Address(base, offset, coordinates)
