"""Sparse operands: selectors by definition, places without collisions, sums against dense ones."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tcir.machine.numerics.formats import ELEMENT_BITS
from tcir.machine.numerics.fused import integer_mma
from tcir.machine.refusal import ElementTypeError, TmemError
from tcir.machine.tensor_core.sparse import CHUNK, SPARSE_K, metadata_places, selected

from .products import fast_mma, fused_mma


def test_selectors_by_definition():
    """Every 4-bit value: which positions it names, and that nothing else is taken."""
    for kind, code in itertools.product(CHUNK, range(16)):
        low, high = code & 3, code >> 2
        if kind == "tf32":
            positions = {0x4: [0], 0xE: [1]}.get(code)
        elif code in (0x4, 0x8, 0xC, 0x9, 0xD, 0x6, 0xE):
            positions = [low, high]
            if CHUNK[kind] == 8:
                positions = [2 * low, 2 * low + 1, 2 * high, 2 * high + 1]
        else:
            positions = None
        selectors = np.full((2, 3), code)
        if positions is None:
            with pytest.raises(TmemError, match="selector of row 0, chunk 0"):
                selected(selectors, kind)
            continue
        got = selected(selectors, kind)
        want = [CHUNK[kind] * c + p for c in range(3) for p in positions]
        assert got.tolist() == [want, want]
    with pytest.raises(TmemError, match="sparse kind"):
        selected(np.full((1, 1), 4), "f64")


@pytest.mark.parametrize("kind", CHUNK)
def test_places(kind):
    (lanes,), (columns,), (bits,) = metadata_places(kind)
    assert lanes.shape == (128, SPARSE_K[kind] // CHUNK[kind])
    spots = set()
    for lane, column, bit in zip(lanes.ravel(), columns.ravel(), bits.ravel()):
        assert 0 <= lane < 128 and bit % 4 == 0 and bit < 32
        spots.add((lane, column, bit))
    assert len(spots) == lanes.size
    # Every bit of the words is used: the metadata of 128 rows are dense.
    columns_used = 1 if kind in ("f16", "tf32") else 2
    assert columns.max() + 1 == columns_used and len(spots) * 4 == 128 * 32 * columns_used
    if columns_used == 2:
        assert (lanes == np.arange(128)[:, None]).all()
    else:  # rows m and m + 8 share a lane, the second in the upper half
        assert (lanes[:8] == lanes[8:16]).all() and (bits[8:16] == bits[:8] + 16).all()
    with pytest.raises(TmemError, match="sparse kind"):
        metadata_places("bf16")


SPARSE = [
    ("tf32", "tf32", np.uint32), ("f16", "f16", np.uint16), ("f16", "bf16", np.uint16),
    ("f8f6f4", "e4m3", np.uint8), ("f8f6f4", "e2m1", np.uint8), ("i8", "s8", np.uint8),
]  # fmt: skip


def operands(kind: str, element: str, word: Any) -> tuple[np.ndarray, ...]:
    """Stored A, selection, B: finite codes of middle size."""
    rng = np.random.default_rng(len(element))
    legal = [0x4, 0xE] if kind == "tf32" else [0x4, 0x8, 0xC, 0x9, 0xD, 0xE]
    k = SPARSE_K[kind]
    select = selected(rng.choice(legal, (24, k // CHUNK[kind])), kind)
    a, b = (
        rng.integers(0, 1 << min(ELEMENT_BITS[element], 31), s).astype(word)
        for s in ((24, k // 2), (20, k))
    )
    if word != np.uint8:  # keep the exponents near that of 1
        one = {"tf32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}[element]
        low = {"tf32": 0x7FFFFF, "f16": 0x3FF, "bf16": 0x7F}[element]
        a, b = (one + (x & low) for x in (a, b))
    elif element == "e4m3":
        a, b = (np.where(x & 0x7F == 0x7F, 1, x).astype(word) for x in (a, b))
    return a.astype(word), select, b.astype(word)


@pytest.mark.parametrize(("kind", "element", "word"), SPARSE)
def test_equal_to_a_dense_sum_with_zeros(kind, element, word):
    a, select, b = operands(kind, element, word)
    dense = np.zeros((24, b.shape[1]), word)
    for row, column in np.ndindex(a.shape):
        dense[row, select[row, column]] = a[row, column]
    types = {"a_type": element, "b_type": element}
    run: Any = integer_mma if kind == "i8" else fused_mma
    np.testing.assert_array_equal(
        run(a, b, None, select=select, **types), run(dense, b, None, **types)
    )
    if kind != "i8":
        fast = fast_mma(a, b, None, select=select, **types).view(np.float32)
        exact = run(a, b, None, select=select, **types).view(np.float32)
        np.testing.assert_allclose(fast, exact, rtol=1e-4, atol=abs(exact).max() * 1e-4)


@pytest.mark.parametrize(
    ("element", "nan"), [("f16", 0x7E00), ("e4m3", 0x7F), ("tf32", 0x7FC00000)]
)
def test_what_is_left_out_does_not_exist(element, nan):
    kind = {"f16": "f16", "e4m3": "f8f6f4", "tf32": "tf32"}[element]
    a, select, b = operands(
        kind, element, {"f16": np.uint16, "e4m3": np.uint8}.get(element, np.uint32)
    )
    one = select[:1]
    types = {"a_type": element, "b_type": element}
    clean = fused_mma(a[:1], b, None, select=one, **types)
    poisoned = b.copy()
    poisoned[:, np.setdiff1d(np.arange(b.shape[1]), one)] = nan
    np.testing.assert_array_equal(fused_mma(a[:1], poisoned, None, select=one, **types), clean)
    poisoned[:, one[0, 3]] = nan
    assert (fused_mma(a[:1], poisoned, None, select=one, **types) == 0x7FFFFFFF).all()


def test_wrong_selections_are_refused():
    a, select, b = operands("f16", "f16", np.uint16)
    types = {"a_type": "f16", "b_type": "f16"}
    with pytest.raises(ElementTypeError, match=r"selection: expected \[M, K/2\], as A"):
        fused_mma(a, b, None, select=select[:, :4], **types)
    with pytest.raises(ElementTypeError, match=r"A \[M, K/2\], B \[N, K\]"):
        fused_mma(a, b[:, :8], None, select=select, **types)
