"""Arithmetic of `mma.sync`, by GPU generation: chains of fused sums (see `numerics`).

If the K of an instruction exceeds the length of one fused sum, the instruction is a chain of fused
sums, lowest k first; each adds to the rounded result of the previous sum. The window, the length
and the exponent of zeros of each generation are from public bit-level studies (MMA-Sim, arXiv
2511.10909; Khattak and Mikaitis, arXiv 2512.07004); the values for Hopper match an H200 bit for bit
(test/hopper/mma_sync). Integer types are exact.

Hopper and sm_100 have no fp8 mma.sync in hardware: ptxas converts the operands to f16 and emits two
f16 instructions, see `_through_f16`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import NotModelled
from tcir.machine.numerics.exact_f32 import exact_products
from tcir.machine.numerics.formats import ELEMENT_BITS, INTEGERS, decode
from tcir.machine.numerics.fused import NAN, FusedParams, fused_mma, integer_mma
from tcir.machine.numerics.types import MmaTypes


@dataclass(frozen=True)
class Generation:
    """Constants of the arithmetic of one GPU generation.

    window: bits that are kept below the largest exponent
    operand_bytes: bytes of a row of A that enter one fused sum
    zeros: raw exponent of a zero product or accumulator, for an f32 D and for an f16 D
    fp8: "f16" if ptxas emulates fp8 with f16 instructions, None if the arithmetic is not known
    """

    name: str
    window: int
    operand_bytes: int
    zeros: tuple[int, int]
    fp8: str | None = None

    def params(self, d_type: str) -> FusedParams:
        """Returns the constants of one fused sum."""
        return FusedParams(self.window, self.zeros[d_type == "f16"])


VOLTA = Generation("Volta", 23, 8, (-131, -19))
TURING = Generation("Turing", 24, 16, (-132, -20))
AMPERE = Generation("Ampere", 24, 16, (-132, -20))
ADA = Generation("Ada", 24, 16, (-132, -20))
HOPPER = Generation("Hopper", 25, 32, (-133, -21), fp8="f16")
BLACKWELL = Generation("Blackwell", 25, 32, (-133, -21), fp8="f16")
_BY_SM = ((100, BLACKWELL), (90, HOPPER), (89, ADA), (80, AMPERE), (75, TURING), (70, VOLTA))


def generation(target: str) -> Generation:
    """The constants for a PTX target such as "sm_100a"; raises NotModelled if the target is unknown
    or older.
    """
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

    `a` codes [M, K], `b` codes [N, K]; `c` and the result are uint32 [M, N] (f16 is in the low
    half). Operands of f16, bf16 and tf32 may have a leading axis of instructions. `d_type` is
    "f32", "f16", or "s32" for integers, which `saturate` clamps.
    """
    if a_type in INTEGERS:
        return integer_mma(a, b, c, a_type=a_type, b_type=b_type, saturate=saturate)
    bits = 32 if a_type == "tf32" else ELEMENT_BITS[a_type]
    if bits == 8:
        if part.fp8 is None:
            raise NotModelled(f"fp8 mma.sync of {part.name}, whose sums keep 13 fraction bits")
        return _through_f16(a, b, c, a_type=a_type, b_type=b_type, d_type=d_type, part=part)
    length = 8 * part.operand_bytes // bits
    params, types = part.params(d_type), MmaTypes(a_type, b_type, d_type)
    exact = exact_products(a, b, c, types, params)
    if exact is not None:
        return exact
    for k in range(0, a.shape[-1], length):
        span = slice(k, k + length)
        c = fused_mma(
            np.ascontiguousarray(a[..., span]),
            np.ascontiguousarray(b[..., span]),
            c,
            types,
            params=params,
        )
    return c


def _through_f16(
    a: NDArray[Any],
    b: NDArray[Any],
    c: NDArray[np.uint32],
    *,
    a_type: str,
    b_type: str,
    d_type: str,
    part: Generation,
) -> NDArray[np.uint32]:
    """fp8 as ptxas emits it for sm_90 and sm_100a (F2FP.UNPACK_B, two HMMA, FADD or HADD2).

    The lower two bytes of each register form the first sum, which starts from zero, the upper two
    the second, which accumulates onto it; C is added last, rounded to nearest in D's type.
    """
    lower = np.arange(a.shape[1]) % 4 < 2
    params = part.params(d_type)
    total = np.zeros(c.shape, np.uint32)
    for half in (lower, ~lower):
        total = fused_mma(
            _f16_codes(a[:, half], a_type),
            _f16_codes(b[:, half], b_type),
            total,
            MmaTypes("f16", "f16", d_type),
            params=params,
        )
    word, real = (np.uint16, np.float16) if d_type == "f16" else (np.uint32, np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        # Exact in float64, or rounded so far below D's last bit that rounding again changes nothing
        wide = [x.astype(word).view(real).astype(np.float64) for x in (total, c)]
        added = (wide[0] + wide[1]).astype(real)
    codes = added.view(word).astype(np.uint32)
    codes[np.isnan(added)] = NAN[d_type]
    return codes


def _f16_codes(codes: NDArray[Any], name: str) -> NDArray[np.uint16]:
    """fp8 codes as f16, which represents all of their values."""
    return decode(codes, name)[0].astype(np.float16).view(np.uint16)
