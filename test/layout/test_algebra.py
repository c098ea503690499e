"""Each operation against its definition, over whole domains of a table of layouts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcir.layout import (
    Layout,
    LayoutError,
    coalesce,
    complement,
    composition,
    concatenate,
    is_injective,
    left_inverse,
    logical_divide,
    logical_product,
    right_inverse,
    transpose,
    with_shape,
)

LAYOUTS = [
    Layout(1, 0),
    Layout(1, 1),
    Layout(4),
    Layout(4, 0),
    Layout(4, 2),
    Layout((2, 4)),
    Layout((2, 4), (4, 1)),
    Layout((4, 2), (1, 16)),
    Layout((2, 4, 6)),
    Layout((2, 6, 4), (4, 1, 6)),
    Layout((4, 2), (2, 1)),
    Layout(((2, 2), 4), ((1, 8), 2)),
    Layout((8, (2, 2)), (1, (8, 64))),
    Layout((3, 5), (5, 1)),
    Layout(((4, 8), (2, 4)), ((2, 8), (1, 64))),
]
TILERS = [
    Layout(2),
    Layout(4),
    Layout(2, 2),
    Layout(4, 2),
    Layout((2, 2)),
    Layout((2, 2), (4, 1)),
    Layout((2, 4), (1, 4)),
]
each = pytest.mark.parametrize("layout", LAYOUTS, ids=str)


def brute(layout: Layout) -> list[int]:
    """The image by hand: the inner product over all natural coordinates, first mode fastest."""
    ranges = [range(n) for n, _ in reversed(layout.leaves)]
    strides = [d for _, d in reversed(layout.leaves)]
    return [sum(c * d for c, d in zip(point, strides)) for point in itertools.product(*ranges)]


@each
def test_layout_is_the_inner_product_of_coordinate_and_stride(layout: Layout) -> None:
    assert layout.indices() == brute(layout)
    assert layout.cosize == max(brute(layout)) + 1
    for i in range(layout.size):
        assert layout(layout.coordinate(i)) == layout(i) == brute(layout)[i]


@each
def test_coalesce_is_the_same_function(layout: Layout) -> None:
    small = coalesce(layout)
    assert small.indices() == layout.indices()
    assert len(small.leaves) <= len(layout.leaves)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(LAYOUTS, LAYOUTS + TILERS)), ids=str)
def test_composition_is_a_after_b(a: Layout, b: Layout) -> None:
    if b.cosize > a.size:
        return  # outside a's domain
    try:
        r = composition(a, b)
    except LayoutError:
        # Refused only where some mode of b really is not divisible: a's image is not affine there.
        assert len(coalesce(a).leaves) > 1
        return
    assert [r(i) for i in range(b.size)] == [a(b(i)) for i in range(b.size)]
    assert all(r(b.coordinate(i)) == a(b(b.coordinate(i))) for i in range(b.size))


@pytest.mark.parametrize(("layout", "extra"), list(itertools.product(LAYOUTS, (1, 2, 3))))
def test_complement_is_disjoint_ordered_and_covers(layout: Layout, extra: int) -> None:
    cosize = layout.cosize * extra
    try:
        rest = complement(layout, cosize)
    except LayoutError:
        assert not is_injective(layout) or any(
            b % a
            for (_, a), (_, b) in itertools.combinations(
                sorted(layout.leaves, key=lambda x: x[1]), 2
            )
            if a
        )
        return
    image = rest.indices()
    assert image == sorted(set(image))
    if is_injective(layout):
        both = concatenate(layout, rest).indices()
        assert len(set(both)) == len(both)
        assert set(image) & set(layout.indices()) <= {0}
    assert concatenate(layout, rest).cosize >= cosize


@pytest.mark.parametrize(("layout", "tiler"), list(itertools.product(LAYOUTS, TILERS)), ids=str)
def test_logical_divide_keeps_the_elements_tile_by_tile(layout: Layout, tiler: Layout) -> None:
    if tiler.cosize > layout.size:
        return  # outside the layout's domain
    try:
        divided = logical_divide(layout, tiler)
    except LayoutError:
        return
    assert [divided[0](i) for i in range(tiler.size)] == [
        layout(tiler(i)) for i in range(tiler.size)
    ]
    if divided.size == layout.size:
        assert sorted(divided.indices()) == sorted(layout.indices())


@pytest.mark.parametrize(("layout", "tiler"), list(itertools.product(LAYOUTS, TILERS)), ids=str)
def test_logical_product_repeats_without_overlap(layout: Layout, tiler: Layout) -> None:
    try:
        product = logical_product(layout, tiler)
    except LayoutError:
        return
    assert product[0].indices() == layout.indices()
    if is_injective(layout) and is_injective(tiler):
        assert len(set(product.indices())) == product.size


@each
def test_right_inverse(layout: Layout) -> None:
    inverse = right_inverse(layout)
    assert [layout(inverse(i)) for i in range(inverse.size)] == list(range(inverse.size))


@each
def test_left_inverse(layout: Layout) -> None:
    if not is_injective(layout):
        with pytest.raises(LayoutError, match=r"not injective, coordinates .* both map to"):
            left_inverse(layout)
        return
    try:
        inverse = left_inverse(layout)
    except LayoutError:
        with pytest.raises(LayoutError):
            complement(layout, layout.cosize)
        return
    assert [inverse(layout(i)) for i in range(layout.size)] == list(range(layout.size))


@each
def test_is_injective_by_counting(layout: Layout) -> None:
    assert is_injective(layout) == (len(set(layout.indices())) == layout.size)


@each
def test_transpose_and_with_shape(layout: Layout) -> None:
    assert sorted(transpose(layout).indices()) == sorted(layout.indices())
    assert with_shape(layout, layout.size).indices() == layout.indices()
    with pytest.raises(LayoutError, match="expected a shape of size"):
        with_shape(layout, layout.size + 1)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 32)), min_size=1, max_size=3))
def test_injective_on_random_layouts(leaves: list[tuple[int, int]]) -> None:
    layout = Layout(tuple(n for n, _ in leaves), tuple(d for _, d in leaves))
    assert is_injective(layout) == (len(set(layout.indices())) == layout.size)


def test_refusals_name_the_value() -> None:
    with pytest.raises(LayoutError, match=r"nested like shape \(2, 3\), got 1"):
        Layout((2, 3), 1)
    with pytest.raises(LayoutError, match=r"positive extents, got shape \(2, 0\)"):
        Layout((2, 0))
    with pytest.raises(LayoutError, match="does not divide"):
        composition(Layout((4, 6), (1, 10)), Layout(3, 3))
    with pytest.raises(LayoutError, match="fits shape"):
        Layout((2, 3))(1, 2, 3)
