"""Rewrites the PTX into a form that the prover accepts; lines keep their numbers.

Some rewritings preserve the meaning; others are approximations. After an approximation, the prover
judges a slightly different program, a *neighbour* of the kernel, and the verdict is "neighbour
proved" instead of "proved".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Rewriting:
    """One change of the PTX text.

    what:    name of the construct that is rewritten
    apply:   function that rewrites the text
    differs: how the rewritten program differs from the kernel; "" if it does not
    """

    what: str
    apply: Callable[[str], str]
    differs: str = ""


def _sub(pattern: str, by: str | Callable[[re.Match[str]], str]) -> Callable[[str], str]:
    found = re.compile(pattern, re.MULTILINE)
    return lambda text: found.sub(by, text)


def _split_mads(text: str) -> str:
    """Splits each mad into a product, in a register of its own, and a sum."""
    pattern = r"\bmad\.lo\.s32\s+(%\w+), (\S+), (\S+), (\S+);"
    text, count = re.subn(pattern, r"mul.lo.s32 %product, \2, \3; add.s32 \1, %product, \4;", text)
    return re.sub(r"^\{$", "{ .reg .b32 %product;", text, flags=re.M) if count else text


LINES = Rewriting("locations left out", _sub(r"^[ \t]*\.(loc|file)\b.*$", ""))
EQUAL = (
    Rewriting(
        "waits as @!p bra",
        _sub(
            r"(try_wait\S*\s+(%p\d+),[^;]*;\s*)not\.pred\s+(%p\d+), \2;(\s*)@\3 bra",
            r"\1\4@!\2 bra",
        ),
    ),
    Rewriting("the default collector left out", _sub(r"\.collector::a::discard(?!\S*ashift)", "")),
    Rewriting("mad as mul and add", _split_mads),
    Rewriting(
        "64-bit numbers without a sign",
        _sub(r"(?<=, )-\d{10,}(?=;)", lambda found: str(int(found[0]) + (1 << 64))),
    ),
)
ASHIFT = Rewriting(
    ".ashift left out",
    _sub(r"(\.collector::a::discard)?\.ashift\b", ""),
    "A is read one row further down",
)
LANES = Rewriting(
    "masks of lanes left out",
    _sub(r"(tcgen05\.mma\b[^;{]*), \{[^}]*\}(, [^;]*;)", r"\1\2"),
    "an mma writes all lanes of D",
)
IM2COL = Rewriting(
    "im2col as tiles",
    _sub(r"\.im2col(?:::\w+)*(\.mbarrier[^;]*\]), \{[^}]*\};", r".tile\1;"),
    "TMA loads as many bytes from other pixels",
)
REWRITINGS = (LINES, *EQUAL, ASHIFT, LANES, IM2COL)


def only_entry(ptx: str, name: str) -> str:
    """Returns the module with only one entry function; empty lines replace the others."""

    def kept(entry: re.Match[str]) -> str:
        return entry[0] if entry[1] == name else "\n" * entry[0].count("\n")

    return re.sub(r"^(?:\.visible )?\.entry (\w+)\([^{]*^\{$.*?^\}$", kept, ptx, flags=re.M | re.S)


def rewritten(ptx: str) -> tuple[str, tuple[Rewriting, ...]]:
    """Returns the text for the prover, and the rewritings that changed it."""
    applied = []
    for each in REWRITINGS:
        changed = each.apply(ptx)
        if changed != ptx:
            applied.append(each)
        ptx = changed
    return ptx, tuple(applied)
