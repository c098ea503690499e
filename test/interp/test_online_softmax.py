"""Powers of two by a polynomial, against float64."""

from __future__ import annotations

import numpy as np

from tcir.dialect.ops.attention import POLYNOMIAL_ERROR, by_polynomial
from tcir.interp.online_softmax import exp2_polynomial, exponentials

F32 = np.float32


def test_whole_exponents_are_exact() -> None:
    """From 2^-126 to 2^127, and 0 below, as of a key that is masked; a NaN stays."""
    whole = np.arange(-126, 128)
    np.testing.assert_array_equal(exp2_polynomial(whole.astype(F32)), np.exp2(whole * 1.0))
    assert not exp2_polynomial(np.asarray([-127, -126.7, -1e30, -np.inf], F32)).any()
    assert np.isnan(exp2_polynomial(np.asarray([np.nan], F32))).all()


def test_the_error_is_the_one_stated() -> None:
    """All distances from a whole number, of 20 bits; and exponents of all sizes."""
    near = np.arange(-(2**19), 2**19 + 1) / 2**20
    far = np.random.default_rng(0).uniform(-125, 15, 1 << 16)
    x = np.concatenate([near, far]).astype(F32)
    off = np.abs(exp2_polynomial(x) / np.exp2(x.astype(np.float64)) - 1).max()
    assert 0.99 * POLYNOMIAL_ERROR < off < POLYNOMIAL_ERROR < 2**-13.26


def test_the_last_columns_of_sixteen_have_it() -> None:
    """Whatever the width of a block: the way depends on the key only."""
    scores = np.random.default_rng(0).uniform(-9, 0, (4, 128)).astype(F32)
    reference, c = np.zeros((4, 1), F32), F32(1)
    plain = exponentials(scores, reference, c)
    mixed = exponentials(scores, reference, c, 4)
    other = np.flatnonzero((plain != mixed).any(axis=0))
    assert set(other) <= set(by_polynomial(128, 4)) == {n for n in range(128) if n % 16 >= 12}
    assert len(other) > 24
    halves = [exponentials(scores[:, at : at + 64], reference, c, 4) for at in (0, 64)]
    np.testing.assert_array_equal(np.hstack(halves), mixed)
