"""Converts floats to block-scaled numbers and back.

All arithmetic is exact up to one rounding per result. The reason is that the quotient of a float32
input and a scale either is exactly in the middle of two codes (a tie), or differs from every tie by
more than 2^-31 of its size. Therefore the quotient computed in float64 is rounded to the same code
as the exact quotient.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike, NDArray

from .block import BlockFormat, block_format
from .elements import Codes, check_codes, encode, table
from .errors import FormatError
from .scales import (
    SCALE_NAN,
    SMALLEST_UE4M3,
    decode_scale,
    encode_ue4m3,
    ue8m0_of_amax,
)

CHUNK = 1 << 16
"""Elements per step: their float64 temporaries fit in a level-2 cache."""

LARGEST_SCALE = 448.0
SMALLEST_NORMAL = np.finfo(np.float32).smallest_normal
INPUTS: tuple[type, ...] = (np.float16, ml_dtypes.bfloat16, np.float32)


@dataclass(frozen=True, eq=False)
class BlockScaled:
    """Block-scaled numbers: ``x[..., k] ≈ element(codes[..., k]) · scale(scales[..., k // block]) ·
    global_scale``.

    codes: uint8 [..., K], one element per byte (see `pack`). scales: uint8 [..., ceil(K / block)],
        row-major (see `to_blocked`). global_scale: float32 > 0; 1 if the format has no global
        scale.
    """

    format: BlockFormat
    codes: Codes
    scales: Codes
    global_scale: np.float32 = np.float32(1)  # noqa: RUF009 (a NumPy scalar is immutable)

    def __post_init__(self) -> None:
        check_codes(self.codes, self.format.elements.bits, self.format.element)
        check_codes(self.scales, 8, self.format.scale)
        if self.codes.ndim == 0:
            raise FormatError("shape of codes", "()", "[..., K]", "blocks lie along the last axis")
        expected = (*self.codes.shape[:-1], self.format.scales_of(self.codes.shape[-1]))
        if self.scales.shape != expected:
            raise FormatError(
                "shape of scales",
                self.scales.shape,
                str(expected),
                f"one per {self.format.block} elements of codes {self.codes.shape}, row-major "
                "(from_blocked undoes the 128 x 4 layout)",
            )
        object.__setattr__(self, "global_scale", _global_scale(self.global_scale, self.format))

    def dequantise(self, dtype: DTypeLike = np.float32) -> NDArray[Any]:
        """Decodes to numbers; see the function `dequantise`."""
        return dequantise(self, dtype)


def quantise(
    x: NDArray[Any],
    format: str | BlockFormat,
    *,
    global_scale: float | np.float32 | None = None,
    rounding: str = "floor",
    nonfinite: Literal["nan", "error"] = "nan",
) -> BlockScaled:
    """Quantises along the last axis, with one scale per block; elements are divided by the
    *rounded* scale.

    x:            float16, bfloat16 or float32 [..., K], any K; a short last block has its own scale
    global_scale: NVFP4 only; None: the result of `nvfp4_global_scale`
    rounding:     rounding of ue8m0 scales, see `ue8m0_of_amax`. ue4m3 scales are amax / (6 g),
                  where g is the global scale, rounded to nearest even
    nonfinite:    "nan": a block with a NaN or an infinity gets a NaN scale and codes 0, so that all
                  of it decodes to NaN; "error": raises FormatError with the first position

    A block of zeros has the scale code 0x00 and codes 0 with the signs of its zeros. An NVFP4 block
    with a non-zero element has at least the scale 2^-9 (0x01), because a scale rounded to 0 would
    lose the element.
    """
    f = block_format(format)
    x = _input(x)
    if nonfinite not in ("nan", "error"):
        raise FormatError("nonfinite", repr(nonfinite), "'nan' or 'error'", "blocks cannot hold it")
    if rounding != "floor" and f.scale != "ue8m0":
        raise FormatError("rounding", repr(rounding), "'floor'", f"{f.scale} scales round to even")
    if nonfinite == "error":
        _check_finite(x)
    if f.has_global_scale and global_scale is None:
        global_scale = nvfp4_global_scale(x)
    g = _global_scale(1.0 if global_scale is None else global_scale, f)

    k, blocks = x.shape[-1], f.scales_of(x.shape[-1])
    rows = x.reshape(-1, k) if x.size else np.empty((0, k), x.dtype)
    codes = np.empty(x.shape, np.uint8)
    scales = np.empty((*x.shape[:-1], blocks), np.uint8)
    flat_codes, flat_scales = codes.reshape(len(rows), k), scales.reshape(len(rows), blocks)
    for r, b in _chunks(len(rows), blocks, f.block):
        span = slice(b.start * f.block, min(b.stop * f.block, k))
        part = np.zeros((r.stop - r.start, (b.stop - b.start) * f.block))
        part[:, : span.stop - span.start] = rows[r, span]
        part_codes, part_scales = _quantise(part.reshape(-1, f.block), f, float(g), rounding)
        flat_codes[r, span] = part_codes.reshape(part.shape)[:, : span.stop - span.start]
        flat_scales[r, b] = part_scales.reshape(len(part), -1)
    return BlockScaled(f, codes, scales, g)


def _quantise(
    blocks: NDArray[np.float64], f: BlockFormat, g: float, rounding: str
) -> tuple[Codes, Codes]:
    amax = np.abs(blocks).max(axis=1)  # NaN if there is one
    bad = ~np.isfinite(amax)
    if f.scale == "ue4m3":
        scales = encode_ue4m3(np.where(bad, 0, amax) / (f.elements.largest * g))
        scales[(scales == 0) & (amax > 0)] = SMALLEST_UE4M3
        scales[bad] = SCALE_NAN["ue4m3"]
    else:
        scales = ue8m0_of_amax(amax, f.elements, rounding)
    blocks[bad] = 0
    step = decode_scale(scales, f.scale).astype(np.float64) * g
    step[bad | (amax == 0)] = 1  # these blocks hold zeros only
    return encode(blocks / step[:, None], f.element), scales


def dequantise(q: BlockScaled, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Decodes `q`: element · scale · global scale.

    dtype: float64 (exact) or float32 (rounded once; a number beyond its range becomes infinity, as
        in IEEE 754). A NaN scale makes its whole block NaN, zeros included.
    """
    target = np.dtype(dtype)
    if target not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise FormatError("dtype", target, "float32 or float64", "round further with astype")
    k, block = q.codes.shape[-1], q.format.block
    result = np.empty(q.codes.shape, target)
    if not result.size:
        return result
    codes, out = q.codes.reshape(-1, k), result.reshape(-1, k)
    scales = q.scales.reshape(len(codes), -1)
    values = table(q.format.element).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        for r, b in _chunks(len(codes), scales.shape[1], block):
            span = slice(b.start * block, min(b.stop * block, k))
            step = decode_scale(scales[r, b], q.format.scale).astype(np.float64) * q.global_scale
            step = np.repeat(step, block, axis=1)[:, : span.stop - span.start]
            out[r, span] = values.take(codes[r, span]) * step
    return result


def nvfp4_global_scale(x: NDArray[Any]) -> np.float32:
    """Returns amax / (448 · 6) in float32, the global scale for which the largest block scale is
    448.

    amax is the maximum magnitude of the finite numbers of x. The result is 1 if all of them are
    zero. It is at least 2^-126, because hardware that flushes subnormals would read a smaller
    number as 0. (For the largest float32, the product 6 · 448 · g with the global scale g is
    finite.)
    """
    x = _input(x)
    amax = np.float64(0)
    flat = x.reshape(-1)
    for start in range(0, flat.size, CHUNK):
        part = np.abs(flat[start : start + CHUNK].astype(np.float32))
        amax = max(amax, np.float64(part.max(where=np.isfinite(part), initial=0)))
    if amax == 0:
        return np.float32(1)
    return np.float32(max(amax / (6 * LARGEST_SCALE), float(SMALLEST_NORMAL)))


def alpha(a: BlockScaled, b: BlockScaled) -> np.float32:
    """The product gA · gB of the global scales of `a` and `b`, by which a contraction of their
    codes and block scales must be multiplied.

    Raises FormatError if the product is not a normal float32, because the result would be zero or
    infinite.
    """
    product = np.float64(a.global_scale) * np.float64(b.global_scale)
    if not SMALLEST_NORMAL <= product <= np.finfo(np.float32).max:
        raise FormatError(
            "alpha = gA · gB",
            f"{a.global_scale} · {b.global_scale} = {product}",
            "a normal float32",
            "scale the operands before quantising",
        )
    return np.float32(product)


def _input(x: NDArray[Any]) -> NDArray[Any]:
    if not isinstance(x, np.ndarray) or x.dtype not in INPUTS:
        got = getattr(x, "dtype", type(x).__name__)
        raise FormatError(
            "input",
            got,
            "an array of float16, bfloat16 or float32",
            "more bits would be rounded twice; convert first: x.astype(numpy.float32)",
        )
    if x.ndim == 0:
        raise FormatError("shape of the input", "()", "[..., K]", "blocks lie along the last axis")
    return x


def _check_finite(x: NDArray[Any]) -> None:
    bad = ~np.isfinite(x)
    if bad.any():
        first = np.unravel_index(int(bad.argmax()), x.shape)
        raise FormatError(
            f"x[{', '.join(map(str, first))}]",
            x[first],
            "finite numbers",
            "its whole block would read as NaN; nonfinite='nan' allows that",
        )


def _global_scale(value: Any, f: BlockFormat) -> np.float32:
    with np.errstate(over="ignore"):  # rejected below
        g = np.float32(value)
    if not (np.isfinite(g) and g > 0):
        raise FormatError(
            "global scale", value, "a finite float32 above 0", "every element is divided by it"
        )
    if g != 1 and not f.has_global_scale:
        raise FormatError(
            "global scale",
            value,
            f"1 with {f.scale} scales",
            "MX formats have block scales only (OCP MX 1.0)",
        )
    return g


def _chunks(rows: int, blocks: int, block: int) -> Iterator[tuple[slice, slice]]:
    """Ranges of rows and of blocks that cover rows x blocks, at most about CHUNK elements each."""
    across = max(1, min(blocks, CHUNK // block))
    down = max(1, CHUNK // (across * block))
    for row in range(0, rows, down):
        for b in range(0, blocks, across):
            yield slice(row, min(row + down, rows)), slice(b, min(b + across, blocks))
