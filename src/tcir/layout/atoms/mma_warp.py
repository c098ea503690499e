"""Whole-warp mma.sync (PTX ISA 9.7.14.5, fragment tables of m16n8k4 to m16n8k32).

Thread 4g + c holds elements of row g of A and of column g of B. The elements in one 32-bit register
are contiguous along k.
"""

from __future__ import annotations

from tcir.layout.layout import Layout

from .mma import MmaAtom

_WARP = Layout(32)
_QUAD = (4, 8)
# Rows g and g + 8, columns 2c and 2c + 1; one value per register.
_C = Layout((_QUAD, (2, 2)), ((32, 1), (16, 8)))

ATOMS = (
    MmaAtom(
        "mma.m16n8k4.tf32", (16, 8, 4), _WARP,
        a=Layout((_QUAD, 2), ((16, 1), 8)),
        b=Layout((_QUAD, 1), ((8, 1), 0)),
        c=_C, a_types=("tf32",), c_types=("f32",), a_bits=32, c_bits=32,
    ),
    MmaAtom(
        "mma.m16n8k8.tf32", (16, 8, 8), _WARP,
        a=Layout((_QUAD, (2, 2)), ((16, 1), (8, 64))),
        b=Layout((_QUAD, 2), ((8, 1), 32)),
        c=_C, a_types=("tf32",), c_types=("f32",), a_bits=32, c_bits=32,
    ),
    MmaAtom(
        "mma.m16n8k8.f16", (16, 8, 8), _WARP,
        a=Layout((_QUAD, (2, 2)), ((32, 1), (16, 8))),
        b=Layout((_QUAD, 2), ((16, 1), 8)),
        c=_C, a_types=("f16", "bf16"), c_types=("f32",), a_bits=16, c_bits=32,
    ),
    MmaAtom(
        "mma.m16n8k16.f16", (16, 8, 16), _WARP,
        a=Layout((_QUAD, (2, 2, 2)), ((32, 1), (16, 8, 128))),
        b=Layout((_QUAD, (2, 2)), ((16, 1), (8, 64))),
        c=_C, a_types=("f16", "bf16"), c_types=("f32",), a_bits=16, c_bits=32,
    ),
    MmaAtom(
        "mma.m16n8k32.b8", (16, 8, 32), _WARP,
        a=Layout((_QUAD, (4, 2, 2)), ((64, 1), (16, 8, 256))),
        b=Layout((_QUAD, (4, 2)), ((32, 1), (8, 128))),
        c=_C, a_types=("e4m3", "e5m2", "s8", "u8"), c_types=("f32", "s32"), a_bits=8, c_bits=32,
    ),
)  # fmt: skip
