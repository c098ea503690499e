"""Replaces prefixes of source paths in generated code, for prefixes that differ between computers.

LLVM IR names the file of each location, PTX repeats it in ``.file``, and ptxas copies it into the
cubin. Therefore equal programs in two folders give different cubins. C compilers have the flag
``-fdebug-prefix-map=OLD=NEW`` for the same purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tcir.errors import InputError

_FILE = re.compile(
    r'^(!\d+ = (?:distinct )?!DIFile\(filename: ")([^"]*)(", directory: ")([^"]*)"', re.MULTILINE
)
_ESCAPED = re.compile(rb"\\([0-9A-Fa-f]{2})")


def parse_prefixes(texts: Iterable[str]) -> dict[str, str]:
    """Parses texts ``OLD=NEW`` to a map from each prefix OLD to its replacement NEW. Raises
    InputError for other texts.
    """
    found: dict[str, str] = {}
    for text in texts:
        old, equals, new = text.partition("=")
        if not equals or not old:
            raise InputError(
                f"--debug-prefix-map: expected OLD=NEW, the prefix of paths and its replacement, "
                f"got '{text}'; such as --debug-prefix-map=$PWD=."
            )
        found.pop(old, None)
        found[old] = new
    return found


def map_prefixes(llvm_ir: str, prefixes: Mapping[str, str]) -> str:
    """Returns the LLVM IR with the prefixes of its source files replaced. If several prefixes match
    a path, the last one applies.
    """
    if not prefixes:
        return llvm_ir

    def mapped(escaped: str) -> str:
        path = _ESCAPED.sub(lambda m: bytes([int(m[1], 16)]), escaped.encode()).decode()
        for old, new in reversed(list(prefixes.items())):
            if path.startswith(old):
                return _escape(new + path[len(old) :])
        return escaped

    return _FILE.sub(lambda m: f'{m[1]}{mapped(m[2])}{m[3]}{mapped(m[4])}"', llvm_ir)


def _escape(path: str) -> str:
    return "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\' else f"\\{byte:02X}"
        for byte in path.encode()
    )
