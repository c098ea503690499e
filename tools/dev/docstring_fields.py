"""Docstrings on the site: lines ``name: meaning`` become a list (mkdocs.yml names this file)."""

from __future__ import annotations

import re
from typing import Any

import griffe

FIELD = re.compile(r"([\w*][\w*, ]*):\s+(?=\S)")


class FieldLists(griffe.Extension):
    """Rewrites every docstring before it is Markdown."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            summary, *more = obj.docstring.value.split("\n\n")
            obj.docstring.value = "\n\n".join((summary, *map(as_list, more)))


def as_list(paragraph: str) -> str:
    """A paragraph of fields, the second lines of each indented, as a list; another one as it is."""
    lines = paragraph.split("\n")
    if not all(FIELD.match(line) or line.startswith(" ") for line in lines):
        return paragraph
    if not FIELD.match(lines[0]):
        return paragraph
    return "\n".join(
        FIELD.sub(r"- `\1`: ", line, count=1) if FIELD.match(line) else "  " + line.strip()
        for line in lines
    )
