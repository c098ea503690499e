"""Which runs of ops become kernels: as long as a pipeline takes them, and cut where it does not."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch

from tcir.errors import Error
from tcir.kernel import Kernel
from tcir.session.entry import compile as compile_program
from tcir.torch.exported import Unit, cut, mlir_of

VIEWS = (
    "view", "_unsafe_view", "reshape", "permute", "transpose", "t", "unsqueeze", "squeeze",
    "expand", "slice", "select", "alias", "detach", "split", "split_with_sizes", "chunk", "unbind",
)  # fmt: skip
"""Ops that compute nothing; a part of nothing else is left to PyTorch, where they cost nothing."""


@dataclass(frozen=True)
class Lowered:
    """A part that is a kernel; mlir: what it was compiled from, by `pipeline`."""

    kernel: Kernel
    mlir: str
    pipeline: str


@dataclass(frozen=True)
class Left:
    """A part that PyTorch runs, and why."""

    reason: str


FREE = Left("computes nothing")
Outcome = Lowered | Left
PartOf = tuple[list[Unit], Outcome]
Attempt = Callable[[Sequence[Unit]], Outcome]
OWN: dict[torch._ops.OperatorBase, Callable[[torch.fx.Node, str], Lowered]] = {}
"""tcir's ops that write their own program, for a target: the op itself runs it. A part each."""


def name_of(unit: Unit) -> str:
    """The op, such as ``linear``."""
    return str(unit[0].target).removeprefix("aten.").removeprefix("tcir.").split(".")[0]


def attempt(
    module: torch.fx.GraphModule,
    ops: Sequence[Unit],
    part: Sequence[Unit],
    pipeline: str,
    target: str,
) -> Outcome:
    """A kernel of a run of the module's ops, or why there is none."""
    if all(name_of(unit) in VIEWS for unit in part):
        return FREE
    if is_own(part[0]):
        try:
            return OWN[part[0][0].target](part[0][0], target)
        except Error as error:
            return Left(_reason(error))
    first = ops.index(part[0])
    pieces = [each for each in (ops[:first], part, ops[first + len(part) :]) if each]
    inner = getattr(cut(module, pieces), f"submod_{1 if first else 0}")
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            text = mlir_of(inner)
            return Lowered(compile_program(text, pipeline, target=target), text, pipeline)
    except Error as error:
        return Left(_reason(error))


def _reason(error: Error) -> str:
    """The first line, without its place in a text that nobody sees, and what was not expected."""
    line = re.sub(r"^(\S+:\d+:\d+: )?(error: )?", "", str(error).splitlines()[0]).strip()
    got = re.search(r", (got [^;]*)", line)
    return got[1] if got else line


def is_own(unit: Unit) -> bool:
    """Whether the op is one of `OWN`."""
    return unit[0].target in OWN


def lowered(ops: Sequence[Unit], attempt: Attempt) -> list[PartOf]:
    """The ops as parts in their order: the longest runs between those that no pipeline takes."""
    parts: list[PartOf] = []
    for own, run in groupby(ops, is_own):
        some = list(run)
        parts += [([unit], attempt([unit])) for unit in some] if own else _longest(some, attempt)
    return parts


def _longest(ops: list[Unit], attempt: Attempt) -> list[PartOf]:
    found = _halved(ops, attempt)
    parts: list[PartOf] = []
    for taken, run in groupby(found, lambda part: isinstance(part[1], Lowered) or part[1] is FREE):
        some = list(run)
        parts += _joined(some, attempt) if taken else some
    return parts


def _halved(ops: list[Unit], attempt: Attempt) -> list[PartOf]:
    """All as one part, or as two halves, and so on."""
    if not ops:
        return []
    outcome = attempt(ops)
    if isinstance(outcome, Lowered) or len(ops) == 1:
        return [(ops, outcome)]
    half = len(ops) // 2
    return [*_halved(ops[:half], attempt), *_halved(ops[half:], attempt)]


def _joined(parts: list[PartOf], attempt: Attempt) -> list[PartOf]:
    """Neighbours as one part, if a pipeline takes it."""
    if len(parts) < 2:
        return parts
    ops = [unit for some, _ in parts for unit in some]
    outcome = attempt(ops)
    return [(ops, outcome)] if isinstance(outcome, Lowered) else parts
