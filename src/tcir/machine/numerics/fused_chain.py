"""Consecutive ``tcgen05.mma`` that add to one accumulator, for several CTAs at once. Each mma is a
fused sum (`fused`), which is rounded before the next one is added.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcir.machine.jit import jit
from tcir.machine.numerics.formats import FLOATS, NO_EXPONENT, decode_table
from tcir.machine.numerics.fused import FusedParams, fused_sums, round_f32
from tcir.machine.numerics.types import ProductTypes

Codes = NDArray[np.unsignedinteger]


def add_in_steps(
    a: Codes,
    b: Codes,
    words: NDArray[np.uint32],
    lanes: NDArray[np.int64],
    column: int,
    types: ProductTypes,
    params: FusedParams,
    adds: bool,
) -> bool:
    """D = A · Bᵀ (+ D) for codes A [CTAs, M, steps, K] and B [CTAs or 1, N, steps, K], with an f32
    D in tensor memory and one rounding per step.

    words: tensor memory [CTAs, lanes, columns]; row m of D is in ``lanes[m]``, and its columns
        begin at `column`. Returns False, and changes nothing, for formats whose codes are narrower
        than their words.
    """
    for codes, name in ((a, types.a_type), (b, types.b_type)):
        if 8 * codes.itemsize != FLOATS[name].bits or codes.itemsize > 2:
            return False
    if not words.flags.c_contiguous:
        return False
    sign = -1 if types.negate_a != types.negate_b else 1
    zero = NO_EXPONENT if params.zero_exponent is None else params.zero_exponent
    _add_in_steps(
        np.ascontiguousarray(a),
        np.ascontiguousarray(b),
        words,
        lanes,
        (column, int(adds), sign),
        *decode_table(types.a_type),
        *decode_table(types.b_type),
        (FLOATS["f32"].smallest_exponent, params.window, zero),
    )
    return True


@jit
def _decode(
    codes: NDArray[np.unsignedinteger],
    table: NDArray[np.float64],
    exponents: NDArray[np.int32],
    sign: int,
    by_row: bool,
    values: NDArray[np.float64],
    raw: NDArray[np.int32],
) -> None:
    """Values and raw exponents of codes [rows, steps, K], written as [steps, rows, K] if `by_row`,
    else as [steps, K, rows]."""
    rows, steps, depth = codes.shape
    for m in range(rows):
        for s in range(steps):
            for k in range(depth):
                code = codes[m, s, k]
                y, x = (m, k) if by_row else (k, m)
                values[s, y, x], raw[s, y, x] = sign * table[code], exponents[code]


@jit
def _add_in_steps(
    a: NDArray[np.unsignedinteger],
    b: NDArray[np.unsignedinteger],
    words: NDArray[np.uint32],
    lanes: NDArray[np.int64],
    form: tuple[int, int, int],
    a_table: NDArray[np.float64],
    a_exponents: NDArray[np.int32],
    b_table: NDArray[np.float64],
    b_exponents: NDArray[np.int32],
    limits: tuple[int, int, int],
) -> None:
    """Computes `add_in_steps`. The inner loops run over M, which is 64 or 128: D is transposed.

    form: column, whether D is added, sign of A. limits: raw exponent of D's subnormals, window, raw
    exponent of zeros.
    """
    column, adds, sign = form
    smallest, window, zero = limits
    ctas, rows, steps, depth = a.shape
    columns = b.shape[1]
    av, ax = np.empty((steps, depth, rows), np.float64), np.empty((steps, depth, rows), np.int32)
    bv = np.empty((steps, columns, depth), np.float64)
    bx = np.empty((steps, columns, depth), np.int32)
    d, total = np.empty((columns, rows), np.float32), np.empty((columns, rows), np.float64)
    codes = d.view(np.uint32)
    select = np.empty((columns, depth), np.int32)
    for k in range(depth):
        select[:, k] = k
    for c in range(ctas):
        _decode(a[c], a_table, a_exponents, sign, False, av, ax)
        if c < len(b):
            _decode(b[c], b_table, b_exponents, 1, True, bv, bx)
        for m in range(rows):
            for n in range(columns):
                codes[n, m] = words[c, lanes[m], column + n]
        for s in range(steps):
            d_in = d if adds or s else d[:0]
            fused_sums(bv[s], bx[s], av[s], ax[s], select, d_in, smallest, 0, window, zero, total)
            round_f32(total, codes)
        for m in range(rows):
            for n in range(columns):
                words[c, lanes[m], column + n] = codes[n, m]
