"""Legal and illegal examples of rules about a whole kernel, and of forms no op's example has.

A file has sections between lines ``// -----``, each with one of these headers:

- ``// base: NAME``: MLIR that breaks no rule.
- ``// illegal: KEY of NAME`` and ``// legal: KEY of NAME``: that base with changes, as a patch:
  lines begin with a space, ``-`` or ``+``; the old lines of a hunk occur once in the base; ``@@``
  is between hunks, and ``//`` begins a comment. A base is the legal twin of its illegal sections,
  ``legal`` is a further one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HEADER = re.compile(r"// (base|legal|illegal): (\S+)(?: of (\S+))?\n")


@dataclass(frozen=True)
class Example:
    """One section: kind is ``base``, ``legal`` or ``illegal``; key that of a rule, or a name."""

    kind: str
    key: str
    base: str
    text: str


def read(folder: Path = Path(__file__).parent) -> list[Example]:
    """The examples of all files, bases first."""
    sections = [
        (*_header(section), section.partition("\n")[2].strip("\n"))
        for path in sorted(folder.glob("*.diff"))
        for section in path.read_text(encoding="utf-8").split("// -----\n")
    ]
    bases = {key: text for kind, key, _, text in sections if kind == "base"}
    return [Example("base", key, key, text) for key, text in bases.items()] + [
        Example(kind, key, base, patched(bases[base], patch))
        for kind, key, base, patch in sections
        if kind != "base"
    ]


def _header(section: str) -> tuple[str, str, str]:
    found = HEADER.match(section)
    assert found, f"expected a header, got {section[:80]!r}"
    return found[1], found[2], found[3] or ""


def patched(base: str, patch: str) -> str:
    """`base` with the hunks of `patch` applied."""
    lines, result, at = base.split("\n"), [], 0
    for hunk in patch.split("\n@@\n"):
        changes = [line for line in hunk.split("\n") if not line.startswith("//")]
        old, new = ([line[1:] for line in changes if line[0] in f" {sign}"] for sign in "-+")
        places = [i for i in range(len(lines)) if lines[i : i + len(old)] == old]
        assert len(places) == 1, f"expected these lines once in the base, got {places}: {old}"
        result += [*lines[at : places[0]], *new]
        at = places[0] + len(old)
    return "\n".join(result + lines[at:])
