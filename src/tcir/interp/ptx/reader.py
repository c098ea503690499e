"""Parses registers and operands; the parser of statements builds on it."""

from __future__ import annotations

import re

from tcir.interp.ptx.expressions import OPERATORS, WARP_SIZE, Expressions
from tcir.interp.ptx.syntax import (
    Address,
    BlockScope,
    Function,
    Negated,
    Not,
    Operand,
    Pair,
    Reg,
    Selected,
    Sink,
    SpecialRegister,
    Symbol,
    Type,
    Variable,
    Vector,
)

_MAX_VECTOR = 256
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


class Reader(Expressions):
    """Reads operands, given the registers of the enclosing function."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.files: dict[str, str] = {}
        self.source = ""
        self.function: Function | None = None
        self.variables: dict[str, Variable] = {}

    def identifier(self, what: str) -> str:
        """Reads an identifier (PTX ISA 4.4). what: words for the identifier in an error message"""
        if not _IDENTIFIER(self.peek.text):
            raise self.fail(f"{what} ([a-zA-Z][a-zA-Z0-9_$]* or [_$%][a-zA-Z0-9_$]+)")
        return self.next().text

    # --- registers and operands ---------------------------------------------------------------
    def new_register(self, name: str, kind: Type) -> Reg:
        assert self.function is not None
        reg = Reg(name, kind, len(self.function.registers))
        self.function.registers.append(reg)
        return reg

    def lookup(self, name: str, scope: BlockScope) -> Reg | None:
        if name in scope.registers:
            return scope.registers[name]
        ranged = _RANGED.match(name)
        level: BlockScope | None = scope
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

    def operand(self, scope: BlockScope, listed: bool = False) -> Operand:
        """Reads an operand. listed: parentheses enclose a list, as in call, and not an
        expression
        """
        if self.tokens[self.at].kind == "punct":
            if self.accept("{"):
                return self.vector("}", scope)
            if listed and self.accept("("):
                return self.vector(")", scope)
            if self.accept("["):
                return self.address(scope)
        first = self.atom(scope)
        if self.accept("|"):
            second = self.atom(scope)
            return Pair(first, second)
        if isinstance(first, Symbol) and self.peek.text in ("+", "-"):
            return Symbol(first.name, self.offset())
        if isinstance(first, Symbol) and self.accept("["):
            return self.element(first.name, scope)
        return first

    def element(self, name: str, scope: BlockScope) -> Symbol:
        """Reads `name[index]`, the address of an element of an array (PTX ISA 6.4.2)."""
        token = self.peek
        parameters = {each.name: each for each in self.function.params} if self.function else {}
        array = scope.variable(name) or parameters.get(name) or self.variables.get(name)
        if array is None:
            raise self.fail(f"an array that is declared, before [: {name} is none", token)
        index = self.constant("a constant index, or a byte address in brackets")
        if not isinstance(index.value, int):
            raise self.fail("an integer", token)
        self.expect("]")
        return Symbol(name, index.value * array.type.size, element=True)

    def vector(self, closing: str, scope: BlockScope) -> Vector:
        items: list[Operand] = []
        while not self.accept(closing):
            items.append(self.atom(scope))
            if len(items) > _MAX_VECTOR:
                raise self.fail(f"at most {_MAX_VECTOR} elements")
            if self.peek.text != closing:
                self.expect(",")
        return Vector(tuple(items))

    def prefixed(self, scope: BlockScope) -> Operand:
        """Reads a negated predicate `!%p`, or an expression such as `-1`, `~1`, `(1+2)*3`."""
        if self.peek.text == "!" and self.tokens[self.at + 1].kind == "word":
            self.next()
            token = self.peek
            reg = self.lookup(self.word("a predicate"), scope)
            if reg is None or reg.type.kind != "pred":
                raise self.fail("a declared predicate register", token)
            return Not(reg)
        name = self.tokens[self.at + 1].text.partition(".")[0]
        if self.peek.text == "-" and self.lookup(name, scope):
            self.next()
            negated = self.atom(scope)
            assert isinstance(negated, Reg | Selected)
            return Negated(negated)
        return self.constant("an operand")

    def atom(self, scope: BlockScope) -> Operand:
        token = self.peek
        if token.kind == "punct":
            return self.prefixed(scope)
        if token.kind == "number":
            if self.tokens[self.at + 1].text in OPERATORS:
                return self.constant("an operand")
            return self.number()
        if token.kind != "word":
            raise self.fail("an operand")
        name = self.next().text
        while self.tokens[self.at].text[0] == "." and self.peek.kind == "word":
            name += self.next().text  # white space may stand before a component
        if name == "_":
            return Sink()
        reg = self.lookup(name, scope)
        if reg is not None:
            return reg
        vector = scope.vector(name)
        if vector is not None:
            return vector
        base, _, selector = name.rpartition(".")
        whole = self.lookup(base, scope) if _SELECTOR.fullmatch(selector) else None
        if whole is not None:
            return Selected(whole, selector)
        if name == WARP_SIZE:
            self.at -= 1
            return self.constant("an operand")
        if name.startswith("%"):
            if _SPECIAL.fullmatch(name):
                return SpecialRegister(name)
            raise self.fail("a declared register or a special register", token)
        if name.startswith("."):
            raise self.fail("an operand", token)
        return Symbol(name)

    def address(self, scope: BlockScope) -> Address:
        base = self.atom(scope)
        offset = self.offset()
        coordinates: tuple[Operand, ...] | None = None
        sampler = False
        if self.accept(","):
            if sampler := self.peek.text != "{":
                self.atom(scope)
                self.expect(",")
            self.expect("{")
            coordinates = self.vector("}", scope).items
        self.expect("]")
        return Address(base, offset, coordinates, sampler)
