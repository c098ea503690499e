"""Pytest plugin: --shard=I/N runs one of N parts of the tests, which take equally long.

The part of a test depends only on its name and on test/durations.txt, so that parts can run on
different machines.
"""

from __future__ import annotations

import argparse
import heapq
import re
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest

DURATIONS = Path(__file__).resolve().parents[2] / "test" / "durations.txt"


def shard(text: str) -> tuple[int, int]:
    """``I/N`` as two numbers, 1 <= I <= N; ArgumentTypeError otherwise."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    number, count = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= count:
        raise argparse.ArgumentTypeError(
            f"expected I/N with 1 <= I <= N, such as 1/8, got {text!r}"
        )
    return number, count


def durations(file: Path = DURATIONS) -> dict[str, float]:
    """Seconds by test, from lines ``SECONDS ID``."""
    lines = (line.split(" ", 1) for line in file.read_text(encoding="utf-8").splitlines())
    return {name: float(seconds) for seconds, name in lines}


def parts(stored: Mapping[str, float], count: int) -> dict[str, int]:
    """The part, from 0, of each test with stored seconds. Tests are assigned from the longest on,
    each to the part with the least time so far."""
    tests = sorted(((seconds, name) for name, seconds in stored.items()), reverse=True)
    loads = [(0.0, part) for part in range(count)]
    found = {}
    for seconds, name in tests:
        load, part = loads[0]
        heapq.heapreplace(loads, (load + seconds, part))
        found[name] = part
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", type=shard, default=(1, 1), metavar="I/N")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    number, count = config.getoption("--shard")
    listed = parts(durations(), count)
    mine: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for each in items:
        name = each.nodeid
        part = listed.get(name, zlib.crc32(name.encode()) % count)
        (mine if part == number - 1 else others).append(each)
    items[:] = mine
    config.hook.pytest_deselected(items=others)
