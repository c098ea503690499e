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
from tcir.viz.report import SCHEMA, page_of_file, report_html

LINE: dict[str, Any] = {
    "index": 1, "name": "tile", "ops": 10, "pass_seconds": 0.5, "execute_seconds": 0.25,
    "level": "tile", "verdict": "different", "compared": "bit for bit", "max_error": 1.0,
    "max_error_over_bound": 2.0, "rms_error_over_bound": 0.5,
    "difference": {"output": 0, "index": [1, 2], "site": "t:1:2", "expected": "1.0", "got": "2.0",
                   "count": 3, "total": 4},
    "findings": [{"severity": "error", "code": "race", "text": "op %a"}],
    "sites": [[1, "op %a"]], "incomplete": ["no.rule"], "counters": {"mma": 3},
    "remarks": ["slow"], "orders": 1, "drawn": 1, "drawn_of": 2,
}  # fmt: skip
REPORT: dict[str, Any] = {
    "schema": SCHEMA, "program": "f", "pipeline": "builtin.module(x)", "target": "sm_100a",
    "seed": 0, "inputs": "integers", "orders": 1, "numerics": "exact", "ordering": "silicon",
    "assumptions": {"place": "any"}, "max_instructions": 5, "budget": 1.0,
    "estimate": {"seconds": 2.0, "bytes": 3.0}, "verdict": "different", "exit_code": 1,
    "error": "it broke", "passes": [{**LINE, "index": 0, "name": "(input)"}, LINE],
    "notes": ["from the cache"],
    "code": {"registers": 5, "sass": {"UTCHMMA": 4}, "missing": ["ptxas"]},
    "roofline": {"flops": {"f16": 2048}, "hbm_bytes": 99, "moved_bytes": 9, "flop_per_byte": 1.5,
                 "limits_us": {"HBM": 1.0}, "bound": "HBM", "executed_limits_us": {"HBM": 2.0},
                 "modelled_us": 2.5, "limited_by": "latency", "share": 0.5},
}  # fmt: skip
PAYLOADS = (
    '<img src=x onerror="alert(1)">',
    '" onmouseover="alert(1)" x="',
    "' onfocus='alert(1)' autofocus x='",
    "</script><script>alert(1)</script>",
    "--><svg/onload=alert(1)>",
    "</style></title></pre><a href=javascript:alert(1)>x</a>",
)


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
