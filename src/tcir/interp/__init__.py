"""Executors: functions that execute a program, one for each level of the compiler.

All executors have the signature of `Executor`. `execute` imports the executor of a level on first
use, so `tcir.interp.ptx` stays importable without the MLIR bindings. User code adds a level with
`register_executor`.

Levels: ``tensor`` (func on tensors), ``tile`` (`func.func` with the attribute ``tc.kernel``),
``thread`` (`gpu.module` with an `llvm.func` kernel).
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tcir.run_options import DEFAULT_OPTIONS, RunOptions


@dataclass(frozen=True)
class OutputSpec:
    """Shape and numpy (or ml_dtypes) element type of one result, or of one input.

    unsigned: the sign bit has no meaning, so all values are >= 0 (block scales of type f8E4M3FN)
    groups: if the array holds group sizes (``tc.grouped_matmul``): the largest size, and the
            largest sum of the sizes
    below:  if the array holds indices into a tensor: exclusive upper bound of the indices, whose
            lower bound is 0
    ends:   if the array holds the ends of sequences: the last end
    first:  if the first column of a table of indices holds counts instead: exclusive upper bound of
            the counts
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    unsigned: bool = False
    groups: tuple[int, int] | None = None
    below: int | None = None
    first: int | None = None
    ends: int | None = None

    @property
    def says_where(self) -> bool:
        """Whether the array's values (group sizes, indices or ends of sequences) decide which
        elements of other arrays a program reads.
        """
        return any(each is not None for each in (self.groups, self.below, self.ends))

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"

    def unwritten(self) -> np.ndarray[Any, Any]:
        """Contents of a result before the program writes it: bytes 0xCB."""
        raw = np.full(math.prod(self.shape) * self.dtype.itemsize, 0xCB, np.uint8)
        return raw.view(self.dtype).reshape(self.shape)


@dataclass
class Outcome:
    """Result of one execution.

    outputs:    one array per `OutputSpec`, in order; meaningless when `incomplete` is not empty.
    findings:   hazards, as `tcir.machine.Finding` (severity, code, first, second, missing, cta).
    counters:   counts of the simulated machine (bytes moved, tensor cycles, …); empty at the level
                of tensors.
    incomplete: each op or instruction without a rule, with its location; never empty by omission.
    level:      "tensor", "tile", "thread" or "ptx".
    sites:      optional, per output index: a function from an element's index to words such as
                "tile (3, 0), lane 17" that a report shows next to the first different element.
    followers:  number of CTAs that were not simulated by themselves but replayed the execution of
                another CTA, in the order of that execution (docs/explanation/lockstep.md).
    together:   reason why one process ran all CTAs although several processes were allowed
                (docs/explanation/jobs.md).
    executed:   number of CTAs executed as a sample; 0 if all CTAs were executed.
    stored:     for a sample, per output: the elements that the sample stored, as a flat array of
                bool.
    whole:      reason why the whole grid ran although a sample was requested.
    meets:      whether CTAs may act on each other, so that the result may depend on their timing.
    left:       module variables that the execution changed.
    """

    outputs: list[np.ndarray[Any, Any]]
    level: str
    findings: list[Any] = field(default_factory=list)
    counters: Mapping[str, int] = field(default_factory=dict)
    incomplete: list[str] = field(default_factory=list)
    sites: Mapping[int, Any] = field(default_factory=dict)
    followers: int = 0
    together: str = ""
    executed: int = 0
    stored: dict[int, NDArray[np.bool_]] = field(default_factory=dict)
    whole: str = ""
    meets: bool = False
    left: list[str] = field(default_factory=list)

    @property
    def errors(self) -> list[Any]:
        """Returns the findings of severity "error"."""
        return [f for f in self.findings if f.severity == "error"]

    def __repr__(self) -> str:
        shapes = ", ".join(str(OutputSpec(a.shape, a.dtype)) for a in self.outputs)
        lines = [f"<Outcome at the {self.level} level: {shapes}; {len(self.errors)} errors>"]
        lines += [f"without a rule: {name}" for name in self.incomplete]
        return "\n".join([*lines, *map(str, self.findings)])


class Executor(Protocol):
    """Runs the function `name` of `module` (an `ir.Module`, which is not modified) on `inputs`.

    inputs:     numpy arrays in the order of the kernel ABI (function inputs without arguments that
                are only `outs`); an executor never writes into them.
    outputs:    the results wanted; their buffers start as poison (never as zero).

    An op without a rule is listed in `Outcome.incomplete`, and an illegal use of the hardware
    raises `tcir.machine.MachineError`. An executor never skips either of them.
    """

    def __call__(
        self,
        module: Any,
        name: str,
        inputs: Sequence[np.ndarray[Any, Any]],
        outputs: Sequence[OutputSpec],
        options: RunOptions = DEFAULT_OPTIONS,
    ) -> Outcome: ...


_EXECUTORS: dict[str, str | Executor] = {
    "tensor": "tcir.interp.tensor",
    "tile": "tcir.interp.tile",
    "thread": "tcir.interp.thread",
}


def register_executor(level: str, executor: Executor) -> None:
    """Registers `executor` as the executor of `level`."""
    _EXECUTORS[level] = executor


def registered(level: str) -> bool:
    """Whether the executor of `level` was set by `register_executor`."""
    return not isinstance(_EXECUTORS.get(level), str)


def executor_for(level: str) -> Executor:
    """Returns the executor of `level`. KeyError for a level without an executor, AttributeError for
    an executor that is not built.
    """
    found = _EXECUTORS[level]
    if isinstance(found, str):
        function: Executor = importlib.import_module(found).run
        return function
    return found
