"""Bugs in addresses: shared and tensor memory without their bases, promises that nobody keeps."""

from __future__ import annotations

from .edits import Edit, sub
from .planted import PTX, Planted

THREADS = "convert-tc-to-nvvm"
ILLEGAL = "refused"
NO_BASE = sub(r"bfe\.u32 \t(%r\d+), (%r\d+), 4, 14;", r"mov.b32 \t\1, 0;")
"""The base of the window in every matrix descriptor."""
NO_SYMBOL = sub(r"(%\w+ = )llvm\.ptrtoint %\w+ : !llvm\.ptr<3> to i32", r"\1llvm.mlir.constant(0 : i32) : i32")
NO_COLUMN = sub(r"(tcgen05\.relinquish_alloc_permit(?:.*\n)*?.*?)ld\.shared\.b32 \t(%r\d+), \[[^]]*\];", r"\1mov.b32 \t\2, 0;", 1)
"""The address that tcgen05.alloc wrote."""


def claimed(bytes_: int) -> Edit:
    """Loads of global memory are as wide as this alignment lets LLVM make them."""
    return sub(r"(llvm\.load %\w+ \{alignment = )16( : i64\} : !llvm\.ptr<1>)", rf"\g<1>{bytes_}\2")
