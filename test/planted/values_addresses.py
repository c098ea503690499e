"""Bugs in addresses: shared and tensor memory without their bases, promises that nobody keeps."""

from __future__ import annotations

from .edits import sub
from .planted import PTX, Planted

THREADS = "convert-tc-to-nvvm"
DESCRIPTORS = sub(r"bfe\.u32 \t(%r\d+), (%r\d+), 4, 14;", r"mov.b32 \t\1, 0;")
FOUR_BITS = sub(r"(bfe\.u32 \t%r\d+, %r\d+, 4, )14;", r"\g<1>4;")
SYMBOL = sub(
    r"(%\w+ = )llvm\.ptrtoint %\w+ : !llvm\.ptr<3> to i32",
    r"\1llvm.mlir.constant(0 : i32) : i32",
)
COLUMN = sub(
    r"(tcgen05\.relinquish_alloc_permit(?:.*\n)*?.*?)ld\.shared\.b32 \t(%r\d+), \[[^]]*\];",
    r"\1mov.b32 \t\2, 0;",
    1,
)
CLAIM = sub(r"(llvm\.load %\w+ \{alignment = )16( : i64\} : !llvm\.ptr<1>)", r"\g<1>64\2")
RESERVED, COLUMNS = "illegal: reserved-shared-memory", "illegal: tensor-memory-columns"

BUGS = [
    *(
        Planted("descriptors without the window's base", name, PTX, DESCRIPTORS, by)
        for name, by in (
            ("gemm residual", RESERVED),
            ("persistent gemm", "hazard: undefined-read"),
            ("gemm sm_90a", RESERVED),
            ("shift-reuse f16", RESERVED),
            ("padded nvfp4", RESERVED),
        )
    ),
    Planted("four bits of the window's base", "gemm residual", PTX, FOUR_BITS, RESERVED),
    *(
        Planted("@smem is 0", name, THREADS, SYMBOL, RESERVED)
        for name in (
            "gemm residual", "persistent gemm", "gemm sm_90a", "shift-reuse f16", "padded nvfp4",
        )
    ),
    *(
        Planted("the columns of tcgen05.alloc begin at 0", name, PTX, COLUMN, COLUMNS)
        for name in ("gemm residual", "persistent gemm", "shift-reuse f16", "padded nvfp4")
    ),
    Planted("loads of the residual claim 64 bytes", "gemm residual", THREADS, CLAIM,
            "illegal: trap"),
]  # fmt: skip
