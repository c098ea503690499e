"""Functions written in LLVM IR that compiled Python functions call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import llvmlite.binding as llvm

from tcir.machine.jit import native
from tcir.threads import cached_property

EXTERNAL: dict[str, External] = {}


@dataclass(frozen=True)
class External:
    """A function of `arguments` integers that returns nothing and that only compiled code can call.

    text: LLVM IR that defines the function under its name.
    """

    name: str
    arguments: int
    text: str

    def __post_init__(self) -> None:
        EXTERNAL[self.name] = self

    def __call__(self, *arguments: int) -> None:
        raise TypeError(f"expected {self.name} to be called by compiled code, got Python")

    @cached_property
    def _numba_type_(self) -> object:
        """Type by which numba calls it. numba loads compiled code at once, so the symbol must be
        defined before."""
        from numba import types

        native.link_texts(Path(__file__), {self.name: self.text})
        llvm.add_symbol(self.name, native.address(self.name))
        signature = types.void(*[types.int64] * self.arguments)
        return types.ExternalFunction(self.name, signature)
