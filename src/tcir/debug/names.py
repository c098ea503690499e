"""Parses names of registers as users write them: "%r1,%rd2", "%d0..%d31"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tcir.errors import LaunchError, did_you_mean

_NUMBERED = re.compile(r"(.*?)(\d+)")


def named(words: str, known: Iterable[str]) -> list[str]:
    """Expands a list of names that are separated by commas or blanks. A..B stands for the known
    registers of an array from A to B. Raises LaunchError for an unknown name.
    """
    numbers = {name: _split(name) for name in known}
    found: list[str] = []
    for word in words.replace(",", " ").split():
        first, dots, last = word.partition("..")
        (stem, low), (other, high) = _split(first), _split(last if dots else first)
        if dots and (stem != other or low < 0 or high < low):
            raise LaunchError(f"register: expected a range such as %r0..%r7, got {word}")
        some = [n for n, (s, i) in numbers.items() if s == stem and low <= i <= high]
        if not some:
            raise LaunchError(f"register: {word} does not occur{_nearest(stem, numbers)}")
        found += sorted(some, key=lambda name: numbers[name]) if dots else [first]
    return found


def _split(name: str) -> tuple[str, int]:
    """Stem and number of an array register; -1: it has no number."""
    match = _NUMBERED.fullmatch(name)
    return (match[1], int(match[2])) if match else (name, -1)


def _nearest(stem: str, numbers: Mapping[str, tuple[str, int]]) -> str:
    same = sorted(i for s, i in numbers.values() if s == stem)
    if same:
        return f"; {stem}{same[0]} to {stem}{same[-1]} do" if len(same) > 1 else ""
    return did_you_mean(stem, {s for s, _ in numbers.values()})
