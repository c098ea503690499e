"""Adapters in LLVM IR between calls from ctypes and numba's calling convention.

ctypes needs a tenth of a microsecond per argument, and an array has nine or more arguments in
numba's convention. Therefore an array is passed as one argument, the address of its Python object,
and the adapter reads the data pointer, shape and strides from that object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tcir.machine.jit.kinds import ArgumentKind

_DATA = object.__basicsize__
_SHAPE, _STRIDES = _DATA + 16, _DATA + 24
"""Where a numpy array has them (``PyArrayObject_fields``)."""
_NUMBERS = {"bool": "i8", "int": "i64", "float": "double"}


def entry(symbol: str, function: str, kinds: Sequence[ArgumentKind]) -> str:
    """Returns LLVM IR that defines the adapter `symbol`, which calls `function`."""
    taken, passed = ["ptr %result", "ptr %error"], ["ptr %result", "ptr %error"]
    lines: list[str] = []
    for n, kind in enumerate(kinds):
        if kind.dimensions is not None and kind.dimensions >= 0:
            taken.append(f"ptr %a{n}")
            lines += _array(f"%a{n}", kind.dimensions)
            passed += _parts(f"%a{n}", kind)
        else:
            count = 1 if kind.dimensions is None else -kind.dimensions
            scalars = [f"{_NUMBERS[kind.type]} %a{n}.{i}" for i in range(count)]
            taken += scalars
            passed += scalars
    types = ", ".join(one.split()[0] for one in passed)
    return f"""
declare i32 @"{function}"({types})

define i32 @"{symbol}"({", ".join(taken)}) {{
{chr(10).join(lines)}
  %status = call i32 @"{function}"({", ".join(passed)})
  ret i32 %status
}}
"""


def _array(name: str, dimensions: int) -> Iterator[str]:
    for part, at in (("data", _DATA), ("shape", _SHAPE), ("strides", _STRIDES)):
        yield f"  {name}.at.{part} = getelementptr i8, ptr {name}, i64 {at}"
        yield f"  {name}.{part} = load ptr, ptr {name}.at.{part}"
    yield f"  {name}.size.0 = add i64 1, 0"
    for i in range(dimensions):
        for part in ("shape", "strides"):
            yield f"  {name}.at.{part}.{i} = getelementptr i64, ptr {name}.{part}, i64 {i}"
            yield f"  {name}.{part}.{i} = load i64, ptr {name}.at.{part}.{i}"
        yield f"  {name}.size.{i + 1} = mul i64 {name}.size.{i}, {name}.shape.{i}"


def _parts(name: str, kind: ArgumentKind) -> Iterator[str]:
    """The memory's owner, the array's owner, elements, bytes of one, data, shape, strides."""
    dimensions = kind.dimensions or 0
    yield from ("ptr null", "ptr null")
    yield f"i64 {name}.size.{dimensions}"
    yield f"i64 {np.dtype(kind.type).itemsize}"
    yield f"ptr {name}.data"
    for part in ("shape", "strides"):
        yield from (f"i64 {name}.{part}.{i}" for i in range(dimensions))
