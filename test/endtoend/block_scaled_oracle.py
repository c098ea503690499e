"""Block-scaled contractions in plain numpy and ml_dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .block_scaled_text import UE4M3, BlockScaled

DTYPES: dict[str, Any] = {
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
}


def inputs_of(case: BlockScaled, seed: int = 0, largest: int = 3) -> dict[str, np.ndarray]:
    """Elements and scales by name, small enough for sums that are exact in f32."""
    rng = np.random.default_rng(seed)
    outer = [case.batch] if case.batch else []
    found = {}
    for name, rows, of in (("a", case.m, case.a), ("b", case.n, case.b)):
        shape = [*outer, *([rows] if rows is not None else [])]
        values = rng.integers(-largest, largest + 1, [*shape, case.k])
        found[name] = values.astype(np.float32).astype(DTYPES[of])
        scales = [*shape, case.k // case.block]
        ue4m3 = case.scale == UE4M3
        raw = rng.integers(1, 5, scales) if ue4m3 else 2.0 ** rng.integers(-2, 3, scales)
        found[f"s{name}"] = raw.astype(np.float32).astype(DTYPES[case.scale])
    if case.alpha != "no":
        found |= {"ga": np.array(0.5, np.float32), "gb": np.array(4.0, np.float32)}
    return found


def product(
    case: BlockScaled, a: Any, sa: Any, b: Any, sb: Any, ga: Any = None, gb: Any = None
) -> np.ndarray:
    """The contraction, exact up to one rounding to f32 and one to the output's type."""
    wide = [
        x.astype(np.float64) * s.astype(np.float64).repeat(case.block, -1)
        for x, s in ((a, sa), (b, sb))
    ]
    total = np.einsum("...mk,...nk->...mn" if case.n else "...mk,...k->...m", *wide)
    total = total.astype(np.float32)
    if ga is not None:
        total = total * (ga * gb)
    return total.astype(DTYPES[case.out])


def in_blocks(scales: np.ndarray, vector: bool = False) -> np.ndarray:
    """Row-major scales in the 128x4 layout, element by element; padding is NaN: it is not read."""
    if vector:
        scales = scales[..., None, :]
    *batch, rows, count = scales.shape
    image = np.full((*batch, -(-rows // 128), -(-count // 4), 512), 0xFF, np.uint8)
    for row in range(rows):
        for n in range(count):
            place = row % 32 * 16 + row % 128 // 32 * 4 + n % 4
            image[..., row // 128, n // 4, place] = scales.view(np.uint8)[..., row, n]
    return image.view(scales.dtype)


def as_passed(case: BlockScaled, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Inputs by name, scales in the layout in which the program of `case` takes them."""
    found = dict(arrays)
    for side, rows in (("a", case.m), ("b", case.n)):
        if side in case.blocked:
            found[f"s{side}"] = in_blocks(found[f"s{side}"], rows is None)
    return found
