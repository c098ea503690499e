"""PTX modules to syntax trees: directives, scopes, instructions (PTX ISA 4.3, 5, 11).

Every error is a PtxSyntaxError with line and column. Nothing here recurses on the text's nesting.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from tcir.interp.ptx.errors import PtxSyntaxError
from tcir.interp.ptx.lexer import Token
from tcir.interp.ptx.reader import Reader
from tcir.interp.ptx.syntax import (
    TYPES,
    Function,
    Imm,
    Instruction,
    Module,
    Not,
    Operand,
    Reg,
    Scope,
    Site,
    Symbol,
    Type,
    Variable,
)

_MAX_BLOCKS = 64  # nested { } in one function
_MAX_MNEMONIC = 256  # characters; the longest of the ISA have half as many
_MAX_BYTES = 1 << 40  # of one variable
_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_SPACES = {".shared": "shared", ".global": "global", ".const": "const", ".local": "local"}

_OPAQUE = {".texref", ".samplerref", ".surfref"}


def parse(text: str) -> Module:
    """The module that `text` spells. Raises PtxSyntaxError."""
    return _Parser(text).module()


class _Parser(Reader):
    # --- module -------------------------------------------------------------------------------
    def module(self) -> Module:
        module = Module("", "")
        while self.peek.kind != "end":
            token = self.peek
            if token.text == ".version":
                self.next()
                module.version = self.next().text
            elif token.text == ".target":
                self.next()
                names = [self.word("a target")]
                while self.accept(","):
                    names.append(self.word("a target"))
                module.target = ", ".join(names)
            elif token.text == ".address_size":
                self.next()
                if (size := self.integer()) != 64:
                    raise self.fail(f".address_size 64 (got {size})", token)
            elif not self.debug():
                self.declaration(module)
        if not module.version or not module.target:
            raise PtxSyntaxError("expected .version and .target directives, got none", 1, 1)
        self.name_sources(module)
        return module

    def name_sources(self, module: Module) -> None:
        """Puts file names into the sites: compilers write .file behind the code."""
        for function in module.functions.values():
            for instruction in function.body or ():
                site = instruction.site
                if site.source:
                    number, _, line = site.source.partition(":")
                    name = PurePosixPath(self.files.get(number, f"file {number}")).name
                    instruction.site = Site(site.line, site.text, f"{name}:{line}")

    def debug(self) -> bool:
        """Skips a debug or hint directive; remembers .file and .loc for the sites."""
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
            self.next()
            file, line, _column = self.integer(), self.integer(), self.integer()
            self.source = f"{file}:{line}"
            while self.accept(","):
                self.word()
                if self.peek.kind == "word" and not self.peek.text.startswith("."):
                    self.next()
                    if self.accept("+"):
                        self.integer()
                else:
                    while self.peek.kind == "number":
                        self.next()
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

    def declaration(self, module: Module) -> None:
        extern = False
        while self.peek.text in _LINKAGE:
            extern |= self.next().text == ".extern"
        if self.peek.text == ".attribute":
            self.skip_parentheses()
        if self.peek.text in (".entry", ".func"):
            self.parse_function(module)
        elif self.peek.text in _SPACES and self.tokens[self.at + 1].text in _OPAQUE:
            while not self.accept(";"):  # their instructions are named as incomplete
                if self.next().kind == "end":
                    raise self.fail("';'")
        elif self.peek.text in _SPACES:
            for variable in self.variable_list(extern):
                old = module.variables.get(variable.name)
                if old is None or old.extern:
                    module.variables[variable.name] = variable
                elif not extern:
                    raise PtxSyntaxError(f"{variable.name} is declared twice", variable.line, 1)
        elif self.peek.text == ".alias":
            self.alias(module)
        else:
            raise self.fail("a directive such as .entry, .func, .global or .shared")

    def alias(self, module: Module) -> None:
        """`.alias name, function;`: a declared name gets the body of a defined function."""
        self.next()
        token = self.peek
        name = self.word("a function name")
        self.expect(",")
        aliasee = self.word("a function name")
        self.expect(";")
        declared, defined = (module.functions.get(n) for n in (name, aliasee))
        if declared is None or declared.body is not None:
            raise self.fail("a function that is declared and not defined", token)
        if defined is None or defined.body is None or defined.entry:
            raise PtxSyntaxError(
                f"{name}: expected a defined .func before its alias, got {aliasee}",
                token.line,
                token.column,
            )
        module.functions[name] = defined

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
        """`.space {.align n} {.v4} .type name[size] {= init}, … ;`"""
        space = _SPACES.get(self.next().text, "param")
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
            elif token.text == ".ptr" or token.text in _SPACES or token.text == ".param":
                continue  # `.ptr .global .align 16`: what a pointer parameter points to
            elif token.text == ".reg":
                continue
            else:
                return align, lanes, self.type_of(token.text, token)

    def declarator(self, space: str, align: int, lanes: int, kind: Type, extern: bool) -> Variable:
        # For pointer parameters the attributes stand behind the type: .u64 .ptr .global .align 16
        while self.peek.text in (".ptr", ".global", ".shared", ".const", ".local", ".align"):
            if self.next().text == ".align":
                self.integer("an alignment")
        token = self.peek
        name = self.word()
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
            size = kind.size * len(initial)
        natural = kind.size * lanes
        return Variable(
            name, space, kind, size, align or natural, array, token.line, extern, initial
        )

    def initialiser(self) -> tuple[Imm | Symbol, ...]:
        values: list[Imm | Symbol] = []
        depth = 0
        while True:
            if self.accept("{"):
                depth += 1
                continue
            token = self.peek
            if self.accept("}"):
                depth -= 1
            elif token.kind == "word":
                values.append(self.initial_address(None))
            else:
                values.append(self.initial_number())
            while self.peek.text == "}" and depth > 0:
                self.next()
                depth -= 1
            if depth < 0:
                raise self.fail("a balanced initialiser", token)
            if not self.accept(","):
                if depth:
                    raise self.fail("',' or '}'")
                return tuple(values)

    def initial_address(self, mask: int | None) -> Symbol:
        """`name`, `generic(name)`, either with `+ offset`."""
        name = self.word()
        if name == "generic":
            self.expect("(")
            name = self.word()
            self.expect(")")
        offset = 0
        while self.peek.text in ("+", "-"):
            offset += self.integer() if self.accept("+") else -self.integer_after_minus()
        return Symbol(name, offset, mask)

    def initial_number(self) -> Imm | Symbol:
        """A constant, or the bits of an address that a constant masks: `0xff00(name)`."""
        negative = self.accept("-")
        imm = self.number()
        if imm.kind != "int":
            sign = 1 << (31 if imm.kind == "f32" else 63)
            return Imm(int(imm.value) ^ (sign if negative else 0), imm.kind)
        value = -int(imm.value) if negative else int(imm.value)
        if self.accept("("):
            symbol = self.initial_address(value)
            self.expect(")")
            return symbol
        while self.peek.text in ("+", "-"):
            value += self.integer() if self.accept("+") else -self.integer_after_minus()
        return Imm(value)

    # --- functions ----------------------------------------------------------------------------
    def parse_function(self, module: Module) -> None:
        entry = self.next().text == ".entry"
        results = self.parameters(entry) if not entry and self.peek.text == "(" else []
        token = self.peek
        function = Function(self.word("a function name"), entry, [], token.line, results)
        if self.peek.text == "(":
            function.params = self.parameters(entry)
        while self.peek.text.startswith("."):
            self.performance_directive(function)
        if self.accept(";"):
            module.functions.setdefault(function.name, function)
            return
        old = module.functions.get(function.name)
        if old is not None and old.body is not None:
            raise PtxSyntaxError(f"{function.name} is defined twice", token.line, token.column)
        self.body(function)
        module.functions[function.name] = function

    def parameters(self, entry: bool) -> list[Variable]:
        self.expect("(")
        out: list[Variable] = []
        while not self.accept(")"):
            if self.peek.text not in ((".param",) if entry else (".param", ".reg")):
                raise self.fail(".param" if entry else ".param or .reg")
            space = self.next().text[1:]
            align, lanes, kind = self.type_modifiers()
            out.append(self.declarator(space, align, lanes, kind, False))
            if self.peek.text != ")":
                self.expect(",")
        return out

    def performance_directive(self, function: Function) -> None:
        token = self.next()
        numbers: list[int] = []
        if token.text == ".pragma":
            self.at -= 1
            self.debug()
            return
        while self.peek.kind == "number":
            numbers.append(self.integer())
            if not self.accept(","):
                break
        triple = tuple([*numbers, 1, 1, 1][:3])
        x, y, z = triple
        match token.text:
            case ".reqntid":
                function.reqntid = (x, y, z)
            case ".maxntid":
                function.maxntid = x * y * z
            case ".reqnctapercluster":
                function.reqcluster = (x, y, z)
            case (
                ".minnctapersm"
                | ".maxnctapersm"
                | ".maxnreg"
                | ".maxclusterrank"
                | ".explicitcluster"
                | ".blocksareclusters"
                | ".noreturn"
                | ".abi_preserve"
                | ".abi_preserve_control"
            ):
                pass
            case _:
                raise self.fail("a performance directive such as .reqntid", token)

    def body(self, function: Function) -> None:
        opening = self.expect("{")
        self.function = function
        function.body = []
        self.instructions = function.body
        self.mentioned: dict[tuple[int, str], Reg] = {}
        self.source = ""
        scope = Scope(None)
        for variable in (*function.results, *function.params):
            if variable.space == "reg":
                reg = self.new_register(variable.name, variable.type)
                scope.registers[variable.name] = function.parameters[variable.name] = reg
        depth = 1
        while depth:
            token = self.peek
            if token.kind == "end":
                line, column = opening.line, opening.column
                raise PtxSyntaxError(f"body of {function.name} has no closing }}", line, column)
            if self.accept("{"):
                depth += 1
                if depth > _MAX_BLOCKS:
                    raise self.fail(f"at most {_MAX_BLOCKS} nested blocks", token)
                scope = Scope(scope)
            elif self.accept("}"):
                depth -= 1
                scope = scope.parent or scope
            elif self.accept(";") or self.debug():
                pass
            elif token.text == ".reg":
                self.registers(scope)
            elif token.text in _SPACES or token.text == ".param":
                for variable in self.variable_list(False):
                    variable.key = f"{function.name}.{variable.name}.{variable.line}"
                    scope.variables[variable.name] = variable
                    function.variables.append(variable)
            elif token.kind == "word" and self.tokens[self.at + 1].text == ":":
                self.label(scope)
            else:
                function.body.append(self.instruction(scope))

    def label(self, scope: Scope) -> None:
        token = self.next()
        self.expect(":")
        assert self.function is not None and self.function.body is not None
        if token.text in scope.labels:
            raise PtxSyntaxError(f"label {token.text} stands twice", token.line, token.column)
        if self.peek.text == ".branchtargets":
            self.next()
            targets = [self.word("a label")]
            while self.accept(","):
                targets.append(self.word("a label"))
            self.expect(";")
            self.function.targets[token.text] = targets
        elif self.peek.text == ".calltargets":
            self.next()
            names = [self.word("a function name")]
            while self.accept(","):
                names.append(self.word("a function name"))
            self.expect(";")
            self.function.callees[token.text] = names
        elif self.peek.text == ".callprototype":
            self.function.callees[token.text] = None
            while not self.accept(";"):
                if self.next().kind == "end":
                    raise self.fail("';'")
        else:
            scope.labels[token.text] = len(self.function.body)

    def registers(self, scope: Scope) -> None:
        """`.reg .b32 %r<10>, x, y;`"""
        self.next()
        token = self.next()
        if token.text in (".v2", ".v4"):
            raise self.fail("a scalar register type", token)
        kind = self.type_of(token.text, token)
        while True:
            token = self.peek
            name = self.word("a register name")
            if self.accept("<"):
                count = self.integer("a register count")
                self.expect(">")
                if not 0 <= count <= 1 << 24:
                    raise self.fail("at most 2^24 registers", token)
                scope.ranges[name] = (kind, count)
            else:
                scope.registers[name] = self.new_register(name, kind)
            if not self.accept(","):
                break
        self.expect(";")

    # --- instructions -------------------------------------------------------------------------
    def instruction(self, scope: Scope) -> Instruction:
        start = self.peek
        guard: Reg | Not | None = None
        if self.accept("@"):
            negated = self.accept("!")
            token = self.peek
            reg = self.lookup(self.word("a predicate"), scope)
            if reg is None or reg.type.kind != "pred":
                raise self.fail("a declared predicate register", token)
            guard = Not(reg) if negated else reg
        token = self.peek
        mnemonic = self.word("an instruction")
        if mnemonic.startswith((".", "%")) or len(mnemonic) > _MAX_MNEMONIC:
            raise self.fail("an instruction", token)
        operands: list[Operand] = []
        if self.peek.text != ";":
            while True:
                operands.append(self.operand(scope))
                if not self.accept(","):
                    break
        end = self.expect(";")
        text = " ".join(self.text[start.offset : end.offset + 1].split())
        site = Site(start.line, text if len(text) <= 200 else text[:197] + "…", self.source)
        return Instruction(mnemonic, tuple(operands), guard, site, scope, token.column)
