"""Pytest plugin: --shard=I/N runs part I out of N parts of the tests that take about equally long.

The part of a test depends only on the names of all collected tests and on test/durations.txt, so
that parts can run on different machines. This command prints the expected time of each part:

    python -m pytest -p tcir.tools.dev.shards --shard 1/8 --collect-only -q test | head -1
"""

from __future__ import annotations

import argparse
import heapq
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

DURATIONS = Path(__file__).resolve().parents[2] / "test" / "durations.txt"
UNLISTED = 0.03
"""Seconds of a test of which the list says nothing: the mean of those."""
_EXPECTED = pytest.StashKey[str]()


def shard(text: str) -> tuple[int, int]:
    """Parses ``I/N`` to two numbers with 1 <= I <= N; raises ArgumentTypeError for other text."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    number, count = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= count:
        raise argparse.ArgumentTypeError(
            f"expected I/N with 1 <= I <= N, such as 1/8, got {text!r}"
        )
    return number, count


def durations(file: Path = DURATIONS) -> dict[str, float]:
    """Seconds by test, from lines ``SECONDS ID``. An id without parameters stands for all
    parametrised cases of the function."""
    lines = (line.split(" ", 1) for line in file.read_text(encoding="utf-8").splitlines())
    return {name: float(seconds) for seconds, name in lines}


def seconds(name: str, stored: Mapping[str, float], unlisted: float = UNLISTED) -> float:
    """Seconds of a test: from its own line, else from the line of its function, else `unlisted`."""
    return stored.get(name, stored.get(name.partition("[")[0], unlisted))


def parts(names: Iterable[str], stored: Mapping[str, float], count: int) -> dict[str, int]:
    """Assigns each test a part, counted from 0. Tests are assigned in the order of their times, the
    longest first; each goes to the part with the least time so far."""
    loads = [(0.0, part) for part in range(count)]
    found = {}
    for time, name in sorted(((seconds(name, stored), name) for name in names), reverse=True):
        load, part = loads[0]
        heapq.heapreplace(loads, (load + time, part))
        found[name] = part
    return found


def expected(part: Mapping[str, int], stored: Mapping[str, float], count: int) -> str:
    """A line of text with the expected time of each of `count` parts, from the `stored` seconds."""
    loads = [0.0] * count
    for name, number in part.items():
        loads[number] += seconds(name, stored)
    return (
        f"{len(part)} tests take {sum(loads):.0f} s by test/durations.txt, "
        f"the longest of {count} shards {max(loads):.0f} s"
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", type=shard, default=(1, 1), metavar="I/N")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    number, count = config.getoption("--shard")
    part = parts((each.nodeid for each in items), stored := durations(), count)
    config.stash[_EXPECTED] = expected(part, stored, count)
    mine: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for each in items:
        (mine if part[each.nodeid] == number - 1 else others).append(each)
    items[:] = mine
    config.hook.pytest_deselected(items=others)


def pytest_report_collectionfinish(config: pytest.Config) -> str:
    return config.stash[_EXPECTED]
