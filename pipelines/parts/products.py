"""Parts that the pipelines of matrix products share."""

from __future__ import annotations

PRODUCT_FORMS = (
    "linalg.matvec, linalg.vecmat, linalg.dot, and linalg.generic with several loops of a batch, "
    "of rows, columns or k: products of reshaped operands, repacked where dimensions lie apart",
    "before the product, casts to f32, transposes and reshapes; after it, transposes and reshapes",
)
"""Forms that raising brings to a plain product."""
