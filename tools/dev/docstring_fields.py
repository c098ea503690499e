"""Turns lines ``name: meaning`` of docstrings into lists on the documentation site; mkdocs.yml
names this file."""

from __future__ import annotations

import re
from typing import Any

import griffe

FIELD = re.compile(r"([\w*][\w*, ]*):\s+(?=\S)")


class FieldLists(griffe.Extension):
    """Rewrites every docstring before mkdocs parses it as Markdown."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            summary, *more = obj.docstring.value.split("\n\n")
            obj.docstring.value = "\n\n".join((summary, *map(as_list, more)))


def as_list(paragraph: str) -> str:
    """Converts a paragraph of fields, whose continuation lines are indented, to a list; returns any
    other paragraph unchanged."""
    lines = paragraph.split("\n")
    if not all(FIELD.match(line) or line.startswith(" ") for line in lines):
        return paragraph
    if not FIELD.match(lines[0]):
        return paragraph
    return "\n".join(
        FIELD.sub(r"- `\1`: ", line, count=1) if FIELD.match(line) else "  " + line.strip()
        for line in lines
    )
