"""Progress lines on a terminal for long operations: the estimated duration, and the remaining time.

Nothing is printed if standard error is not a terminal, or if `TCIR_PROGRESS` is 0.
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
"""Seconds that the machine takes per CTA of a model's kernel, correct within a factor of about 3.
Measured on a busy core: 0.02 for the small kernels of 4 layers of BERT of width 64 (676 CTAs), 0.06
for 6 bottlenecks of ResNet-50 (807 CTAs)."""
WORTH_SAYING = 5.0
"""Minimum estimated duration, in seconds, for which progress is printed."""
PAUSE = 0.5
"""Minimum number of seconds between two updates of a line."""


def wanted(asked: bool | None = None) -> bool:
    """Whether progress was requested; by default on a terminal, unless `TCIR_PROGRESS` is 0."""
    if asked is not None:
        return asked
    return os.environ.get(VARIABLE) != "0" and sys.stderr.isatty()


def say(line: str) -> None:
    """Prints a line on standard error."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def compiling(door: str, ops: int) -> Iterator[None]:
    """Context for the compilation of a model: prints a line when it begins, and its duration at the
    end."""
    if not wanted():
        yield
        return
    started = time.monotonic()
    say(f"{door}: compiling {ops} ops")
    yield
    say(f"{door}: compiled in {time.monotonic() - started:.1f} s")


def left(share: float, passed: float, estimated: float) -> float:
    """Remaining seconds, after `passed` seconds in which a share of the work was done.

    estimated: estimated duration of the whole work. The rate measured so far gradually replaces the
        estimate, and replaces it entirely once a quarter of the work is done
    """
    trust = min(1.0, 4 * share)
    whole = trust * passed / share + (1 - trust) * estimated if share else estimated
    return (1 - share) * whole


class ProgressLine:
    """A line on a terminal with the number of completed CTAs and the remaining time."""

    def __init__(self, name: str, seconds: float) -> None:
        """Prepares the line.

        seconds: estimated duration of the whole launch; the measured rate gradually replaces it
        """
        self.name, self.seconds = name, seconds
        self._started = self._last = time.monotonic()
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        """Writes the line, at most every `PAUSE` seconds."""
        now = time.monotonic()
        if now - self._last < PAUSE or not sys.stderr.isatty():
            return
        self._last, self._shown = now, True
        left = duration(self.left(done / max(total, 1), now - self._started))
        sys.stderr.write(f"\r\x1b[K@{self.name}: {done} of {total} CTAs, {left} left")
        sys.stderr.flush()

    def left(self, share: float, passed: float) -> float:
        """Remaining seconds, after `passed` seconds in which a share of the CTAs was executed."""
        return left(share, passed, self.seconds)

    def end(self) -> None:
        """Removes the line."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def simulated(
    name: str, launches: LaunchSequence, known: float | None, asked: bool | None
) -> Iterator[ProgressLine | None]:
    """Context of a call on the simulated machine: first prints an estimate of the duration, if it
    is at least `WORTH_SAYING` seconds.

    known: duration of an earlier call, in seconds
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
    left = ProgressLine(name, seconds)
    try:
        yield left
    finally:
        left.end()
