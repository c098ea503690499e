"""HTML from values: whatever is not HTML already is escaped, in text and in attributes."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_VOID = frozenset({"input", "meta"})
"""Elements without an end tag."""


class Html(str):
    """What is HTML: made here, or a constant of the page."""

    __slots__ = ()


def text(value: object) -> Html:
    """A value as HTML."""
    return value if isinstance(value, Html) else Html(escape(str(value)))


def join(parts: Iterable[object], between: str = "") -> Html:
    """Joins values."""
    return Html(between.join(map(text, parts)))


def tag(name: str, *inside: object, **attributes: object) -> Html:
    """An element with these values inside.

    An attribute's name may end in "_" (``class_``) and has "-" for each other "_"; True is one
    without a value, False and None are none.
    """
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        shown = key.removesuffix("_").replace("_", "-")
        words.append(shown if value is True else f'{shown}="{escape(str(value))}"')
    start = f"<{' '.join(words)}>"
    return Html(start if name in _VOID else f"{start}{join(inside)}</{name}>")
