"""Names of kernels in PTX, which spells fewer than MLIR does (PTX ISA 4.4, identifiers)."""

from __future__ import annotations

import re

_IDENTIFIER = re.compile(r"[A-Za-z][\w$]*|[_$][\w$]+", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z]\w*|_\w+", re.ASCII)
_ESCAPED = re.compile(rb"^[0-9]|[^A-Za-z0-9_]+|^_$")
_KEYWORD = "WARP_SZ"
"""The one identifier that PTX has itself and that no kernel can have."""


def spelled_symbol(name: str) -> str:
    """`name` as PTX can spell it: as it is, where a dollar sign is all that is strange."""
    return name if _IDENTIFIER.fullmatch(name) and name != _KEYWORD else legal_symbol(name)


def legal_symbol(name: str) -> str:
    """`name`, where PTX can spell it; else with the UTF-8 bytes that PTX cannot in hexadecimal,
    between dollar signs: ``main.1`` is ``main$2e$1``, ``größe`` is ``gr$c3b6c39f$e``.

    Names that differ still do: a dollar sign of a name is among those bytes.
    """
    if name == _KEYWORD:
        return f"${name[0].encode().hex()}${name[1:]}"
    if _PLAIN.fullmatch(name):
        return name
    return _ESCAPED.sub(lambda m: b"$%s$" % m[0].hex().encode(), name.encode()).decode()
