"""cp.async of one thread, global to shared memory: 4, 8 or 16 bytes (PTX ISA 9.7.9.25.3)."""

from __future__ import annotations

from tcir.layout.layout import Layout

from .copy import GLOBAL, SHARED, CopyOperation

OPERATIONS = tuple(
    CopyOperation(
        f"cp.async.{size}", Layout((1, 8 * size), (0, 1)), Layout((1, 8 * size), (0, 1)), "src",
        spaces=(GLOBAL, SHARED), row_bytes=size, collective=False,
    )
    for size in (4, 8, 16)
)  # fmt: skip
