"""Lines on a terminal while something takes long: what it will take, and what is left.

Nothing is said where standard error is no terminal, or `TCIR_PROGRESS` is 0.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tcir.validation.estimate import duration

if TYPE_CHECKING:
    from tcir.program.launch import LaunchSequence

VARIABLE = "TCIR_PROGRESS"
PER_CTA = 0.04
"""Seconds that the machine takes for a CTA of a kernel of a model, within a factor of about three:
0.02 of the small kernels of 4 layers of BERT of width 64 (676 CTAs), 0.06 of 6 bottlenecks of
ResNet-50 (807), on a busy core."""
WORTH_SAYING = 5.0
"""Seconds from which on a user wants to know."""
PAUSE = 0.5
"""Seconds between two states of a line."""


def wanted(asked: bool | None = None) -> bool:
    """Whether progress was requested; by default on a terminal, unless `TCIR_PROGRESS` is 0."""
    if asked is not None:
        return asked
    return os.environ.get(VARIABLE) != "0" and sys.stderr.isatty()


def say(line: str) -> None:
    """A line of its own."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def compiling(door: str, ops: int) -> Iterator[None]:
    """Around the compilation of a model: that it begins, and what it took."""
    if not wanted():
        yield
        return
    started = time.monotonic()
    say(f"{door}: {ops} ops are compiled")
    yield
    say(f"{door}: compiled in {time.monotonic() - started:.1f} s")


def left(share: float, passed: float, estimated: float) -> float:
    """Seconds that are left, after `passed` for a share, of `estimated` for all; the rate of what
    is done is trusted from a quarter of it on."""
    trust = min(1.0, 4 * share)
    whole = trust * passed / share + (1 - trust) * estimated if share else estimated
    return (1 - share) * whole


class Left:
    """A line of a terminal: how many of the CTAs are done, and the time that is left."""

    def __init__(self, name: str, seconds: float) -> None:
        """seconds: estimated, of all; what is done replaces it little by little."""
        self.name, self.seconds = name, seconds
        self._started = self._last = time.monotonic()
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        """Writes it, at most every `PAUSE` seconds."""
        now = time.monotonic()
        if now - self._last < PAUSE or not sys.stderr.isatty():
            return
        self._last, self._shown = now, True
        left = duration(self.left(done / max(total, 1), now - self._started))
        sys.stderr.write(f"\r\x1b[K@{self.name}: {done} of {total} CTAs, {left} left")
        sys.stderr.flush()

    def left(self, share: float, passed: float) -> float:
        """Seconds, after `passed` for a share of the CTAs."""
        return left(share, passed, self.seconds)

    def end(self) -> None:
        """Removes it."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def simulated(
    name: str, launches: LaunchSequence, known: float | None, asked: bool | None
) -> Iterator[Left | None]:
    """Around a call on the machine: first an estimate, if it is worth saying.

    known: seconds of an earlier call
    """
    if not wanted(asked):
        yield None
        return
    ctas = sum(math.prod(launch.grid) for launch in launches.launches)
    seconds = PER_CTA * ctas if known is None else known
    if seconds >= WORTH_SAYING:
        count = len(launches.launches)
        how = "estimated" if known is None else "as before"
        say(
            f"@{name} on the simulated machine: {count} launch{'es' * (count > 1)}, {ctas} CTAs, "
            f"{duration(seconds)} ({how})"
        )
    left = Left(name, seconds)
    try:
        yield left
    finally:
        left.end()
