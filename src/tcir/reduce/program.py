"""Programs that can be reduced, and the reduction: tries all moves in order, until none of them
makes the program smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Protocol, TypeVar

from tcir.opt.containment import carrying
from tcir.passmanager.pipeline import Pipeline
from tcir.reduce import mlir, passes, ptx
from tcir.reduce.ddmin import ddmin
from tcir.threads import cached_property


class ReducibleProgram(Protocol):
    """A program that can be written to a file, and reduced."""

    @property
    def text(self) -> str:
        """Text of the file."""

    @property
    def size(self) -> dict[str, int]:
        """Counts that the reduction tries to lower, by name."""


TOGETHER = 3
"""Maximum number of extents that change at once: a convolution's input, output and filter."""
Own = TypeVar("Own", bound=ReducibleProgram)
Fails = Callable[[Own], bool]


@dataclass(frozen=True)
class Mlir:
    """An MLIR module and its pipeline.

    pipeline: the text of the pipeline; None if a script runs its own pipeline
    """

    module: str
    pipeline: Pipeline | None
    unregistered: bool = False

    @property
    def text(self) -> str:
        if self.pipeline is None:
            return self.module
        return carrying(self.module, str(self.pipeline))

    @cached_property
    def size(self) -> dict[str, int]:
        counted = {
            "ops": mlir.count_ops(self.module, self.unregistered),
            "elements": mlir.count_elements(self.module, self.unregistered),
        }
        return counted | ({} if self.pipeline is None else {"passes": len(self.pipeline)})

    def with_module(self, module: str | None) -> Mlir | None:
        """Returns this pipeline with another module; None if `module` is None."""
        return None if module is None else replace(self, module=module)


@dataclass(frozen=True)
class Ptx:
    """A program that is PTX text."""

    text: str

    @cached_property
    def size(self) -> dict[str, int]:
        return {"statements": len(ptx.statements(self.text))}


def reduced_mlir(program: Mlir, fails: Fails[Mlir], exactly: Fails[Mlir], place: str) -> Mlir:
    """Returns the smallest program found that fails.

    exactly: whether a program fails with the same numbers in its error. Smaller shapes may change
             the numbers; after the removal of a pass, other numbers mean another error
    place:   the pass at which the program fails
    """
    if program.pipeline is not None:
        shorter = replace(program, pipeline=passes.up_to(program.pipeline, place))
        program = shorter if shorter != program and fails(shorter) else program
    before = None
    while program != before:
        before = program
        program = _fewer_passes(program, exactly)  # first: each of them is executed in each attempt
        program = _smaller_shapes(program, fails)
        program = _fewer_ops(program, fails)
        for move in (mlir.returning_less, mlir.without_arguments):
            program = _as_often_as_possible(program, fails, move)
    return program


def reduced_ptx(program: Ptx, fails: Fails[Ptx]) -> Ptx:
    """Returns the program with the fewest statements that fails; debug information is removed as
    well, if the program then still fails.
    """
    text = program.text
    kept = ddmin(
        range(len(ptx.statements(text))), lambda some: fails(Ptx(ptx.with_statements(text, some)))
    )
    least = Ptx(ptx.with_statements(text, kept))
    plain = Ptx(ptx.without_debug(least.text))
    return plain if fails(plain) else least


def _fewer_ops(program: Mlir, fails: Fails[Mlir]) -> Mlir:
    def candidate(kept: list[int]) -> Mlir | None:
        found = mlir.with_ops(program.module, program.unregistered, kept)
        return program.with_module(found)

    def still(kept: list[int]) -> bool:
        smaller = candidate(kept)
        return smaller is not None and fails(smaller)

    count = program.size["ops"]
    kept = ddmin(range(count), still)
    return program if len(kept) == count else candidate(kept) or program


def _smaller_shapes(program: Mlir, fails: Fails[Mlir]) -> Mlir:
    """Reduces one, two or three extents at once: halves them as long as the program fails, then
    reduces them by powers of two."""

    def less(chosen: tuple[int, ...], to: tuple[int, ...]) -> bool:
        nonlocal program
        found = mlir.with_extents(program.module, program.unregistered, dict(zip(chosen, to)))
        smaller = program.with_module(found)
        if smaller is None or not fails(smaller):
            return False
        program = smaller
        return True

    for count in range(1, TOGETHER + 1):
        for chosen in combinations(mlir.extents(program.module), count):
            while min(chosen) > 1 and less(chosen, half := tuple(n // 2 for n in chosen)):
                chosen = half
            for by in (1 << k for k in reversed(range(min(chosen).bit_length()))):
                if by < min(chosen) and less(chosen, to := tuple(n - by for n in chosen)):
                    chosen = to
    return program


def _as_often_as_possible(program: Mlir, fails: Fails[Mlir], move: mlir.Move) -> Mlir:
    """Applies a move's first candidate that fails, until no candidate does."""
    while True:
        candidates = (
            program.with_module(each) for each in move(program.module, program.unregistered)
        )
        found = next((each for each in candidates if each is not None and fails(each)), None)
        if found is None:
            return program
        program = found


def _fewer_passes(program: Mlir, fails: Fails[Mlir]) -> Mlir:
    if program.pipeline is None:
        return program
    items = list(program.pipeline)

    def of(kept: list[int]) -> Mlir:
        return replace(program, pipeline=Pipeline(items[each] for each in kept))

    program = of(ddmin(range(len(items)), lambda kept: fails(of(kept))))
    while True:
        assert program.pipeline is not None
        simpler = (
            replace(program, pipeline=each) for each in passes.with_defaults(program.pipeline)
        )
        found = next((each for each in simpler if fails(each)), None)
        if found is None:
            return program
        program = found
