"""Plain loads and stores of one thread (PTX ISA 9.7.9.8): 8 to 128 bits at once."""

from __future__ import annotations

from tcir.layout.layout import Layout

from .copy import SHARED, CopyOperation

# The spaces select the checks: plain copies work between any two; shared is the strictest.
OPERATIONS = tuple(
    CopyOperation(
        f"copy.b{bits}", Layout((1, bits), (0, 1)), Layout((1, bits), (0, 1)), "src",
        spaces=(SHARED, SHARED), row_bytes=bits // 8, collective=False,
    )
    for bits in (8, 16, 32, 64, 128)
)  # fmt: skip
