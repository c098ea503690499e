"""Directives inside and outside functions: debug information, types, variables (PTX ISA 5, 11)."""

from __future__ import annotations

from tcir.interp.ptx.errors import PtxSyntaxError
from tcir.interp.ptx.expressions import WARP_SIZE
from tcir.interp.ptx.lexer import Token
from tcir.interp.ptx.reader import Reader
from tcir.interp.ptx.syntax import TYPES, Imm, IntegerTable, Symbol, Type, Variable, count_of

_MAX_BYTES = 1 << 40  # of one variable
SPACES = {".shared": "shared", ".global": "global", ".const": "const", ".local": "local"}


class Declarations(Reader):
    """Reads declarations, and keeps the source line that the last .loc names."""

    def debug(self) -> bool:
        """Skips a debug directive or a hint. The contents of .file and .loc are kept for the
        locations in reports.
        """
        text = self.peek.text
        if text == ".file":
            self.next()
            number = str(self.integer())
            name = self.next()
            if name.kind != "string":
                raise self.fail("a file name", name)
            self.files[number] = name.text.strip('"')
            while self.accept(","):
                self.integer()
        elif text == ".loc":
            self.location()
        elif text == ".section":
            self.next()
            self.word("a section name")
            token = self.expect("{")
            depth = 1
            while depth:
                part = self.next()
                if part.kind == "end":
                    raise PtxSyntaxError("section without closing }", token.line, token.column)
                depth += (part.text == "{") - (part.text == "}")
        elif text == ".pragma":
            self.next()
            while not self.accept(";"):
                if self.next().kind == "end":
                    raise self.fail("';'")
        else:
            return False
        return True

    def location(self) -> None:
        """Reads `.loc file line column{, function_name name{+n}, inlined_at file line column}`."""
        self.next()
        if self.peek.kind == "place":
            file, line, _ = self.next().text.split(" ", 2)
            self.source = f"{file}:{line}"
            return
        self.source = f"{self.integer()}:{self.integer()}"
        self.integer()  # the column
        while self.accept(","):
            self.word()
            if self.peek.kind == "word" and not self.peek.text.startswith("."):
                self.next()
                if self.accept("+"):
                    self.integer()
            else:
                while self.peek.kind == "number":
                    self.next()

    def skip_parentheses(self) -> None:
        self.next()
        self.expect("(")
        while not self.accept(")"):
            if self.next().kind == "end":
                raise self.fail("')'")

    def type_of(self, name: str, token: Token) -> Type:
        found = TYPES.get(name.removeprefix("."))
        if found is None:
            raise self.fail("a type such as .b32", token)
        return found

    def variable_list(self, extern: bool) -> list[Variable]:
        """Reads `.space {.align n} {.v4} .type name[size] {= init}, … ;`."""
        space = SPACES.get(self.next().text, "param")
        align, lanes, kind = self.type_modifiers()
        out = []
        while True:
            out.append(self.declarator(space, align, lanes, kind, extern))
            if not self.accept(","):
                break
        self.expect(";")
        return out

    def type_modifiers(self) -> tuple[int, int, Type]:
        align, lanes = 0, 1
        while True:
            token = self.next()
            if token.text == ".align":
                align = self.integer("an alignment")
                if align <= 0 or align & (align - 1) or align > 1 << 20:
                    raise self.fail("an alignment that is a power of two", token)
            elif token.text in (".v2", ".v4", ".v8"):
                lanes = int(token.text[2:])
            elif token.text == ".attribute":
                self.at -= 1
                self.skip_parentheses()
            elif token.text == ".ptr" or token.text in SPACES or token.text == ".param":
                continue  # `.ptr .global .align 16`: what a pointer parameter points to
            elif token.text == ".reg":
                continue
            else:
                return align, lanes, self.type_of(token.text, token)

    def declarator(self, space: str, align: int, lanes: int, kind: Type, extern: bool) -> Variable:
        # Attributes of pointer parameters follow the type: .u64 .ptr .global .align 16
        pointee = 1
        while self.peek.text in (".ptr", ".global", ".shared", ".const", ".local", ".align"):
            word = self.next()
            if word.text == ".align":
                pointee = self.integer("an alignment")
                if pointee <= 0 or pointee & (pointee - 1):
                    raise self.fail("an alignment that is a power of two", word)
            elif word.text == ".ptr":
                pointee = 4
        token = self.peek
        name = self.identifier("a name")
        size, array = kind.size * lanes, False
        if kind.kind == "pred":
            raise self.fail("a type with a size (.pred lives in registers only)", token)
        empty = False
        while self.accept("["):
            array = True
            if self.accept("]"):
                empty, size = True, 0
                continue
            count = self.integer("a size")
            if count < 0 or count * max(size, 1) > _MAX_BYTES:
                raise self.fail(f"a size of at most {_MAX_BYTES} bytes", token)
            size *= count
            self.expect("]")
        initial = self.initialiser() if self.accept("=") else None
        if empty and initial is not None:
            size = kind.size * count_of(initial)
        natural = kind.size * lanes
        return Variable(
            name, space, kind, size, align or natural, array, token.line, extern, initial,
            pointee=pointee,
        )  # fmt: skip

    def initialiser(self) -> tuple[Imm | Symbol | IntegerTable, ...]:
        values: list[Imm | Symbol | IntegerTable] = []
        depth = 0
        while True:
            if self.accept("{"):
                depth += 1
                continue
            token = self.peek
            if self.accept("}"):
                depth -= 1
            elif token.kind == "word" and token.text != WARP_SIZE:
                values.append(self.initial_address(None))
            elif token.kind == "numbers":
                values.append(IntegerTable(self.next().text))
            else:
                values.append(self.initial_number())
            while self.peek.text == "}" and depth > 0:
                self.next()
                depth -= 1
            if depth < 0:
                raise self.fail("a balanced initialiser", token)
            if not depth:
                return tuple(values)
            if not self.accept(","):
                raise self.fail("',' or '}'")

    def initial_address(self, mask: int | None) -> Symbol:
        """Reads an address in an initial value: `name` or `generic(name)`, each optionally with `+
        offset`.
        """
        name = self.word()
        if name == "generic":
            self.expect("(")
            name = self.word()
            self.expect(")")
        return Symbol(name, self.offset(), mask)

    def initial_number(self) -> Imm | Symbol:
        """Reads a number in an initial value: a constant, or a constant that masks bits of an
        address, as in `0xff00(name)`.
        """
        if self.peek.kind == "number" and self.tokens[self.at + 1].text == "(":
            mask = self.integer()
            self.expect("(")
            symbol = self.initial_address(mask)
            self.expect(")")
            return symbol
        return self.constant()
