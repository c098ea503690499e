"""Kernels that test which random bits cvt.rs uses for each operand."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcir.runtime.micro_kernel import HEADER, Array, MicroKernel

_CONVERT = """
.visible .entry ask(.param .u64 random, .param .u64 out)
.reqntid 128
{{
 .reg .b16 %h<2>; .reg .b32 %r<8>; .reg .f32 %f<2>; .reg .b64 %d<8>;
 mov.u32 %r1, %tid.x; ld.param.u64 %d0, [random]; ld.param.u64 %d1, [out];
 mul.wide.u32 %d2, %r1, 4; add.s64 %d0, %d0, %d2; add.s64 %d1, %d1, %d2;
 ld.global.b32 %r2, [%d0]; mov.f32 %f0, {value};
 cvt.rs.satfinite.{name}x4.f32 {target}, {{%f0, %f0, %f0, %f0}}, %r2;
 {store} [%d1], {target};
 ret;
}}
"""


def _convert(name: str, value: str, target: str, store: str) -> MicroKernel:
    """Kernel that converts one number, 3/8 of a step above 1, four times in each of 128 threads,
    with 128 random words."""

    def make() -> tuple[list[Any], list[Array]]:
        random = np.random.default_rng(4).integers(0, 1 << 32, 128, np.uint32)
        out = np.zeros(128, np.uint32)
        return [random, out], [out]

    text = _CONVERT.format(name=name, value=value, target=target, store=store)
    return MicroKernel(HEADER + text, 128, make)


def convert_kernels() -> dict[str, MicroKernel]:
    """Maps each assumption to the kernel that tests it."""
    return {
        "rs_pair_bits": _convert("e4m3", "0f3F860000", "%r3", "st.global.b32"),
        "rs_fp4_bits": _convert("e2m1", "0f3F980000", "%h0", "st.global.b16"),
    }
