"""Kernels of gemm and of convolutions for sm_90a as bundles: do a Hopper GPU's bits equal the
machine's? In `test/`:

    python -m hopper.pipeline_bits build/kit [offset]    # here: MLIR, ptxas; the machine is right
    python build/kit/run.py                              # there: cuda-python, numpy

The cases of `endtoend.test_gemm_wgmma`, `test_gemm_wgmma_deferred`, `test_gemm_wgmma_fp8`,
`test_gemm_wgmma_quantise`, `test_conv_wgmma`, `test_conv_filter_rows`, `test_conv_split_k` and
`test_conv_offset_wgmma` that the machine runs in seconds, on whole numbers and on random floats,
and convolutions with more tiles than SMs; all, or those whose names begin so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from endtoend import (
    test_conv_filter_rows,
    test_conv_offset_wgmma,
    test_conv_split_k,
    test_conv_wgmma,
    test_gemm_wgmma,
    test_gemm_wgmma_deferred,
    test_gemm_wgmma_fp8,
    test_gemm_wgmma_quantise,
)
from endtoend.linalg_text import Conv

from tcir.ptxrun.program_bundle import pack_program
from tcir.runtime.bundle import carry, check_new

TARGET = test_gemm_wgmma.TARGET
MOST = 48 << 20
"""Multiplications."""
LARGE = {
    "two CTAs": Conv(1, 96, 184, 16, 256, 1, 1, out="f16"),
    "two CTAs of 64 columns": Conv(1, 96, 184, 32, 64, 1, 1, out="bf16", element="bf16"),
    "192 pixels": Conv(1, 112, 224, 256, 64, 1, 1, out="f16"),
}
"""Convolutions with a tile for every SM, or more."""


def cases() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Name, text, pipeline and its options."""
    for number, case in enumerate(test_gemm_wgmma.CASES):
        text, options = case.values
        if "512x512" not in text and "1024x" not in text:
            yield f"gemm{number:02}", text, "gemm", options
    for number, case in enumerate(test_gemm_wgmma_deferred.CASES):
        text, options = case.values
        if "tensor<f32>" not in text:  # which a bundle has no argument for
            yield f"deferred{number:02}", text, "gemm", options
    for number, case in enumerate(test_gemm_wgmma_fp8.CASES):
        text, options = case.values
        if "512x512" not in text:
            yield f"fp8_{number:02}", text, "gemm", options
    for number, words in enumerate(("bias, relu", "f8E4M3FN, clamped: one instruction")):
        yield f"fp8-fused{number}", test_gemm_wgmma_fp8.FUSED[words].linalg(), "gemm", {}
    for number, case in enumerate(test_gemm_wgmma_quantise.CASES):
        text, options = case.values
        yield f"quantise{number:02}", text, "gemm", options
    for name, of in (("conv", test_conv_wgmma), ("offset", test_conv_offset_wgmma)):
        for number, conv in enumerate(of.CASES):
            _, _, out = conv.shapes
            if out[1] * out[2] * conv.r * conv.s * conv.c * conv.k < MOST:
                yield f"{name}{number:02}", conv.text(), of.PIPELINE, {}
        for number, fused in enumerate(of.FUSED.values()):
            yield f"{name}-fused{number}", fused.linalg(), of.PIPELINE, {}
    yield from _measured()


def _measured() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """The convolutions measured in docs/explanation/conv-sm90a.md whose tiles the tests do not
    have."""
    for number, conv in enumerate([test_conv_filter_rows.STEM, *test_conv_filter_rows.CASES]):
        yield f"conv-rows{number}", conv.text(), "conv-implicit-gemm", {"programmatic": True}
    for number, (conv, options) in enumerate(test_conv_split_k.CASES):
        yield f"conv-split{number}", conv.text(), "conv-implicit-gemm", options
    for number, conv in enumerate(LARGE.values()):
        yield f"conv-large{number}", conv.text(), "conv", {"programmatic": True}


def main(folder: Path, first: str = "") -> None:
    """Writes the kit of the cases whose names begin with `first`."""
    check_new(folder)
    for name, text, pipeline, options in cases():
        if not name.startswith(first):
            continue
        for inputs in ("integers", "random"):
            if inputs == "random" and "xi8>" in text:
                continue
            pack_program(
                folder / f"{name}-{inputs}", text, pipeline, name=name, inputs=inputs,
                target=TARGET, **options,
            )  # fmt: skip
            print(f"{name}-{inputs}", flush=True)
    carry(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
