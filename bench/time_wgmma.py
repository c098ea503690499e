"""Kernels of `wgmma` for the time model's predictions: for `time_hopper.py --wgmma`.

Products of several sizes, types and tiles, and the convolutions of ResNet-50 that are one launch,
of `bench/hopper_conv.py`, in f16 with bias and relu.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hopper
import hopper_conv
import numpy as np
from time_hopper import Case, case_of, compiled

TARGET = "sm_90a"
PRODUCTS: tuple[tuple[int, str, dict[str, Any]], ...] = (
    *((n, "f16", {}) for n in (1024, 2048, 3072, 4096, 6144, 8192)),
    (4096, "f16", {"n-tile": 128}),
)
STEM = "conv1"
"""Two launches: its input is repacked first."""


def all_cases() -> Iterator[Case]:
    """Compiled for `TARGET`."""
    import tcir

    for n, kind, options in PRODUCTS:
        name = f"gemm {n} {kind}" + "".join(f" {k}={v}" for k, v in options.items())
        python = {key.replace("-", "_"): value for key, value in options.items()}
        text = hopper.PROGRAM.format(n=n, t=kind)
        yield compiled(name, text, "gemm", python, TARGET)
    for batch in hopper_conv.BATCHES:
        for layer, (size, c, k, r, stride) in hopper_conv.LAYERS.items():
            if layer == STEM:
                continue
            x, w = np.ones((batch, size, size, c), "f2"), np.ones((r, r, c, k), "f2")
            kernel = tcir.conv2d(
                x, w, stride=stride, padding=r // 2, bias=np.ones(k, "f4"), activation="relu",
                out="f2", pipeline=hopper_conv.PIPELINE, target=TARGET,
            )  # fmt: skip
            yield case_of(f"{layer} {batch}", kernel, TARGET)
