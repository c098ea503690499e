"""ldmatrix and stmatrix of 8 x 8 matrices of 16 bits (PTX ISA 9.7.14.5.15 and .16).

Bit ``1024 i + 128 j + 16 k`` is element k of row j of matrix i. Thread 8i + j supplies the address
of that row: 16 contiguous bytes in shared memory. In registers thread 4g + c holds columns 2c and
2c + 1 of row g of each matrix; with ``.trans`` rows 2c and 2c + 1 of column g.
"""

from __future__ import annotations

from tcir.layout.layout import Layout

from .copy import REGISTERS, SHARED, CopyOperation

ROW = 128
MATRIX = 8 * ROW


def _rows(matrices: int) -> Layout:
    """Rows by address; threads past the last row repeat the first addresses (they are ignored)."""
    rows = 8 * matrices
    threads = Layout((rows, 32 // rows), (ROW, 0)) if rows < 32 else Layout(32, ROW)
    return Layout((threads.shape, ROW), (threads.stride, 1))


def _registers(matrices: int, trans: bool) -> Layout:
    if trans:
        return Layout(((4, 8), (16, 2, matrices)), ((2 * ROW, 16), (1, ROW, MATRIX)))
    return Layout((32, (32, matrices)), (32, (1, MATRIX)))


OPERATIONS = tuple(
    CopyOperation(
        f"{mnemonic}.x{n}{'.trans' if trans else ''}",
        _rows(n) if mnemonic == "ldmatrix" else _registers(n, trans),
        _registers(n, trans) if mnemonic == "ldmatrix" else _rows(n),
        "dst" if mnemonic == "ldmatrix" else "src",
        spaces=(SHARED, REGISTERS) if mnemonic == "ldmatrix" else (REGISTERS, SHARED),
        row_bytes=16,
        collective=True,
    )
    for mnemonic in ("ldmatrix", "stmatrix")
    for trans in (False, True)
    for n in (1, 2, 4)
)
