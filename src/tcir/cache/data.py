"""Serialises data to bytes and back. Reading creates values and executes no code from the data.

Supported are numbers, texts, bytes, lists, tuples, dictionaries, numpy arrays and types, and the
dataclasses that the reader names. The data begins with JSON, in which a value of a type that JSON
lacks is ``{kind: contents}``; the arrays follow the JSON.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from math import prod
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

Data: TypeAlias = Any
"""A serialised value, or its JSON."""
_SIZE = struct.Struct("<Q")


def to_bytes(value: object) -> bytes:
    """Serialises a value. Raises TypeError for a type that is not supported."""
    arrays: list[bytes] = []
    text = json.dumps(_written(value, arrays)).encode()
    return b"".join([_SIZE.pack(len(text)), text, *arrays])


def from_bytes(data: bytes, classes: Collection[type]) -> Data:
    """Deserialises a value. Raises ValueError for bytes that `to_bytes` does not write, and for a
    class that is not in `classes`.

    Arrays are read-only.
    """
    try:
        (size,) = _SIZE.unpack_from(data)
        text = json.loads(data[_SIZE.size : _SIZE.size + size])
        known = {each.__name__: each for each in classes}
        return _Reader(known, memoryview(data)[_SIZE.size + size :]).read(text)
    except (LookupError, TypeError, AttributeError, struct.error, RecursionError) as error:
        raise ValueError(f"expected the bytes of a serialised value: {error}") from error


def _written(value: Data, arrays: list[bytes]) -> Data:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, bytes):
        start = sum(map(len, arrays))
        arrays.append(value)
        return {"bytes": [start, start + len(value)]}
    if isinstance(value, np.generic):
        return _written(value.item(), arrays)
    if isinstance(value, np.dtype):
        return {"dtype": value.name}
    if isinstance(value, np.ndarray):
        start = sum(map(len, arrays))
        arrays.append(np.ascontiguousarray(value).tobytes())
        return {"array": [start, value.dtype.name, list(value.shape)]}
    if isinstance(value, list):
        return [_written(each, arrays) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [_written(each, arrays) for each in value]}
    if isinstance(value, Mapping) and not is_dataclass(value):
        pairs = [[_written(k, arrays), _written(v, arrays)] for k, v in value.items()]
        return {"dict": pairs}
    if is_dataclass(value):
        named = {
            each.name: _written(getattr(value, each.name), arrays)
            for each in fields(value)
            if each.init
        }
        return {type(value).__name__: named}
    raise TypeError(f"expected data, got {type(value).__name__}")


class _Reader:
    def __init__(self, classes: Mapping[str, Callable[..., Data]], arrays: memoryview) -> None:
        self.classes, self.arrays = classes, arrays

    def read(self, value: Data) -> Data:
        if isinstance(value, list):
            return [self.read(each) for each in value]
        if not isinstance(value, dict):
            return value
        ((kind, given),) = value.items()
        if kind == "tuple":
            return tuple(map(self.read, given))
        if kind == "dict":
            return {self.read(k): self.read(v) for k, v in given}
        if kind == "dtype":
            return _dtype(given)
        if kind == "array":
            return self._array(*given)
        if kind == "bytes":
            start, end = given
            return bytes(self.arrays[start:end])
        return self.classes[kind](**{str(k): self.read(v) for k, v in given.items()})

    def _array(self, start: int, name: str, shape: list[int]) -> Data:
        dtype = _dtype(name)
        count = prod(shape)
        return np.frombuffer(self.arrays, dtype, count, start).reshape(shape)


def _dtype(name: str) -> Data:
    found = np.dtype(getattr(ml_dtypes, name, None) or name)
    if found.hasobject:
        raise ValueError(f"expected a type of numbers, got {name}")
    return found
