"""Data as bytes: what was written comes back, and nothing else is made."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcir.cache.data import from_bytes, to_bytes


@dataclass
class Point:
    x: int
    rest: tuple[object, ...] = ()


@dataclass
class Other:
    x: int


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
SCALARS |= st.text() | st.binary()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.builds(Point, st.integers(), st.lists(inner).map(tuple))
    ),
    max_leaves=12,
)


@settings(max_examples=30)
@given(VALUES)
def test_values_come_back(value: object) -> None:
    found = from_bytes(to_bytes(value), (Point,))
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "int64", "bool"])
def test_arrays_come_back_read_only(dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    arrays = [np.arange(6).reshape(2, 3).astype(kind), np.zeros((0, 4), kind)]
    found = from_bytes(to_bytes(arrays), ())
    for one, two in zip(arrays, found, strict=True):
        assert (one.dtype, one.shape, one.tobytes()) == (two.dtype, two.shape, two.tobytes())
        assert not two.flags.writeable


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return exec, ("raise SystemExit('ran')",)


DAMAGED = {
    "a pickle": pickle.dumps(Evil()),
    "nothing": b"",
    "a class that is not named": to_bytes(Other(1)),
    "no JSON": b"\x05\0\0\0\0\0\0\0hello",
    "cut": to_bytes([np.arange(9)])[:-1],
    "objects": to_bytes([np.arange(9)]).replace(b"int64", b"object"[:5]),
    "a field too many": to_bytes(Point(1)).replace(b'"x"', b'"y"'),
    "deep": b"\xff\xff\0\0\0\0\0\0" + b"[" * 0xFFFF,
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_what_is_no_data_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"expected|Expecting|buffer|codec"):
        from_bytes(data, (Point,))


def test_what_is_no_data_is_not_written() -> None:
    with pytest.raises(TypeError, match="expected data, got Evil"):
        to_bytes([Evil()])
