"""The combinations of options of a sweep: expands ``n-tile=64,128 stages=2..6`` to options of a
named pipeline.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tcir.cache.tuned import canonical
from tcir.errors import InputError, UnknownNameError, did_you_mean
from tcir.passmanager.options import make_options, split_options
from tcir.passmanager.pipeline import find_pipeline, named_pipeline, registered_pipelines

MOST = 100_000
"""Maximum number of combinations of one sweep; more are taken for a mistake, such as a range with a
digit too many."""
_RANGE = re.compile(r"(\d+)\.\.(\d+)(?::(\d+))?")
_FORM = "NAME=VALUE,VALUE or NAME=FIRST..LAST or NAME=FIRST..LAST:STEP"


@dataclass(frozen=True)
class Combination:
    """A named pipeline and values of its options, in the order in which the user gave them."""

    pipeline: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        words = " ".join(f"{name}={value}" for name, value in self.options)
        return f"{self.pipeline}{{{words}}}" if words else self.pipeline

    @staticmethod
    def parse(text: str) -> Combination:
        """Parses ``NAME`` or ``NAME{key=value}``. Raises `UnknownNameError` for an unknown name."""
        name, brace, rest = text.strip().partition("{")
        known = find_pipeline(name)
        if known is None:
            near = did_you_mean(name, registered_pipelines())
            raise UnknownNameError(f"unknown pipeline '{name}'{near}")
        options = split_options(brace + rest)
        make_options(known.options, dict(options), name)
        spelled = tuple((key.replace("_", "-"), value) for key, value in options.items())
        return Combination(known.name, spelled)

    def canonical(self) -> str:
        """Canonical text of the combination; see `tcir.cache.tuned.canonical`."""
        known = find_pipeline(self.pipeline)
        assert known is not None
        return canonical(known, {key.replace("-", "_"): value for key, value in self.options})

    def passes(self) -> str:
        """The passes as text. Raises `InputError` for values that a pass rejects."""
        return str(named_pipeline(str(self)))


def combinations(pipeline: str, over: str) -> list[Combination]:
    """Returns `pipeline` with each combination of the option values in `over`; the last option
    varies fastest.
    """
    fixed = Combination.parse(pipeline)
    axes = _axes(over)
    count = math.prod(len(values) for values in axes.values())
    if count > MOST:
        words = " x ".join(f"{len(values)} of {name}" for name, values in axes.items())
        raise InputError(
            f"--over: expected at most {MOST} combinations, got {count} ({words}); use a step, "
            "such as 16..256:16"
        )
    for name, values in axes.items():
        if name in dict(fixed.options):
            raise InputError(f"--over: expected {name} once, got it also in --pipeline={pipeline}")
        for value in values:
            Combination.parse(str(Combination(fixed.pipeline, ((name, value),))))
    rows = itertools.product(*axes.values())
    return [
        Combination(fixed.pipeline, (*fixed.options, *zip(axes, row, strict=True))) for row in rows
    ]


def _axes(over: str) -> dict[str, Sequence[str]]:
    """The values of each option."""
    axes: dict[str, Sequence[str]] = {}
    for word in over.split():
        name, equals, values = word.partition("=")
        name = name.replace("_", "-")
        if not name or not equals or not values:
            raise InputError(f"--over: expected {_FORM}, got '{word}'")
        if name in axes:
            raise InputError(f"--over: expected {name} once, got it twice")
        axes[name] = _values(name, values)
    if not axes:
        raise InputError(f"--over: expected {_FORM}, got nothing")
    return axes


def _values(name: str, text: str) -> Sequence[str]:
    found: list[str] = []
    for part in text.split(","):
        matched = _RANGE.fullmatch(part)
        if not part:
            raise InputError(f"--over: expected a value between commas, got {name}={text}")
        if matched is None:
            found.append(part)
            continue
        first, last, step = int(matched[1]), int(matched[2]), int(matched[3] or 1)
        if step < 1 or last < first:
            raise InputError(
                f"--over: expected FIRST..LAST:STEP with FIRST at most LAST and STEP at least 1, "
                f"got {name}={part}"
            )
        if (last - first) // step >= MOST:
            raise InputError(f"--over: expected at most {MOST} values, got {name}={part}")
        found += map(str, range(first, last + 1, step))
    if len(set(found)) < len(found):
        twice = next(value for value in found if found.count(value) > 1)
        raise InputError(f"--over: expected each value once, got {name}={twice} twice")
    return found
