"""A cache of the results of tensor-core products, by their operands, for programs that are executed
repeatedly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.numerics.types import ProductTypes

Codes = NDArray[Any]


def product_form(types: ProductTypes) -> tuple[Hashable, ...]:
    """Returns the fields of an instruction descriptor on which the result of a product depends."""
    return types.a_type, types.b_type, types.d_type, types.negate_a, types.negate_b


class Products:
    """A cache of the results of products. A program that is executed again, under another
    completion order or after another pass, multiplies the same operands again.

    most_bytes: limit on the bytes of the cached results; results beyond it are not cached and are
        computed every time.
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
        """Returns the result of ``multiply()``, which is computed once for each combination of
        `form` and operands.

        form: everything on which the result depends, except the codes in `operands`
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
