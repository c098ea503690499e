"""Epilogues of matrix products that several pipelines compile."""

from __future__ import annotations

from typing import Any

from .epilogue_text import KEEP, SILU_OF_SUMS, TRUNCATE, Fused, gelu_of_sums

BIAS_RELU = Fused(
    """
    %z = arith.constant 0.0 : f32
    %u = arith.addf %s, %b : f32
    %t = arith.maximumf %u, %z : f32
    """
    + TRUNCATE,
    {"b": ("f32", "n")},
    m=136,
    n=40,
    k=40,
)
SMALL: dict[str, Any] = {"m": 40, "n": 24, "k": 16}
CASES = {
    "bias, relu": BIAS_RELU,
    "initial accumulator": Fused("%t = arith.negf %s : f32" + TRUNCATE, start=True, **SMALL),
    "alpha, beta, residual of f16, row bias": Fused(
        """
        %e = arith.extf %r : f16 to f32
        %x = arith.mulf %s, %al : f32
        %y = arith.mulf %e, %be : f32
        %u = arith.addf %x, %y : f32
        %t = arith.addf %u, %rb : f32
        """ + TRUNCATE,
        {"r": ("f16", "mn"), "al": ("f32", ""), "be": ("f32", ""), "rb": ("f32", "m")},
        **SMALL,
    ),
    "residual, transposed": Fused(
        "%t = arith.addf %s, %r : f32\n linalg.yield %t : f32",
        {"r": ("f32", "nm")}, out="f32", **SMALL,
    ),
    "batch": Fused(
        "%t = arith.addf %s, %r : f32\n linalg.yield %t : f32",
        {"r": ("f32", "bn")}, out="f32", batch=2, **SMALL,
    ),
    "in f16, as torch has it": Fused(
        """
        %h = arith.truncf %s : f32 to f16
        %z = arith.constant 0.0 : f16
        %u = arith.addf %h, %b : f16
        %p = arith.cmpf ugt, %u, %z : f16
        %t = arith.select %p, %u, %z : f16
        linalg.yield %t : f16
        """,
        {"b": ("f16", "n")}, **SMALL,
    ),
    "quotients of f16": Fused(
        """
        %h = arith.truncf %s : f32 to f16
        %t = arith.divf %h, %b : f16
        linalg.yield %t : f16
        """,
        {"b": ("f16", "n")}, **SMALL,
    ),
    "quotients of bf16, of roots": Fused(
        """
        %x = math.absf %s : f32
        %y = math.sqrt %x : f32
        %h = arith.truncf %y : f32 to bf16
        %t = arith.divf %b, %h : bf16
        linalg.yield %t : bf16
        """,
        {"b": ("bf16", "m")}, out="bf16", **SMALL,
    ),
    "rounded to whole numbers": Fused(
        """
        %k = arith.constant 0.01171875 : f32
        %x = arith.mulf %s, %k : f32
        %y = math.roundeven %x : f32
        %t = arith.fptosi %y : f32 to i32
        linalg.yield %t : i32
        """,
        out="i32", **SMALL,
    ),
    "int8, quantised again": Fused(
        """
        %f = arith.sitofp %s : i32 to f32
        %x = arith.mulf %f, %k : f32
        %y = math.roundeven %x : f32
        %low = arith.constant -128.0 : f32
        %high = arith.constant 127.0 : f32
        %v = arith.maximumf %y, %low : f32
        %u = arith.minimumf %v, %high : f32
        %t = arith.fptosi %u : f32 to i8
        linalg.yield %t : i8
        """,
        {"k": ("f32", "n")},
        element="i8", sums="i32", out="i8", m=40, n=32, k=32,
    ),
    "int8, quantised again; rows of 17 bytes": Fused(
        """
        %three = arith.constant 3 : i32
        %x = arith.shrsi %s, %three : i32
        %t = arith.trunci %x : i32 to i8
        linalg.yield %t : i8
        """,
        element="i8", sums="i32", out="i8", m=40, n=17, k=32,
    ),
    "int8, dequantised by row and column": Fused(
        """
        %x = arith.sitofp %s : i32 to f32
        %y = arith.mulf %x, %rows : f32
        %t = arith.mulf %y, %columns : f32
        """ + TRUNCATE,
        {"rows": ("f32", "m"), "columns": ("f32", "n")},
        element="i8", sums="i32", m=40, n=32, k=32,
    ),
    "f8E4M3FN, clamped: one instruction": Fused(
        """
        %u = arith.addf %s, %b : f32
        %hi = arith.constant 448.0 : f32
        %lo = arith.constant -448.0 : f32
        %v = arith.minimumf %u, %hi : f32
        %t = arith.maximumf %v, %lo : f32
        %h = arith.truncf %t : f32 to f8E4M3FN
        linalg.yield %h : f8E4M3FN
        """,
        {"b": ("f32", "n")}, out="f8E4M3FN", m=40, n=32, k=16,
    ),
    "f8E4M3FN, NaN beyond 464; rows of 17 bytes": Fused(
        "%h = arith.truncf %s : f32 to f8E4M3FN\n linalg.yield %h : f8E4M3FN",
        out="f8E4M3FN", m=40, n=17, k=16,
    ),
    "f8E5M2, by way of f16, and back": Fused(
        """
        %r = arith.truncf %s : f32 to f8E5M2
        %back = arith.extf %r : f8E5M2 to f32
        %x = arith.subf %s, %back : f32
        %g = arith.truncf %x : f32 to f16
        %h = arith.truncf %g : f16 to f8E5M2
        linalg.yield %h : f8E5M2
        """,
        out="f8E5M2", m=40, n=24, k=16,
    ),
    "f8E4M3FN of a residual of f8E5M2, NaN beyond 464": Fused(
        """
        %wide = arith.extf %r : f8E5M2 to f32
        %u = arith.addf %s, %wide : f32
        %h = arith.truncf %u : f32 to f8E4M3FN
        linalg.yield %h : f8E4M3FN
        """,
        {"r": ("f8E5M2", "mn")}, out="f8E4M3FN", m=40, n=24, k=16,
    ),
    "scales of fp8 by row, odd columns of fp8": Fused(
        """
        %x = arith.extf %rs : f8E4M3FN to f32
        %y = arith.extf %r : f8E4M3FN to f16
        %z = arith.extf %y : f16 to f32
        %u = arith.mulf %s, %x : f32
        %t = arith.addf %u, %z : f32
        """ + TRUNCATE,
        {"rs": ("f8E4M3FN", "m"), "r": ("f8E4M3FN", "nm")}, m=40, n=17, k=16,
    ),
    "clamp in bf16": Fused(
        """
        %h = arith.truncf %s : f32 to bf16
        %lo = arith.constant -1.0 : bf16
        %hi = arith.constant 6.0 : bf16
        %u = arith.maximumf %h, %lo : bf16
        %t = arith.minimumf %u, %hi : bf16
        linalg.yield %t : bf16
        """,
        element="bf16", out="bf16", **SMALL,
    ),
}  # fmt: skip


SILU = Fused(SILU_OF_SUMS + KEEP, out="f32", **SMALL)


LOGARITHMS = Fused(
    """
    %x = math.absf %s : f32
    %y = math.log1p %x : f32
    %two = arith.constant 2.5 : f32
    %z = math.powf %y, %two : f32
    %r = math.rsqrt %z : f32
    %t = math.fma %r, %s, %y : f32
    """
    + KEEP,
    out="f32",
    **SMALL,
)
QUOTIENTS = Fused(
    "%h = math.tanh %s : f32\n %t = arith.divf %s, %h : f32" + KEEP, out="f32", **SMALL
)
"""Quotients: NaN for zeros; 1 for small sums, for which tanh must be accurate relative to its
argument."""


def gelu(inner: str) -> Fused:
    """gelu of the sums, by erf or tanh."""
    return Fused(gelu_of_sums(inner) + TRUNCATE, **SMALL)
