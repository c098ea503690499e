"""Executions that share their products compute each of them once, and get the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.machine.numerics.products import Products

A, B, D = (np.arange(n, n + 6, dtype=np.uint32).reshape(2, 3) for n in (0, 10, 20))


class Multiply:
    """Counts, and gives another result every time."""

    calls = 0

    def __call__(self) -> Any:
        self.calls += 1
        return np.full((2, 3), self.calls, np.uint32)


def test_the_same_operands_are_multiplied_once() -> None:
    products, multiply = Products(), Multiply()
    first = products.get("f16", (A, B, None), multiply)
    first[...] = 77  # its own: the machine poisons rows
    again = products.get("f16", (A.copy(), np.asfortranarray(B), None), multiply)
    assert multiply.calls == 1 and (again == 1).all()
    again[...] = 78
    assert (products.get("f16", (A, B, None), multiply) == 1).all()


def _with_one_bit_more(codes: Any) -> Any:
    changed = codes.copy()
    changed[-1, -1] ^= 1
    return changed


@pytest.mark.parametrize(
    ("form", "operands"),
    [
        ("bf16", (A, B, D)),
        ("f16", (_with_one_bit_more(A), B, D)),
        ("f16", (A, _with_one_bit_more(B), D)),
        ("f16", (A, B, _with_one_bit_more(D))),
        ("f16", (A, B, None)),
        ("f16", (B, A, D)),
        ("f16", (A.reshape(3, 2), B, D)),
        ("f16", (A.view(np.int32), B, D)),
    ],
)
def test_another_product_is_computed(form: str, operands: Any) -> None:
    products, multiply = Products(), Multiply()
    products.get("f16", (A, B, D), multiply)
    assert (products.get(form, operands, multiply) == 2).all()


def test_no_more_is_kept_than_there_is_room_for() -> None:
    products, multiply = Products(most_bytes=30), Multiply()
    for _ in range(2):
        products.get("f16", (A, B, D), multiply)
        products.get("f16", (B, A, D), multiply)
    assert multiply.calls == 3
