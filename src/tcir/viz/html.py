"""Builds HTML from values: values that are not HTML are escaped, in text and in attributes."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_VOID = frozenset({"input", "meta"})
"""Elements without an end tag."""


class Html(str):
    """Text that is already HTML: built by this module, or a constant of the page."""

    __slots__ = ()


def text(value: object) -> Html:
    """Returns a value as HTML."""
    return value if isinstance(value, Html) else Html(escape(str(value)))


def join(parts: Iterable[object], between: str = "") -> Html:
    """Converts values to HTML and joins them."""
    return Html(between.join(map(text, parts)))


def tag(name: str, *inside: object, **attributes: object) -> Html:
    """Returns an HTML element with these values inside.

    A trailing "_" of an attribute's name (``class_``) is dropped, and each other "_" becomes "-".
    The value True gives an attribute without a value; False and None omit the attribute.
    """
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        shown = key.removesuffix("_").replace("_", "-")
        words.append(shown if value is True else f'{shown}="{escape(str(value))}"')
    start = f"<{' '.join(words)}>"
    return Html(start if name in _VOID else f"{start}{join(inside)}</{name}>")
