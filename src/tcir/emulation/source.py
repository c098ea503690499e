"""PTX text with the positions of all parts that are rewritten: functions, directives,
instructions."""

from __future__ import annotations

from dataclasses import dataclass, field

from tcir.interp.ptx.lexer import Token
from tcir.interp.ptx.parser import Parser
from tcir.interp.ptx.syntax import BlockScope, Function, Instruction, PtxModule

Span = tuple[int, int]
"""Half-open range of offsets in the text."""


@dataclass
class FunctionSource:
    """A function with a body, and the positions of its parts.

    whole:      range of the function, including its linkage
    opening:    offset just after the `{` of the body
    directives: `.reqntid` and similar directives, each with the range of its numbers
    labels:     numbers of the instructions that have a label
    """

    function: Function
    whole: Span = (0, 0)
    opening: int = 0
    directives: list[tuple[str, Span]] = field(default_factory=list)
    instructions: list[tuple[Instruction, Span, tuple[Token, ...]]] = field(default_factory=list)
    labels: set[int] = field(default_factory=set)


class SourceParser(Parser):
    """Parses PTX as the simulated machine does, and records the positions of its parts.

    functions:       functions with a body
    version, target: ranges of the operands of `.version` and `.target`
    declarations:    offset at which the first function may be declared

    Raises PtxSyntaxError.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.functions: list[FunctionSource] = []
        self._current: FunctionSource | None = None
        self.parsed = self.module()
        self.version = self._behind(".version")
        self.target = self._behind(".target")
        self.declarations = self._behind(".address_size")[1] if self._has(".address_size") else None

    def _has(self, word: str) -> bool:
        return any(token.text == word for token in self.tokens)

    def _behind(self, word: str) -> Span:
        at = next(n for n, token in enumerate(self.tokens) if token.text == word)
        token = self.tokens[at + 1]
        return token.offset, token.offset + len(token.text)

    def _end(self) -> int:
        """Offset after the last token that was read."""
        token = self.tokens[self.at - 1]
        return token.offset + len(token.text)

    def declaration(self, module: PtxModule) -> None:
        start, known = self.peek.offset, len(self.functions)
        super().declaration(module)
        for found in self.functions[known:]:
            found.whole = start, self._end()

    def parse_function(self, module: PtxModule) -> None:
        self._current = FunctionSource(Function("", False, [], 0))
        super().parse_function(module)

    def performance_directive(self, function: Function) -> None:
        token = self.peek
        super().performance_directive(function)
        if self._current is not None:
            self._current.directives.append((token.text, (token.offset, self._end())))

    def body(self, function: Function) -> None:
        assert self._current is not None
        self._current.function = function
        self._current.opening = self.peek.offset + 1
        self.functions.append(self._current)
        super().body(function)

    def label(self, scope: BlockScope) -> None:
        super().label(scope)
        assert self._current is not None
        self._current.labels.add(len(self._current.instructions))

    def instruction(self, scope: BlockScope) -> Instruction:
        assert self._current is not None
        first = self.at
        found = super().instruction(scope)
        span = self.tokens[first].offset, self._end()
        self._current.instructions.append((found, span, tuple(self.tokens[first : self.at])))
        return found
