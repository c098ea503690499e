"""Reads the PTX in a fat binary that nvcc wrote without compression."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tcir.errors import InputError

MAGIC = b"\x50\xed\x55\xba"
_PTX = 1
"""Kind of a PTX entry; machine code is 2."""


def ptx_of(data: bytes) -> str:
    """The first PTX text in a fat binary. Raises `InputError` if no PTX can be read."""
    for kind, payload in _entries(data):
        text = payload.rstrip(b"\0")
        if kind == _PTX and b".version" in text:
            return text.decode()
    raise InputError(
        "expected a fat binary with PTX that is not compressed, got one without; nvcc -gencode "
        "arch=compute_100a,code=compute_100a --compress-mode=none makes it"
    )


def _entries(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and bytes of each entry. A header contains its own size and that of its data."""
    if len(data) < 16 or data[:4] != MAGIC:
        return
    at, size = struct.unpack_from("<HQ", data, 6)
    end = min(at + size, len(data))
    while at + 16 <= end:
        kind, header, length = struct.unpack_from("<HxxIQ", data, at)
        yield kind, data[at + header : at + header + length]
        at += header + length or end
