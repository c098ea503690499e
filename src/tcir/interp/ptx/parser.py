"""Parses PTX modules to syntax trees: directives, scopes, instructions (PTX ISA 4.3, 5, 11).

Every error is a PtxSyntaxError with line and column. No function here recurses on the nesting of
the text.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from tcir.interp.ptx.declarations import SPACES, Declarations
from tcir.interp.ptx.errors import PtxSyntaxError
from tcir.interp.ptx.syntax import (
    BlockScope,
    Function,
    Instruction,
    Not,
    Operand,
    PtxModule,
    Reg,
    Site,
    Type,
    Variable,
    Vector,
)

_MAX_BLOCKS = 64  # nested { } in one function
_MAX_MNEMONIC = 256  # characters; the longest of the ISA have half as many
_MAX_VECTORS = 1 << 12
_COMPONENTS = ("xr", "yg", "zb", "wa")
"""Names of a vector register's components: each has two."""
_LINKAGE = {".visible", ".extern", ".weak", ".common"}

_SYNC_FIRST = re.compile(r"(vote|shfl|redux)((?:\.\w+)+)\.sync\b")
"""Other orders of modifiers, which ptxas takes, too: CUB has `vote.ballot.sync.b32`."""

_OPAQUE = {".texref", ".samplerref", ".surfref"}


def parse(text: str) -> PtxModule:
    """Parses a module. Raises PtxSyntaxError.

    Python's cycle collector is off during parsing: no parsed object becomes garbage, and repeated
    visits of these objects by the collector would take a third of the time.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return Parser(text).module()
    finally:
        if collects:
            gc.enable()


class Parser(Declarations):
    # --- module -------------------------------------------------------------------------------
    def module(self) -> PtxModule:
        module = PtxModule("", "")
        self.variables = module.variables
        while self.peek.kind != "end":
            token = self.peek
            if token.text == ".version":
                self.next()
                module.version = self.next().text
                if not re.fullmatch(r"\d+\.\d+", module.version, re.ASCII):
                    raise self.fail(f"a version such as 8.6 (got {module.version})", token)
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

    def name_sources(self, module: PtxModule) -> None:
        """Puts file names into the locations of instructions, after parsing, because compilers
        write .file after the code.
        """
        names = {number: PurePosixPath(file).name for number, file in self.files.items()}
        for function in module.functions.values():
            for instruction in function.body or ():
                site = instruction.site
                if site.source:
                    number, _, line = site.source.partition(":")
                    name = names.get(number, f"file {number}")
                    instruction.site = Site(site.line, site.text, f"{name}:{line}")

    def declaration(self, module: PtxModule) -> None:
        extern = False
        while self.peek.text in _LINKAGE:
            extern |= self.next().text == ".extern"
        if self.peek.text == ".attribute":
            self.skip_parentheses()
        if self.peek.text in (".entry", ".func"):
            self.parse_function(module)
        elif self.peek.text in SPACES and self.tokens[self.at + 1].text in _OPAQUE:
            while not self.accept(";"):  # their instructions are named as incomplete
                if self.next().kind == "end":
                    raise self.fail("';'")
        elif self.peek.text in SPACES:
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

    def alias(self, module: PtxModule) -> None:
        """Reads `.alias name, function;`: gives a declared name the body of a defined function."""
        self.next()
        token = self.peek
        name = self.identifier("a function name")
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

    # --- functions ----------------------------------------------------------------------------
    def parse_function(self, module: PtxModule) -> None:
        entry = self.next().text == ".entry"
        results = self.parameters(entry) if not entry and self.peek.text == "(" else []
        token = self.peek
        function = Function(self.identifier("a function name"), entry, [], token.line, results)
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
            case ".maxnreg":
                function.maxnreg = x
            case ".minnctapersm":
                function.minnctapersm = x
            case (
                ".maxnctapersm"
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
        scope = BlockScope(None)
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
                scope = BlockScope(scope)
            elif self.accept("}"):
                depth -= 1
                scope = scope.parent or scope
            elif self.accept(";") or self.debug():
                pass
            elif token.text == ".reg":
                self.registers(scope)
            elif token.text in SPACES or token.text == ".param":
                for variable in self.variable_list(False):
                    variable.key = f"{function.name}.{variable.name}.{variable.line}"
                    scope.variables[variable.name] = variable
                    function.variables.append(variable)
            elif token.kind == "word" and self.tokens[self.at + 1].text == ":":
                self.label(scope)
            else:
                function.body.append(self.instruction(scope))

    def label(self, scope: BlockScope) -> None:
        token = self.peek
        self.identifier("a label")
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

    def registers(self, scope: BlockScope) -> None:
        """Reads a declaration of registers, such as `.reg .b32 %r<10>, x, y;`."""
        self.next()
        token = self.next()
        components = _COMPONENTS[: int(token.text[2:])] if token.text in (".v2", ".v4") else ()
        if components:
            token = self.next()
        kind = self.type_of(token.text, token)
        while True:
            token = self.peek
            name = self.identifier("a register name")
            if self.accept("<"):
                count = self.integer("a register count")
                self.expect(">")
                if not 0 <= count <= 1 << 24:
                    raise self.fail("at most 2^24 registers", token)
                if components and count > _MAX_VECTORS:
                    raise self.fail(f"at most {_MAX_VECTORS} vectors", token)
                names = [f"{name}{n}" for n in range(count)] if components else []
                if not components:
                    scope.ranges[name] = (kind, count)
            else:
                names = [name]
            for each in names:
                self.declare(each, kind, components, scope)
            if not self.accept(","):
                break
        self.expect(";")

    def declare(self, name: str, kind: Type, components: Sequence[str], scope: BlockScope) -> None:
        """Declares a register, or a vector of registers; `%v.x` is the same as `%v.r` (PTX ISA
        5.4.2)."""
        if not components:
            scope.registers[name] = self.new_register(name, kind)
            return
        parts = [self.new_register(f"{name}.{part[0]}", kind) for part in components]
        scope.vectors[name] = Vector(tuple(parts))
        for part, reg in zip(components, parts, strict=True):
            scope.registers |= {f"{name}.{spelling}": reg for spelling in part}

    # --- instructions -------------------------------------------------------------------------
    def instruction(self, scope: BlockScope) -> Instruction:
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
        while self.peek.kind == "word" and self.peek.text.startswith("."):
            mnemonic += self.next().text  # white space may stand before a modifier
        mnemonic = _SYNC_FIRST.sub(r"\1.sync\2", mnemonic)
        if mnemonic.startswith((".", "%")) or len(mnemonic) > _MAX_MNEMONIC:
            raise self.fail("an instruction", token)
        operands: list[Operand] = []
        listed = mnemonic.partition(".")[0] == "call"
        if self.peek.text != ";":
            while True:
                operands.append(self.operand(scope, listed))
                if not self.accept(","):
                    break
        end = self.expect(";")
        text = " ".join(self.text[start.offset : end.offset + 1].split())
        site = Site(start.line, text if len(text) <= 200 else text[:197] + "…", self.source)
        return Instruction(mnemonic, tuple(operands), guard, site, scope, token.column)
