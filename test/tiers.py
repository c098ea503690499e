"""Which cases `make test` runs, and which only `make test-all`: by cost.

`durations.txt` has the seconds of every case that takes more than `LEAST`, a line each. Slow are
those that take longer than a budget, except for the quickest case of each file and for `KEPT`;
further those that a file marks. A run brings the list up to date:

    python -m pytest -m "not slow" -n 2 --budget=inf --junitxml=quick.xml test
    python test/tiers.py quick.xml
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tcir.tools.dev.shards import DURATIONS, durations

BUDGET = 0.25
"""Seconds of a quick case, where ``--budget`` does not give others."""
LEAST = 0.1
"""Seconds that are worth a line in the list."""
KEPT = ("test/endtoend/test_cases.py::test_conv_shift_reuse[1x56x56x64-64-3x3-p1111-hwcf-f16-f32]",)
"""Quick whatever they take: a layer of ResNet-50 at its size."""
DOORS = ("cuda_programs", "cute_scripts", "jax_functions", "onnx_models", "torch_models",
         "triton_scripts")  # fmt: skip
"""Folders of test/ whose files mark what is slow: `make test` skips them where the other compiler
is not installed."""


def tiers(cases: Iterable[Any], quick: int = 1) -> list[Any]:
    """Parameters, of which all but the first `quick` are slow; a tuple has one for each name."""
    return [
        case if n < quick else slow(*(case if isinstance(case, tuple) else (case,)))
        for n, case in enumerate(cases)
    ]


def slow_but(quick: Collection[Any], cases: Iterable[Any]) -> list[Any]:
    """Parameters of one name each, of which all but those in `quick` are slow."""
    return [case if case in quick else slow(case) for case in cases]


def slow(*values: Any) -> Any:
    """A parameter of `make test-all` alone."""
    return pytest.param(*values, marks=pytest.mark.slow)


def over_budget(names: Iterable[str], stored: Mapping[str, float], budget: float) -> frozenset[str]:
    """Those of the ids `names`, the quick cases of some files, whose `stored` seconds are more than
    `budget`, but for the quickest of each file and `KEPT`."""
    files: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for name in names:
        files[name.partition("::")[0]].append((stored.get(name, 0.0), name))
    found = [
        name
        for file, cases in files.items()
        if Path(file).parts[1] not in DOORS
        for seconds, name in sorted(cases)[1:]
        if seconds > budget
    ]
    return frozenset(found) - frozenset(KEPT)


def write(reports: Iterable[Path], into: Path = DURATIONS) -> None:
    """Brings the list up to date by JUnit reports; what they did not run stays as it is."""
    found = durations(into)
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            if not (module := case.get("classname")):
                continue  # of a worker that crashed
            name = f"{module.replace('.', '/')}.py::{case.get('name')}"
            found[name] = float(case.get("time", 0))
    lines = [f"{s:.1f} {name}" for name, s in sorted(found.items()) if s > LEAST]
    into.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(map(Path, sys.argv[1:]))
