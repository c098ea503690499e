"""A plugin of pytest: --shard=I/N runs one of N parts of the tests, which have as many each.

Which part a test is in depends on its name alone, so that parts run on different machines.
"""

from __future__ import annotations

import re
import zlib

import pytest


def shard(text: str) -> tuple[int, int]:
    """``I/N`` as two numbers, 1 <= I <= N; ValueError otherwise."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    number, count = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= count:
        raise ValueError(f"expected I/N with 1 <= I <= N, such as 1/8, got {text!r}")
    return number, count


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", type=shard, default=(1, 1), metavar="I/N")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    number, count = config.getoption("--shard")
    parts: list[list[pytest.Item]] = [[] for _ in range(count)]
    for each in items:
        parts[zlib.crc32(each.nodeid.encode()) % count].append(each)
    items[:] = parts.pop(number - 1)
    config.hook.pytest_deselected(items=[each for part in parts for each in part])
