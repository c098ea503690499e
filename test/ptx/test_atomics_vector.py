"""atom and red on vectors of floats, and lanes that share an address."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcir.run import run_ptx

from .conftest import HEADER

KERNEL = """
.visible .entry {name}(.param .u64 x, .param .u64 y)
{{
 .reg .b32 %r<16>; .reg .b16 %h<16>; .reg .b64 %rd<6>;
 ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y];
 mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, {shift};
 mul.wide.u32 %rd3, %r1, 16; add.s64 %rd1, %rd1, %rd3;
 mul.wide.u32 %rd3, %r2, 16; add.s64 %rd2, %rd2, %rd3;
 ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd1];
 {body}
 ret;
}}
"""
HALVES = ", ".join(f"%h{n}" for n in range(8))
SPLIT = "".join(f"mov.b32 {{%h{2 * n}, %h{2 * n + 1}}}, %r{4 + n};" for n in range(4))
FORMS = {
    "red_f32": ("red.global.add.v4.f32 [%rd2], {%r4, %r5, %r6, %r7};", np.float32),
    "atom_f32": (
        "atom.global.gpu.relaxed.add.v4.f32 {%r8, %r9, %r10, %r11}, [%rd2], {%r4, %r5, %r6, %r7};",
        np.float32,
    ),
    "red_f16x2": ("red.global.add.noftz.v4.f16x2 [%rd2], {%r4, %r5, %r6, %r7};", np.float16),
    "red_bf16": (SPLIT + f"red.global.v8.bf16.add.noftz [%rd2], {{{HALVES}}};", ml_dtypes.bfloat16),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("shift", [0, 2])
def test_vector_additions(name: str, shift: int) -> None:
    body, dtype = FORMS[name]
    count = 16 // np.dtype(dtype).itemsize
    x = np.random.default_rng(1).integers(-8, 9, (32, count)).astype(dtype)
    y = np.ones((32 >> shift, count), dtype)
    ptx = HEADER + KERNEL.format(name=name, shift=shift, body=body)
    report = run_ptx(ptx, grid=1, block=32, args=[x, y])
    assert report.ok, report
    sums = x.astype("f8").reshape(32 >> shift, 1 << shift, count).sum(axis=1)
    assert (y.astype("f8") == 1 + sums).all()


def test_old_values_come_back_in_lane_order() -> None:
    body = "atom.global.add.f32 %r8, [%rd2], %r4; atom.global.exch.b32 %r9, [%rd1+4], %r8;"
    x, y = np.ones((32, 4), np.float32), np.zeros(4, np.float32)
    ptx = HEADER + KERNEL.format(name="k", shift=5, body=body)
    report = run_ptx(ptx, grid=1, block=32, args=[x, y])
    assert report.ok, report
    assert x[:, 1].tolist() == list(range(32)) and y[0] == 32


def test_snippets_are_legal_ptx(assemble: Any) -> None:
    for name, (body, _) in FORMS.items():
        assemble(HEADER + KERNEL.format(name=name, shift=0, body=body))
