"""Error of attention by the format of queries and keys, against float64 of the inputs before they
are rounded: a Markdown table.

    python bench/attention_formats.py

Scores and sums are those of float64; inputs and exponentials are rounded as kernels round them, so
that differences between formats are those of the formats. Needs NumPy and ml_dtypes. A minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tcir import formats

Array = np.ndarray[Any, Any]
Round = Callable[[Array], Array]
HEADS, ROWS, KEYS = 4, 128, 2048
F16, E4M3 = np.float16, ml_dtypes.float8_e4m3fn
LIFT = 2.0**8
"""Largest exponential of e4m3."""


def gaussian(draw: np.random.Generator, d: int) -> tuple[Array, Array, Array]:
    """Standard normal queries, keys and values."""
    q, k, v = (draw.standard_normal((HEADS, n, d)) for n in (ROWS, KEYS, KEYS))
    return q, k, v


def channels(draw: np.random.Generator, d: int) -> tuple[Array, Array, Array]:
    """The same with 16 added to two elements of every key, which changes no result."""
    q, k, v = gaussian(draw, d)
    k[..., draw.choice(d, 2, replace=False)] += 16
    return q, k, v


def elements(draw: np.random.Generator, d: int) -> tuple[Array, Array, Array]:
    """Queries, keys and values one in 64 of whose elements is 8 times as large."""
    found = gaussian(draw, d)
    q, k, v = (x * np.where(draw.random(x.shape) < 1 / 64, 8.0, 1.0) for x in found)
    return q, k, v


DRAWS: dict[str, Callable[[np.random.Generator, int], tuple[Array, Array, Array]]] = {
    "Gaussian": gaussian,
    "two channels of keys + 16": channels,
    "one element in 64 x 8": elements,
}


def rounded(x: Array, dtype: Any) -> Array:
    return x.astype(np.float32).astype(dtype).astype(np.float64)


def one_factor(x: Array) -> Array:
    """In e4m3, with a factor for the whole tensor that makes 448 the largest element."""
    factor = np.abs(x).max() / 448
    return rounded(x / factor, E4M3) * factor


def scaled(kind: str, rounding: str = "floor") -> Round:
    """Elements times their block scales."""

    def of(x: Array) -> Array:
        found = formats.quantise(x.astype(np.float32), kind, rounding=rounding)
        return found.dequantise(np.float64)

    return of


def centred(x: Array) -> Array:
    """NVFP4 of keys less their mean, with which no row's weights change."""
    return scaled("nvfp4")(x - x.mean(-2, keepdims=True))


def f16(x: Array) -> Array:
    return rounded(x, F16)


FORMATS: dict[str, tuple[Round, Round, Round, Any]] = {
    "f16": (f16, f16, f16, F16),
    "e4m3, a factor each": (one_factor, one_factor, f16, F16),
    "e4m3, a factor each, also V and P": (one_factor, one_factor, one_factor, E4M3),
    "MXFP8 (e4m3)": (scaled("mxfp8_e4m3"), scaled("mxfp8_e4m3"), f16, F16),
    'MXFP8, `rounding="ceil"`': (*[scaled("mxfp8_e4m3", "ceil")] * 2, f16, F16),
    "NVFP4": (scaled("nvfp4"), scaled("nvfp4"), f16, F16),
    "NVFP4, keys less their mean": (scaled("nvfp4"), centred, f16, F16),
    "MXFP4": (scaled("mxfp4"), scaled("mxfp4"), f16, F16),
}
"""What rounds queries, keys and values, and the type of exponentials."""


def attention(q: Array, k: Array, v: Array, powers: Any = None) -> Array:
    """Attention in float64, whose exponentials are rounded to `powers` before they are multiplied
    by values."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    p = np.exp(scores - scores.max(-1, keepdims=True))
    lift = LIFT if powers is E4M3 else 1.0
    weights = p if powers is None else rounded(p * lift, powers) / lift
    return weights @ v / p.sum(-1, keepdims=True)


def errors(draw: str, d: int) -> dict[str, tuple[float, float]]:
    """By the format: largest error and root mean square error, parts of the root mean square of
    the results."""
    q, k, v = DRAWS[draw](np.random.default_rng(0), d)
    want = attention(q, k, v)
    size = np.sqrt((want**2).mean())
    found = {}
    for name, (of_q, of_k, of_v, powers) in FORMATS.items():
        out = attention(of_q(q), of_k(k), of_v(v), powers)
        error = out - want
        found[name] = (np.abs(error).max() / size, np.sqrt((error**2).mean()) / size)
    return found


def main() -> int:
    """Prints the table."""
    cases = [(draw, d) for draw in DRAWS for d in (64, 128)]
    print("| queries and keys | " + " | ".join(f"{draw}, {d}" for draw, d in cases) + " |")
    print("|---|" + "---|" * len(cases))
    columns = [errors(*case) for case in cases]
    for name in FORMATS:
        cells = (f"{column[name][0]:.1%} / {column[name][1]:.2%}" for column in columns)
        print(f"| {name} | " + " | ".join(cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
