"""mma.sync.m8n8k4 of f16: four products of eight threads each (PTX ISA 9.7.14.5.1).

The eight threads of quad pair q of a warp are 4q..4q+3 and 4q+16..4q+19; the layouts are those of
one quad pair. The letters T and N in the names are those of BLAS: A is T (row-major, K-major) or N
(M-major); B is N (column-major, K-major) or T (N-major).
"""

from __future__ import annotations

from tcir.layout.layout import Layout

from .mma import MmaAtom

_QUAD_PAIR = Layout((4, 2), (1, 16))
# Thread l + 4h. K-major: row l + 4h, value i is column i.
_ROWS = Layout((8, 4), (1, 8))
# M-major: column l, value i is row i + 4h.
_COLUMNS = Layout(((4, 2), 4), ((8, 4), 1))
# Row (l & 1) + (i & 2) + 4h, column (i & 4) + (l & 2) + (i & 1).
_C_F32 = Layout(((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32)))
# Row l + 4h, column i.
_C_F16 = Layout((8, 8), (1, 8))

ATOMS = tuple(
    MmaAtom(
        f"mma.m8n8k4.{c_type}.{a_major}{b_major}".lower(), (8, 8, 4), _QUAD_PAIR,
        a=_ROWS if a_major == "T" else _COLUMNS,
        b=_ROWS if b_major == "N" else _COLUMNS,
        c=c, a_types=("f16",), c_types=(c_type,), a_bits=16, c_bits=c_bits,
    )
    for c_type, c, c_bits in (("f32", _C_F32, 32), ("f16", _C_F16, 16))
    for a_major, b_major in ("TN", "TT", "NN", "NT")
)  # fmt: skip
