"""Parses and prints the textual form of pipelines, ``builtin.module(a{x=1},func.func(b,c))``,
without MLIR.

Upstream's parser does not know passes that are written in Python. Therefore a text that names
passes of upstream and of Python is split here, and each pass is run by its own pass manager.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tcir.errors import InputError

ROOT = "builtin.module"


@dataclass(frozen=True)
class Item:
    """One pass of a text: its name, its ``{options}`` or "", and the anchors around it below the
    root.
    """

    name: str
    options: str
    anchors: tuple[str, ...]


def parse(text: str) -> list[Item]:
    """The passes of a text in order; the outer ``builtin.module(...)`` is optional."""
    items: list[Item] = []
    _parse_list(text, (), items)
    return items


def _parse_list(text: str, anchors: tuple[str, ...], items: list[Item]) -> None:
    for element in _split(text):
        name, inner, options = _element(element)
        if inner is None:
            items.append(Item(name, options, anchors))
        elif name in (ROOT, "any") and not anchors:
            _parse_list(inner, anchors, items)
        else:
            _parse_list(inner, (*anchors, name), items)


def _element(element: str) -> tuple[str, str | None, str]:
    """Name, the text in its parentheses (None without), and its options."""
    for position, character in enumerate(element):
        if character == "(":
            if not element.endswith(")"):
                raise InputError(f"expected ')' at the end of '{element}' in the pipeline")
            return element[:position].strip(), element[position + 1 : -1], ""
        if character == "{":
            return element[:position].strip(), None, element[position:]
    return element, None, ""


def _split(text: str) -> list[str]:
    """Splits at commas outside brackets and quotes."""
    elements: list[str] = []
    current, depth, quote = "", 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "({[":
            depth += 1
        elif character in ")}]":
            depth -= 1
            if depth < 0:
                raise InputError(f"unmatched '{character}' in the pipeline '{text}'")
        elif character == "," and depth == 0:
            elements.append(current.strip())
            current = ""
            continue
        current += character
    if depth or quote:
        raise InputError(f"expected closed brackets and quotes in the pipeline, got '{text}'")
    elements.append(current.strip())
    if elements == [""]:
        return []
    if "" in elements:
        raise InputError(f"expected a pass between commas in the pipeline, got '{text}'")
    return elements


def nest(anchors: Iterable[str], text: str) -> str:
    """Nests a text in anchors: ``a(b(text))`` for the anchors (a, b)."""
    for anchor in reversed(list(anchors)):
        text = f"{anchor}({text})"
    return text


def join(passes: Iterable[tuple[tuple[str, ...], str]]) -> str:
    """The text of a list of (anchors, pass); neighbours with equal anchors share them."""
    groups: list[tuple[tuple[str, ...], list[str]]] = []
    for anchors, text in passes:
        if groups and groups[-1][0] == anchors:
            groups[-1][1].append(text)
        else:
            groups.append((anchors, [text]))
    return nest([ROOT], ",".join(nest(anchors, ",".join(texts)) for anchors, texts in groups))
