"""Former names of passes and pipelines, and their present names."""

from __future__ import annotations

PASSES = {
    "convert-repack-to-simt": "convert-to-simt{quantise-apart=false}",
    "convert-scales-to-simt": "convert-to-simt{quantise-apart=false}",
    "convert-codes-to-simt": "convert-to-simt{quantise-apart=false}",
    "convert-sums-to-simt": "convert-to-simt{quantise-apart=false}",
    "convert-linalg-to-simt": "convert-to-simt{quantise-apart=false}",
    "convert-quantise-to-simt": "convert-to-simt",
    "convert-block-scaled-to-simt": "convert-to-simt{quantise-apart=false rows=4}",
}
"""Names that go with the next release: the new one, with options that the old one implied."""
PIPELINES = {"matmul": "gemm"}
"""Second names, which stay."""


def current_name(name: str) -> tuple[str, str]:
    """Current name of a pass, and the options that its former name implied ("" if it implied
    none).
    """
    new, brace, options = PASSES.get(name, name).partition("{")
    return new, brace + options
