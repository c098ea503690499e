"""Names of kernels in PTX, which allows fewer identifiers than MLIR (PTX ISA 4.4)."""

from __future__ import annotations

import re

_IDENTIFIER = re.compile(r"[A-Za-z][\w$]*|[_$][\w$]+", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z]\w*|_\w+", re.ASCII)
_ESCAPED = re.compile(rb"^[0-9]|[^A-Za-z0-9_]+|^_$")
_KEYWORD = "WARP_SZ"
"""The one predefined identifier of PTX, which no kernel can have."""


def spelled_symbol(name: str) -> str:
    """Returns the form of `name` that PTX can spell: the name itself, if dollar signs are its only
    special characters.
    """
    return name if _IDENTIFIER.fullmatch(name) and name != _KEYWORD else legal_symbol(name)


def legal_symbol(name: str) -> str:
    """Returns `name` if PTX can spell it. Otherwise the UTF-8 bytes that PTX cannot spell are
    replaced by their hexadecimal digits between dollar signs: ``main.1`` becomes ``main$2e$1``,
    ``größe`` becomes ``gr$c3b6c39f$e``.

    Different names stay different, because a dollar sign in a name is replaced as well.
    """
    if name == _KEYWORD:
        return f"${name[0].encode().hex()}${name[1:]}"
    if _PLAIN.fullmatch(name):
        return name
    return _ESCAPED.sub(lambda m: b"$%s$" % m[0].hex().encode(), name.encode()).decode()
