"""Float weights to NVFP4, back, and a matrix-vector product with them, against float32.

    python examples/nvfp4_quantise.py

Shows the arrays that a block-scaled kernel reads: packed elements, block scales in 128 x 4 blocks,
one global scale per operand. The product here is NumPy's.
"""

from __future__ import annotations

import numpy as np

from tcir import formats

M, K = 1024, 4096


def main() -> None:
    """Quantises a weight matrix and a vector, prints sizes and errors."""
    random = np.random.default_rng(2026)
    weights = random.normal(0, 0.02, (M, K)).astype(np.float32)
    vector = random.normal(0, 1, K).astype(np.float32)

    a, b = formats.quantise(weights, "nvfp4"), formats.quantise(vector, "nvfp4")
    packed, blocked = formats.pack(a.codes, 4), formats.to_blocked(a.scales)
    size = packed.nbytes + blocked.nbytes + a.global_scale.nbytes
    print(f"weights {M} x {K}: {weights.nbytes} bytes of float32, {size} of NVFP4")
    print(f"  elements {packed.shape}, scales {blocked.shape}, global scale {a.global_scale:.4g}")

    # What a kernel is given, taken apart again: nothing of `a` itself is used from here on.
    stored = formats.BlockScaled(
        a.format,
        formats.unpack(packed, 4, K),
        formats.from_blocked(blocked, M, a.format.scales_of(K)),
        a.global_scale,
    )
    approximate = formats.dequantise(stored)
    print(f"weights: {relative(approximate, weights):.4f} of their norm lost by quantising")

    exact = weights @ vector
    weights_only = approximate @ vector
    both = approximate @ formats.dequantise(b)
    print(f"GEMV, weights in NVFP4:            relative error {relative(weights_only, exact):.4f}")
    print(f"GEMV, weights and vector in NVFP4: relative error {relative(both, exact):.4f}")

    # As the tensor core does it: block scales inside, the global scales once, as alpha.
    one = np.float32(1)
    inner = formats.dequantise(formats.BlockScaled(a.format, stored.codes, stored.scales, one))
    inner_b = formats.dequantise(formats.BlockScaled(b.format, b.codes, b.scales, one))
    with_alpha = formats.alpha(a, b) * (inner @ inner_b)
    print(f"  the same with alpha = gA · gB:   apart by {relative(with_alpha, both):.1e}")

    for name in formats.FORMATS:
        q = formats.dequantise(formats.quantise(weights, name))
        print(f"{name:11} weights: relative error {relative(q, weights):.4f}")


def relative(actual: np.ndarray, expected: np.ndarray) -> float:
    """Norm of the difference over the norm of what was expected."""
    return float(np.linalg.norm(actual - expected) / np.linalg.norm(expected))


if __name__ == "__main__":
    main()
