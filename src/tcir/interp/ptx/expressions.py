"""Evaluates constant expressions (PTX ISA 4.5) while they are parsed.

Integers have 64 bits. They are signed unless a literal has the suffix U or does not fit into a
signed integer. An operator with one signed and one unsigned operand is unsigned. Where the ISA
leaves a choice, the evaluation follows ptxas: `%` and `~` are unsigned; `&`, `|` and `^` have the
signedness of their operands; shifts take the lowest 6 bits of their count; and `a ? b : c` has the
type of the chosen operand. Decimal floats have 64 bits, and no operator mixes floats with integers.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from dataclasses import dataclass

from tcir.interp.ptx.lexer import Token, Tokens
from tcir.interp.ptx.syntax import Imm

WARP_SIZE = "WARP_SZ"
_MASK = (1 << 64) - 1
_DEEPEST = 100  # parentheses and prefixes in one another
_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"),
    ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
"""Binary operators, those that bind least first."""
_BINDS = {sign: level for level, signs in enumerate(_LEVELS) for sign in signs}
_TERM = _BINDS["*"]
OPERATORS = frozenset("?" + "".join(_BINDS))
"""First tokens of binary operators."""


@dataclass(frozen=True)
class _Value:
    """An integer of 64 bits, or a float."""

    value: int | float
    unsigned: bool = False

    @staticmethod
    def of(value: int, unsigned: bool) -> _Value:
        low = value & _MASK
        return _Value(low if unsigned or low < 1 << 63 else low - (1 << 64), unsigned)


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_,
    "|": operator.or_, "^": operator.xor,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
_FLOATS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


class Expressions(Tokens):
    """Reads constant expressions."""

    def constant(self, what: str = "a number") -> Imm:
        """Reads a constant expression and returns its value. An expression that is a single literal
        may have any size.
        """
        if self._literal_alone():
            return self.number(what)
        if self.peek.text == "-" and self.tokens[self.at + 1].text[:2].lower() == "0f":
            self.next()
            return Imm(int(self.number(what).value) ^ 1 << 31, "f32")
        found = self._ternary(what, 0).value
        if isinstance(found, float):
            return Imm(struct.unpack("<Q", struct.pack("<d", found))[0], "f64")
        return Imm(found if found < 1 << 63 else found - (1 << 64))

    def offset(self) -> int:
        """Reads the offset that is added to an address, such as ``+4*2-(1+1)``; 0 if there is
        none.
        """
        total = 0
        while (sign := self.peek.text) in ("+", "-"):
            self.next()
            token = self.peek
            if self._literal_alone():  # nearly always
                value: int | float = self.integer()
            else:
                value = self._binary("an integer", 0, _TERM).value
            if isinstance(value, float):
                raise self.fail("an integer", token)
            total += value if sign == "+" else -value
        return total

    def _literal_alone(self) -> bool:
        return self.peek.kind == "number" and self.tokens[self.at + 1].text not in OPERATORS

    def _ternary(self, what: str, depth: int) -> _Value:
        token = self.peek
        condition = self._binary(what, depth, 0)
        if not self.accept("?"):
            return condition
        first = self._ternary("an integer", depth + 1)
        self.expect(":")
        second = self._ternary("an integer", depth + 1)
        for value in (condition, first, second):
            if isinstance(value.value, float):
                raise self.fail("integers on both sides of ? and :", token)
        return first if condition.value else second

    def _binary(self, what: str, depth: int, least: int) -> _Value:
        """Operators that bind at least as `least` does, from left to right."""
        left = self._unary(what, depth)
        while (sign := self._sign()) and _BINDS[sign] >= least:
            token = self.peek
            self.at += len(sign)
            left = self._apply(sign, left, self._binary("a number", depth, _BINDS[sign] + 1), token)
        return left

    def _sign(self) -> str:
        """The binary operator that comes next; its signs are tokens with nothing between."""
        one, two = self.peek, self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        both = one.text + two.text
        if two.offset == one.offset + 1 and both in _BINDS:
            return both
        return one.text if one.text in _BINDS else ""

    def _unary(self, what: str, depth: int) -> _Value:
        token = self.peek
        if depth > _DEEPEST:
            raise self.fail(f"at most {_DEEPEST} parentheses and prefixes in one another")
        if token.kind == "number":
            return self._literal(what)
        if self.accept(WARP_SIZE):
            return _Value(32)
        if self.accept("("):
            cast = self.peek.text
            if cast in (".s64", ".u64"):
                self.next()
                self.expect(")")
                value = self._integer(self._unary("an integer", depth + 1), token)
                return _Value.of(value, cast == ".u64")
            inner = self._ternary("a number", depth + 1)
            self.expect(")")
            return inner
        sign = token.text
        if token.kind != "punct" or sign not in ("+", "-", "!", "~"):
            raise self.fail(what)
        self.next()
        operand = self._unary("a number", depth + 1)
        if sign in ("+", "-") and isinstance(operand.value, float):
            return _Value(operand.value if sign == "+" else -operand.value)
        value = self._integer(operand, token)
        if sign == "!":
            return _Value(int(not value))
        if sign == "~":
            return _Value.of(~value, True)
        return _Value.of(value if sign == "+" else -value, operand.unsigned)

    def _literal(self, what: str) -> _Value:
        token = self.peek
        literal = self.number(what)
        if literal.kind == "f32":
            raise self.fail("a decimal float: expressions have no 0f literals", token)
        value = int(literal.value)
        if literal.kind == "f64":
            return _Value(struct.unpack("<d", struct.pack("<Q", value))[0])
        return _Value(value, token.text.endswith("U") or value >= 1 << 63)

    def _integer(self, value: _Value, token: Token) -> int:
        if isinstance(value.value, float):
            raise self.fail("an integer as operand", token)
        return value.value

    def _apply(self, sign: str, left: _Value, right: _Value, token: Token) -> _Value:
        a, b = left.value, right.value
        if isinstance(a, float) and isinstance(b, float) and sign in (*_FLOATS, *_COMPARISONS):
            if sign in _COMPARISONS:
                return _Value(int(_COMPARISONS[sign](a, b)))
            if sign == "/" and not b:
                raise self.fail("a divisor that is not 0", token)
            return _Value(_FLOATS[sign](a, b))
        a, b = self._integer(left, token), self._integer(right, token)
        if sign in ("&&", "||"):
            return _Value(int(bool(a and b) if sign == "&&" else bool(a or b)))
        if sign in ("<<", ">>"):
            count = b & 63
            return _Value.of(a << count if sign == "<<" else a >> count, left.unsigned)
        unsigned = left.unsigned or right.unsigned or sign == "%"
        a, b = (int(_Value.of(each, unsigned).value) for each in (a, b))
        if sign in _COMPARISONS:
            return _Value(int(_COMPARISONS[sign](a, b)))
        if sign in ("/", "%"):
            if not b:
                raise self.fail("a divisor that is not 0", token)
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return _Value.of(quotient if sign == "/" else a % b, unsigned)
        return _Value.of(_ARITHMETIC[sign](a, b), unsigned)
