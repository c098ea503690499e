"""The texts of the program after each pass, which a compiled kernel keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tcir._mlir import ir
from tcir.passmanager.pipeline import Pass
from tcir.program.source import any_context
from tcir.session.divided import Parts, join
from tcir.session.session import Watcher

PRINTED_ELEMENTS = 1 << 16
"""Number of elements above which constants are left out of the texts that a kernel keeps, one for
each pass."""
MOST_BYTECODE = 4 << 20
"""Maximum size in bytes of bytecode that a kernel keeps instead of a text: that of a program with
large constants is longer than its text."""


def text_of(module: ir.Module) -> str:
    """Text of a valid module, without large constants."""
    text = module.operation.get_asm(large_elements_limit=PRINTED_ELEMENTS, assume_verified=True)
    return str(text)


@dataclass(frozen=True)
class Texts(Mapping[str, str]):
    """The program's text after each pass, by the name of the pass.

    states: name of a pass that changed the program -> the program after the pass, in order: either
        its text, or its bytecode in one or several parts, which is converted to text when it is
        first read
    same:   name of any other pass -> the earlier pass that last changed the program
    """

    states: dict[str, str | bytes | Parts]
    same: dict[str, str]
    _printed: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getitem__(self, name: str) -> str:
        state = self.states[name := self.same.get(name, name)]
        if isinstance(state, str):
            return state
        if name not in self._printed:
            whole, *parts = state if isinstance(state, tuple) else (state,)
            with any_context() as context:
                module = ir.Module.parse(whole, context)
                if parts:
                    join(module, parts)
                self._printed[name] = text_of(module)
        return self._printed[name]

    def __contains__(self, name: object) -> bool:
        return name in self.states or name in self.same  # without printing it

    def __iter__(self) -> Iterator[str]:
        return iter(self.states)

    def __len__(self) -> int:
        return len(self.states)


class TextKeeper(Watcher):
    """Keeps the program after each pass that changed it, by the name of the pass.

    ours: whether all passes and dialects belong to this package; only then can the program be
        written as bytecode that any process can read
    """

    def __init__(self, module: ir.Module, ours: bool) -> None:
        self.name, self.divides = "(input)", ours
        self.state: bytes | Parts = b""
        self.states = Texts({self.name: text_of(module)}, {})

    def written(self, state: bytes | Parts) -> None:
        self.state = state

    def after_pass(self, index: int, item: Pass, module: ir.Module, changed: bool) -> None:
        name, number = item.name, 1
        while name in self.states:
            number += 1
            name = f"{item.name}#{number}"
        if changed:
            self.name = name
            divided = isinstance(self.state, tuple)
            short = self.divides and (divided or len(self.state) <= MOST_BYTECODE)
            self.states.states[name] = self.state if short else text_of(module)
        else:
            self.states.same[name] = self.name
