"""A report's page of hostile strings: every field of the JSON, every key, and the IR."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tcir.errors import InputError
from tcir.program.state import State
from tcir.viz.html import Html, join, tag, text
from tcir.viz.report import page_of_file, report_html

from .hostile_report import PAYLOADS, REPORT


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a value, or (behind "key") a key of a dictionary, may be replaced."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield (*path, "key", name)
            yield from paths(each, (*path, name))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from paths(each, (*path, number))
    else:
        yield path


def with_payload(path: tuple[Any, ...], payload: str) -> dict[str, Any]:
    changed = copy.deepcopy(REPORT)
    at: Any = changed
    if len(path) > 1 and path[-2] == "key":
        for step in path[:-2]:
            at = at[step]
        at[payload] = at.get(path[-1])
        return changed
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = payload
    return changed


class Structure(HTMLParser):
    """The elements of a page, and the names of their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[tuple[str, str]] = set()
        self.scripts = self.styles = 0
        self.links: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {(tag, name) for name, _ in attrs} | {(tag, "")}
        self.scripts += tag == "script"
        self.styles += tag == "style"
        self.links |= {str(value)[:1] for name, value in attrs if name in ("href", "src")}


STATES = {0: State("op %a\nop %b"), 1: State("op %a\nop %c")}


def judged(page: str, sound: Structure) -> None:
    found = Structure(page)
    assert found.found <= sound.found
    assert (found.scripts, found.styles) == (1, 1)
    assert found.links <= {"#"}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_field_is_markup(payload: str, tmp_path: Path) -> None:
    sound = Structure(report_html(REPORT, STATES))
    file = tmp_path / "r.json"
    for path in paths(REPORT):
        file.write_text(json.dumps(with_payload(path, payload)))
        try:
            page = page_of_file(str(file), None, None)
        except InputError:  # not a number
            continue
        judged(page, sound)
    judged(report_html(REPORT, {0: State(payload), 1: State(f"op %a\n{payload}")}), sound)


@pytest.mark.parametrize("field", ["ops", "name", "verdict"])
def test_what_was_not_escaped_once(field: str) -> None:
    changed = copy.deepcopy(REPORT)
    changed["passes"][1][field] = PAYLOADS[0]
    page = report_html(changed, STATES)
    assert "<img" not in page and "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;" in page


def test_the_helper_escapes_whatever_is_not_html() -> None:
    assert tag("p", "<b>", 3, class_="a\"b'") == ('<p class="a&quot;b&#x27;">&lt;b&gt;3</p>')
    assert tag("p", tag("b", "&"), hidden=True, data_x=None) == "<p hidden><b>&amp;</b></p>"
    assert text(Html("<b>")) == "<b>" and join(["<", Html("<br>")], "\n") == "&lt;\n<br>"
    assert tag("meta", charset="utf-8") == '<meta charset="utf-8">'
