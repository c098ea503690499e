"""A short form of tc programs for reading; one-way, since Python-defined ops print generically.

``%3 = "tc.tmem_ld"(%1, %c0) <{n = 16 : i64}> : (!tc.tmem<…>, index) -> vector<32x16xf32>`` becomes
``%3 = tc.tmem_ld %1, %c0 {n = 16} : vector<32x16xf32>``. Other ops stay as they are.
"""

from __future__ import annotations

import re
from typing import Any

_OP = re.compile(
    r'^(?P<head>\s*(?:%[\w#:, %]+ = )?)"tc\.(?P<name>\w+)"\((?P<operands>[^)]*)\)'
    r"(?: <?\{(?P<attributes>[^{].*?|)\}>?)?(?P<rest>(?: :| \().*)$"
)
_ARRAY = re.compile(r"array<i\d+(?:: ([^>]*))?>")
_TYPE = re.compile(r"!tc\.(\w+)<([^<>]*)>")


def pretty(module: Any) -> str:
    """The short form of a module."""
    return "\n".join(_line(line) for line in str(module).rstrip().splitlines()) + "\n"


def _line(line: str) -> str:
    found = _OP.match(line)
    if found is None:
        return _shorten(re.sub(r"^(\s*)\}\) : \(\) -> \(\)$", r"\1}", line))
    operands = f" {found['operands']}" if found["operands"] else ""
    attributes = re.sub(r"(?:, )?operandSegmentSizes = array<[^>]*>", "", found["attributes"] or "")
    attributes = _shorten(re.sub(r" : (?:i\d+|index)\b", "", attributes)).removeprefix(", ")
    attributes = f" {{{attributes}}}" if attributes else ""
    rest = found["rest"]
    if rest.endswith("({"):
        rest = " {"
    else:
        result = re.search(r" -> (.*)$", rest)
        rest = f" : {_shorten(result[1])}" if result and result[1] != "()" else ""
    return f"{found['head']}tc.{found['name']}{operands}{attributes}{rest}"


def _shorten(text: str) -> str:
    text = _ARRAY.sub(lambda m: f"[{m[1] or ''}]", text)
    return _TYPE.sub(lambda m: f"!{m[1]}<{_parameters(m[2])}>", text)


def _parameters(text: str) -> str:
    text = re.sub(r"\[([\d, ]*)\]", lambda m: m[1].replace(", ", "x"), text)
    return " ".join(re.sub(r" : i\d+|\"", "", part).strip() for part in text.split(","))
