"""Options of passes and pipelines: converts the text ``{stages=3 tiling=rows}`` to a dataclass, and
back.

The fields of the dataclass are the options, and the type of a field decides how its value is read.
Allowed types are bool, int, float, str, `typing.Literal`, ``tuple[T, ...]`` of one of these
(written ``1,2,3``), and any of them ``| None``. An underscore in a field's name may be written as a
dash.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Sequence
from typing import Any, TypeAlias

from tcir.errors import InputError, UnknownNameError, did_you_mean

OptionValue: TypeAlias = bool | int | float | str | Sequence[bool | int | float | str] | None
"""A value of an option, or its text."""

_CLOSING = {"{": "}", "[": "]", "(": ")"}


def split_options(text: str) -> dict[str, str]:
    """Splits ``a=1 b="x y" c={d=2}`` (with or without outer braces) into ``{"a": "1", ...}``."""
    body = text.strip()
    if body.startswith("{") and body.endswith("}"):
        body = body[1:-1]
    options: dict[str, str] = {}
    for word in _words(body):
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise InputError(f"expected options of the form {{key=value key=value}}, got '{word}'")
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        key = key.replace("-", "_")
        if key in options:
            raise InputError(f"expected each option once, got '{key}' twice")
        options[key] = value
    return options


def _words(text: str) -> list[str]:
    """Splits at white space and top-level commas, outside quotes and brackets."""
    words: list[str] = []
    current = ""
    nesting: list[str] = []
    quote = ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in _CLOSING:
            nesting.append(_CLOSING[character])
        elif nesting and character == nesting[-1]:
            nesting.pop()
        elif character.isspace() and not nesting:
            if current:
                words.append(current)
            current = ""
            continue
        current += character
    if quote or nesting:
        raise InputError(f"expected closed quotes and brackets in options, got '{text}'")
    return [*words, current] if current else words


def make_options(cls: type[Any], values: dict[str, Any], owner: str) -> Any:
    """Creates an instance of the dataclass `cls`; each value, or its text, is converted to the
    field's type."""
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
    hints = typing.get_type_hints(cls)
    read: dict[str, Any] = {}
    for key, value in values.items():
        if key not in fields:
            allowed = ", ".join(_spelling(name) for name in fields) or "none"
            near = did_you_mean(_spelling(key), map(_spelling, fields)) if fields else ""
            near = near if "did you mean" in near else ""
            raise UnknownNameError(
                f"'{owner}' has no option '{_spelling(key)}'; its options are: {allowed}{near}"
            )
        text = value if isinstance(value, str) else "none" if value is None else _write(value)
        read[key] = _read(hints[key], text, f"option '{_spelling(key)}' of '{owner}'")
    missing = [
        _spelling(f.name)
        for f in fields.values()
        if f.name not in read
        and f.default is dataclasses.MISSING
        and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise InputError(f"'{owner}' needs the option(s) {', '.join(missing)}")
    try:
        return cls(**read)
    except (ValueError, TypeError) as error:
        raise InputError(f"'{owner}': {error}") from error


def format_options(instance: Any) -> str:
    """Formats the fields that differ from their defaults, as in ``{stages=3}``; "" if no field
    does.
    """
    words = []
    for f in dataclasses.fields(instance):
        value = getattr(instance, f.name)
        default = f.default_factory() if callable(f.default_factory) else f.default
        if f.init and value != default:
            words.append(f"{_spelling(f.name)}={_write(value)}")
    return "{" + " ".join(words) + "}" if words else ""


def describe_options(cls: type[Any]) -> str:
    """Describes the options for listings: ``stages: int = 4, tiling: 'rows' | 'linear' = rows``."""
    hints = typing.get_type_hints(cls)
    parts = []
    for f in dataclasses.fields(cls):
        if not f.init:
            continue
        default = f.default_factory() if callable(f.default_factory) else f.default
        shown = "" if default is dataclasses.MISSING else f" = {_write(default)}"
        parts.append(f"{_spelling(f.name)}: {_type_name(hints[f.name])}{shown}")
    return ", ".join(parts)


def _spelling(name: str) -> str:
    return name.replace("_", "-")


def _write(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ",".join(_write(item) for item in value)
    text = str(value)
    return f'"{text}"' if any(c.isspace() or c in "{}[]()" for c in text) or not text else text


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return typing.get_args(hint)
    return (hint,)


def _type_name(hint: Any) -> str:
    if len(_alternatives(hint)) > 1:
        return " | ".join(_type_name(part) for part in _alternatives(hint))
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(f"'{choice}'" for choice in typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        return f"list of {_type_name(typing.get_args(hint)[0])}"
    return {type(None): "none"}.get(hint, getattr(hint, "__name__", str(hint)))


def _read(hint: Any, text: str, what: str) -> Any:
    for part in _alternatives(hint):
        try:
            return _read_one(part, text)
        except ValueError:
            continue
    raise InputError(f"{what}: expected {_type_name(hint)}, got '{text}'")


def _read_one(hint: Any, text: str) -> Any:
    if hint is type(None):
        if text == "none":
            return None
        raise ValueError
    if hint is bool:
        if text not in ("true", "false", "1", "0"):
            raise ValueError
        return text in ("true", "1")
    if hint is int:
        return int(text, 0)
    if hint in (float, str):
        return hint(text)
    if typing.get_origin(hint) is typing.Literal:
        for choice in typing.get_args(hint):
            if str(choice) == text:
                return choice
        raise ValueError
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        body = text.strip("[]()")
        return tuple(_read_one(inner, item.strip()) for item in body.split(",") if item.strip())
    raise InputError(f"no rule to read an option of type {hint}; see `tcir.passmanager.options`")
