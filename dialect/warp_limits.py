"""Types and sizes of the warp level; what each target has is in `tcir.target`."""

from __future__ import annotations

FP8 = ("f8E4M3FN", "f8E5M2")
"""Element types that mma.sync has from sm_89 on (PTX ISA 9.7.14.5, target notes)."""

COPY_BYTES = (4, 8, 16)
"""Sizes of cp.async (PTX ISA 9.7.9.25.3)."""
