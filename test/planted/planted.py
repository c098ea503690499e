"""Bugs planted in a compiled program: what is damaged, behind which pass, and what must notice it.

A planted bug changes the text of the program behind one pass, as a pass with that bug would have
left it: MLIR, or PTX behind `llvm-to-ptx`. The states before it are whole, so the verdict is at the
right pass if the damaged state is `different` and the whole one is held. Both are executed as
`--validate-each` does by default.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from endtoend.breaking import Caught, verdict_of

import tcir
from tcir.errors import InputError
from tcir.passmanager.pipeline import Pipeline
from tcir.program.source import load_module, mlir_context
from tcir.session.session import set_target
from tcir.validation.report import Line
from tcir.validation.settings import Settings
from tcir.validation.validator import Validation, begin

PTX = "llvm-to-ptx"
RAISING = ("fuse-epilogue", "raise-to-tc")
"""Passes that a program of tc ops does not need."""


@dataclass(frozen=True)
class Planted:
    """One bug.

    program: its name in `programs.PROGRAMS`
    after:   the pass behind which it is planted, and whose verdict it has to be
    edit:    of the program's text there
    by:      what notices it, as `Caught.by`: "difference", "hazard: …", "refused" …
    """

    what: str
    program: str
    after: str
    edit: Callable[[str], str]
    by: str = "difference"

    def __str__(self) -> str:
        return f"{self.program}, {self.after}: {self.what}"


class Program:
    """A program, compiled once, whose states are executed whole and damaged."""

    def __init__(self, pipeline: str, text: str, target: str = "sm_100a") -> None:
        self.pipeline = pipeline
        self.text = text
        self.target = target
        self._whole: dict[str, Validation] = {}

    @cached_property
    def kernel(self) -> tcir.Kernel:
        """The compiled program, with its state behind every pass."""
        passes = tcir.named_pipeline(self.pipeline)
        if re.search(r'"tc\.(conv2d|\w*matmul)"', self.text):  # raised already
            passes = Pipeline(each for each in passes if each.name not in RAISING)
        return tcir.compile(self.text, passes, target=self.target)

    def state(self, after: str) -> str:
        """The program's text behind a pass."""
        return self.kernel.ptx if after == PTX else self.kernel.ir[after]

    def whole(self, after: str) -> Validation:
        """A validation that has executed the whole state behind a pass, which holds."""
        if after not in self._whole:
            with mlir_context() as context:
                module = load_module(self.text, context)
                set_target(module, self.target)
                validation = begin(module, Settings())
                line = validation.input
            assert line.verdict == "reference", str(line)
            line = self._check(validation, after, self.state(after))
            assert line.held, str(line)
            self._whole[after] = validation
        return self._whole[after]

    def run(self, bug: Planted) -> Caught:
        """Returns what notices the bug, at the pass after which it is planted."""
        text = self.state(bug.after)
        damaged = bug.edit(text)
        assert damaged != text, f"the edit changes nothing: {bug}"
        try:
            return verdict_of(self._check(copy.copy(self.whole(bug.after)), bug.after, damaged), 1)
        except InputError as error:
            return Caught(bug.after, "refused", 1, str(error))

    def _check(self, validation: Validation, after: str, text: str) -> Line:
        line = Line(0, after)
        if after == PTX:
            return validation.check_ptx(text, self.kernel.launches, line)[0]
        with mlir_context() as context:
            return validation.check(load_module(text, context), line)
