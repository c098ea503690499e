"""Sums in float32 for many CTAs: right where they are made, and not made where they may not be."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcir.machine.numerics.exact_f32 import add_exactly, exact_products
from tcir.machine.numerics.fused import FusedParams
from tcir.machine.numerics.types import MmaTypes

CTAS, M, N, K, COLUMN = 3, 8, 20, 12, 7
TYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
}


def codes(values: Any, name: str) -> Any:
    held = np.asarray(values, np.float64).astype(TYPES[name])
    assert (held.astype(np.float64) == values).all()
    return held.view(f"u{held.itemsize}")


def numbers(seed: int, *shape: int) -> Any:
    draw = np.random.default_rng(seed)
    return draw.integers(1, 7, shape) * draw.choice((-0.5, 0.5), shape)


def add(
    a: Any,
    b: Any,
    before: Any,
    name: str = "f16",
    *,
    adds: bool = True,
    types: Any = None,
    **params: Any,
) -> tuple[bool, Any]:
    """Whether it is done, and tensor memory [CTAs, 128, 64] behind it; D is in every fifth lane."""
    words = np.full((len(before), 128, 64), 77.5, np.float32)
    lanes = 3 + 5 * np.arange(M)
    words[:, lanes, COLUMN : COLUMN + N] = before
    held = [x if x.dtype.kind == "u" else codes(x, name) for x in (a, b)]
    untouched = words.copy()
    done = add_exactly(
        held[0], held[1], words.view(np.uint32), lanes, COLUMN, types or MmaTypes(name, name),
        FusedParams(**params), adds,
    )  # fmt: skip
    own = np.zeros(words.shape, bool)
    own[:, lanes, COLUMN : COLUMN + N] = done
    np.testing.assert_array_equal(words[~own], untouched[~own])
    return done, words[:, lanes, COLUMN : COLUMN + N]


def operands(seed: int = 0) -> tuple[Any, Any, Any]:
    return (
        numbers(seed, CTAS, M, K),
        numbers(seed + 1, CTAS, N, K),
        8 * numbers(seed + 2, CTAS, M, N),
    )


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize("one_b", [True, False])
def test_sums(name: str, adds: bool, one_b: bool) -> None:
    a, b, d = operands()
    b = b[:1] if one_b else b
    done, found = add(a, b, d, name, adds=adds)
    assert done
    np.testing.assert_array_equal(found, a @ b.swapaxes(1, 2) + (d if adds else 0))


@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize("several", [True, False])
def test_products(several: bool, adds: bool) -> None:
    """One, or several with a leading axis; D-in stays as it is."""
    a, b, d = operands() if several else (x[0] for x in operands())
    words = d.astype(np.float32).view(np.uint32)
    before = words.copy()
    given = codes(a, "f16"), codes(b, "f16"), words if adds else None
    found = exact_products(*given, MmaTypes("f16", "f16"), FusedParams())
    assert found is not None
    expected = a @ b.swapaxes(-1, -2) + (d if adds else 0)
    np.testing.assert_array_equal(found.view(np.float32), expected)
    np.testing.assert_array_equal(words, before)
    assert exact_products(*given, MmaTypes("f16", "f16", "f16"), FusedParams()) is None
    d.reshape(-1)[-1] = 2.0**24
    given = *given[:2], d.astype(np.float32).view(np.uint32)
    assert exact_products(*given, MmaTypes("f16", "f16"), FusedParams()) is None


def test_signs_and_zeros() -> None:
    a, b, d = operands()
    a[:, 1], d[:, 1] = 0.0, -0.0
    done, found = add(a, b, d, types=MmaTypes("f16", "f16", negate_b=True))
    assert done
    np.testing.assert_array_equal(found, d - a @ b.swapaxes(1, 2))
    assert not np.signbit(found[:, 1]).any()


def test_low_bits_of_tf32_are_ignored() -> None:
    a, b, d = operands()
    done, found = add(codes(a, "tf32") | 0x1ABC, codes(b, "tf32"), d, "tf32")
    assert done
    np.testing.assert_array_equal(found, a @ b.swapaxes(1, 2) + d)


def test_the_largest_sums() -> None:
    """At most 2^23 steps of products, and of D."""
    a, b, d = operands()
    a[:], b[:] = 2.0**10, 2.0**9
    a[0, 0, 0], b[0, 0, 0] = 1, 1  # what the steps are
    d[:] = 2.0**23
    done, found = add(a, b, d)
    assert done
    np.testing.assert_array_equal(found, a @ b.swapaxes(1, 2) + d)
    b[:, 1:] *= 2  # 12 · 2^10 · 2^10 > 2^23
    assert not add(a, b, d)[0]
    b[:, 1:] /= 2
    d[1, 2, 3] += 1
    assert not add(a, b, d)[0]
    d[1, 2, 3] = 0.5
    assert not add(a, b, d)[0]
    assert add(a, b, d, adds=False)[0]


def test_terms_that_are_truncated() -> None:
    """A raw exponent of more than the window above the lowest bit."""
    a, b, d = operands()
    for window in 24, 23:  # a sum may have 24 bits
        assert add(a, b, d, window=window)[0] is (window == 24)
    for exponent in 23, 24:  # the lowest bit is that of 2^-2
        assert add(a, b, d, zero_exponent=exponent)[0] is (exponent == 23)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("operand", range(3))
def test_what_is_not_finite(value: float, operand: int) -> None:
    found = [x.astype(np.float16) for x in operands()]
    found[operand][-1, -1, -1] = value
    a, b = (x.view(np.uint16) for x in found[:2])
    assert not add(a, b, found[2])[0]


def test_zeros_only() -> None:
    a, b, d = operands()
    assert not add(0 * a, b, d)[0]
    assert not add(a, 0 * b, d)[0]


@pytest.mark.parametrize("seed", range(20))
def test_numbers_of_many_sizes(seed: int) -> None:
    """Where it is done the result is the exact sum, which float64 holds."""
    draw = np.random.default_rng(seed)
    a, b, d = operands(seed)
    a, b = (np.ldexp(x, draw.integers(-seed, seed + 1, x.shape) // 4) for x in (a, b))
    done, found = add(a, b, d, "tf32")
    assert done or seed > 3
    if done:
        exact = a @ b.swapaxes(1, 2) + d
        np.testing.assert_array_equal(found.astype(np.float64), exact)
