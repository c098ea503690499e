"""Which cases `make test` runs, and which only `make test-all`.

Slow are those that a file marks, and those of `slow.txt`: all that took longer than `BUDGET`, but
for the quickest of each file and for `KEPT`. It is written from a run:

    python -m pytest -m "not slow" -n 2 --all-quick --junitxml=quick.xml test
    python test/tiers.py quick.xml
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

BUDGET = 1.0
"""Seconds of a quick test."""
KEPT = ("test/endtoend/test_cases.py::test_conv_shift_reuse[1x56x56x64-64-3x3-p1111-hwcf-f16-f32]",)
"""Quick whatever they take: a layer of ResNet-50 at its size."""
DOORS = ("cuda_programs", "cute_scripts", "jax_functions", "onnx_models", "torch_models",
         "triton_scripts")  # fmt: skip
"""Folders of test/ whose files say themselves what is slow: `make test` skips them where the other
compiler is not installed."""
LIST = Path(__file__).parent / "slow.txt"


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


def listed() -> frozenset[str]:
    """The ids in `slow.txt`."""
    return frozenset(LIST.read_text().splitlines())


def over_budget(report: Path) -> list[str]:
    """Ids of the tests in a JUnit report that are to be slow."""
    files: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        if not (module := case.get("classname")):
            continue  # of a worker that crashed
        file = module.replace(".", "/") + ".py"
        files[file].append((float(case.get("time", 0)), f"{file}::{case.get('name')}"))
    found = []
    for file, cases in files.items():
        if Path(file).parts[1] not in DOORS:
            found += [name for seconds, name in sorted(cases)[1:] if seconds > BUDGET]
    return sorted(name for name in found if name not in KEPT)


if __name__ == "__main__":
    LIST.write_text("\n".join(over_budget(Path(sys.argv[1]))) + "\n")
