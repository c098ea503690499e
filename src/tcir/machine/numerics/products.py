"""Products of the tensor core by their operands, for executions that compute the same ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.numerics.types import ProductTypes

Codes = NDArray[Any]


def product_form(types: ProductTypes) -> tuple[Hashable, ...]:
    """What an instruction descriptor decides of a product's result."""
    return types.a_type, types.b_type, types.d_type, types.negate_a, types.negate_b


class Products:
    """Results of products: a program executed again, under another completion order or after
    another pass, multiplies the same operands.

    most_bytes: of the results that it keeps; those beyond are computed every time.
    """

    def __init__(self, most_bytes: int = 256 << 20) -> None:
        self._room = most_bytes
        self._results: dict[Hashable, NDArray[np.uint32]] = {}

    def get(
        self,
        form: Hashable,
        operands: Sequence[Codes | None],
        multiply: Callable[[], NDArray[np.uint32]],
    ) -> NDArray[np.uint32]:
        """What ``multiply()`` gives, computed once for every form of product and operands.

        form: all that the result depends on besides the codes in `operands`
        """
        digest = hashlib.sha256()
        shapes: list[Hashable] = []
        for codes in operands:
            shapes.append(None if codes is None else (codes.shape, codes.dtype.char))
            if codes is not None:
                digest.update(np.ascontiguousarray(codes).data)
        key = (form, *shapes, digest.digest())
        known = self._results.get(key)
        if known is not None:
            return known.copy()
        result = multiply()
        if result.nbytes <= self._room:
            self._room -= result.nbytes
            self._results[key] = result.copy()
        return result
