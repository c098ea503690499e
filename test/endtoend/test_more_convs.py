"""examples/more_convs.mlir: every convolution by every schedule, from PTX, against numpy."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tcir
from tcir.program.source import split_chunks

from .linalg_text import Conv
from .oracle import convolution, integers

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "more_convs.mlir"
CHUNKS = split_chunks(EXAMPLES.read_text(), EXAMPLES.name)
TEXTS = {re.findall(r"@(\w+)\(", chunk.text)[0]: chunk.text for chunk in CHUNKS}
CONVS = {
    "deeplab_3x3_dilation2": Conv(1, 33, 33, 256, 256, 3, 3, (2, 2, 2, 2), dilations=(2, 2)),
    "inception_1x7": Conv(1, 17, 17, 128, 128, 1, 7, (0, 0, 3, 3)),
    "inception_7x1": Conv(1, 17, 17, 128, 192, 7, 1, (3, 3, 0, 0)),
    "nine_by_nine": Conv(2, 9, 9, 64, 64, 3, 3, (0, 0, 1, 1)),
}
SHIFT = "conv-shift-reuse"
SCHEDULES = {
    "conv": ("conv", {}),
    "rows": (SHIFT, {"tiling": "rows"}),
    "packed": (SHIFT, {"tiling": "packed"}),
    "linear": (SHIFT, {"tiling": "linear"}),
    "refresh": (SHIFT, {"halo": "refresh"}),
    "w128": (SHIFT, {"tiling": "packed", "halo": "refresh", "halo_load": "w128"}),
    "implicit-gemm": ("conv-implicit-gemm", {}),
    "smem-offset": ("conv-smem-offset", {}),
}


def test_the_file_has_these() -> None:
    assert list(TEXTS) == list(CONVS)


@pytest.mark.parametrize(
    ("name", "schedule"),
    [(name, schedule) for name in CONVS for schedule in SCHEDULES],
)
def test_from_ptx(name: str, schedule: str) -> None:
    conv = CONVS[name]
    pipeline, options = SCHEDULES[schedule]
    x, w = (integers(shape, "f16", seed) for seed, shape in enumerate(conv.shapes[:2]))
    want = convolution(conv, x, w)
    out = np.zeros_like(want)
    report = tcir.compile(TEXTS[name], pipeline, **options)(x, w, out)
    assert out.tobytes() == want.tobytes()
    assert not report.findings
