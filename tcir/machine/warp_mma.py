"""Arithmetic of `mma.sync` by GPU generation: chains of fused sums (see `numerics`).

An instruction whose K is longer than what one fused sum takes is a chain of them, the later ones
adding to the rounded result of the earlier ones, lowest k first. Window and length per generation
are those that the public bit-level studies found (MMA-Sim, arXiv 2511.10909; Khattak and Mikaitis,
arXiv 2512.07004). Integer types are exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import NotModelled
from tcir.machine.formats_decode import ELEMENT_BITS, INTEGERS
from tcir.machine.numerics import FusedParams, fused_mma, integer_mma


@dataclass(frozen=True)
class Generation:
    """window: bits kept below the largest exponent; operand_bytes: of a row of A in one sum."""

    name: str
    window: int
    operand_bytes: int


VOLTA = Generation("Volta", 23, 8)
TURING = Generation("Turing", 24, 16)
AMPERE = Generation("Ampere", 24, 16)
ADA = Generation("Ada", 24, 16)
HOPPER = Generation("Hopper", 25, 32)
BLACKWELL = Generation("Blackwell", 25, 32)
_BY_SM = ((100, BLACKWELL), (90, HOPPER), (89, ADA), (80, AMPERE), (75, TURING), (70, VOLTA))


def generation(target: str) -> Generation:
    """The generation of a PTX target such as "sm_100a". Unknown or older ones: NotModelled."""
    found = re.match(r"sm_(\d+)", target)
    number = int(found[1]) if found else 0
    for lowest, part in _BY_SM:
        if number >= lowest:
            return part
    raise NotModelled(f"mma.sync of target {target}")


def warp_mma(
    a: NDArray[Any],
    b: NDArray[Any],
    c: NDArray[np.uint32],
    *,
    a_type: str,
    b_type: str,
    d_type: str,
    part: Generation,
    saturate: bool = False,
) -> NDArray[np.uint32]:
    """D = A · Bᵀ + C of one instruction.

    `a` codes [M, K], `b` codes [N, K], `c` and the result uint32 [M, N] (f16: in the low half).
    `d_type` "f32", "f16", or "s32" for integers; `saturate` clamps those.
    """
    if a_type in INTEGERS:
        return integer_mma(a, b, c, a_type=a_type, b_type=b_type, saturate=saturate)
    bits = 32 if a_type == "tf32" else ELEMENT_BITS[a_type]
    if bits == 8 and part is ADA:
        raise NotModelled("fp8 mma.sync of sm_89, whose sums keep 13 fraction bits")
    length = 8 * part.operand_bytes // bits
    params = FusedParams(window=part.window)
    for k in range(0, a.shape[1], length):
        span = slice(k, k + length)
        c = fused_mma(
            np.ascontiguousarray(a[:, span]),
            np.ascontiguousarray(b[:, span]),
            c,
            a_type=a_type,
            b_type=b_type,
            d_type=d_type,
            params=params,
        )
    return c
