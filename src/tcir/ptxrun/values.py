"""The values of ``--arg``: arrays, scalars, bytes, tensor maps, structs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from tcir.errors import InputError
from tcir.files import load_array
from tcir.machine import TensorMap
from tcir.run import LaunchError, Uninitialized

_DTYPES: dict[str, Any] = {
    **{
        f"{k}{n}": np.dtype(f"{'i' if k == 's' else k}{n // 8}")
        for k in "us"
        for n in (8, 16, 32, 64)
    },
    "f16": np.dtype("f2"),
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}
_MODES: dict[str, Callable[..., TensorMap]] = {
    "tiled": TensorMap.tiled,
    "im2col": TensorMap.im2col,
    "im2col_w": partial(TensorMap.im2col_wide, mode="W"),
    "im2col_w128": partial(TensorMap.im2col_wide, mode="W128"),
}


def _shape(text: str) -> np.ndarray:
    name, _, shape = text.partition(",")
    sizes = shape.split("x")
    if name not in _DTYPES or not all(n.isdigit() for n in sizes):
        raise LaunchError(f"expected TYPE,AxBxC with one of {', '.join(_DTYPES)}")
    return np.zeros([int(n) for n in sizes], _DTYPES[name])


def array_of(value: object) -> object:
    """Returns the array of an argument; returns other values unchanged."""
    return value.array if isinstance(value, Uninitialized | TensorMap) else value


def load(path: str) -> np.ndarray:
    """The array of a .npy file. Raises InputError for anything else."""
    return np.ascontiguousarray(load_array(path))


def argument(text: str, earlier: Sequence[object]) -> Any:
    """The Python value of one --arg. Raises LaunchError."""
    kind, separator, value = text.partition("=")
    try:
        if not separator:
            return load(text)
        if kind == "zeros":
            return _shape(value)
        if kind == "empty":
            return Uninitialized(_shape(value))
        if kind == "bytes":
            return bytes.fromhex(value)
        if kind == "parts":
            return _parts(json.loads(value), earlier)
        if kind == "map":
            return _map(json.loads(value), earlier)
        if kind in _DTYPES:
            return _scalar(value, _DTYPES[kind])
    except (InputError, ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise LaunchError(f"--arg {text}: {error}") from None
    raise LaunchError(
        f"--arg {text}: expected FILE.npy, TYPE=VALUE, zeros=, empty=, bytes=, map= or parts="
    )


def _scalar(text: str, dtype: np.dtype) -> Any:
    """A number in its type; floats are rounded to the nearest. LaunchError for a number out of
    range, including a finite one that would become infinite."""
    if dtype.kind in "iu":
        number, limits = int(text, 0), np.iinfo(dtype)
        if not limits.min <= number <= limits.max:
            raise LaunchError(f"expected {limits.min}..{limits.max}, got {number}")
        return np.array(number, dtype)[()]
    with np.errstate(all="ignore"):
        value = np.array(float(text)).astype(dtype)[()]
    if np.isfinite(float(text)) and not np.isfinite(value):
        largest = ml_dtypes.finfo(dtype).max  # type: ignore[no-untyped-call]
        raise LaunchError(f"expected at most {largest}, the largest {dtype.name}, got {text}")
    return value


def _parts(texts: Any, earlier: Sequence[object]) -> tuple[Any, ...]:
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise LaunchError('expected a list of arguments such as ["u32=7", "x.npy"]')
    return tuple(argument(text, earlier) for text in texts)


def _map(fields: Mapping[str, Any], earlier: Sequence[object]) -> TensorMap:
    if not isinstance(fields, dict) or "array" not in fields:
        raise LaunchError('expected {"array": …, "dtype": …, "dims": …, …}')
    options = dict(fields)
    source, mode = options.pop("array"), options.pop("mode", "tiled")
    if mode not in _MODES:
        raise LaunchError(f"expected mode {', '.join(_MODES)}, got {mode!r}")
    for name, value in options.items():
        listed = name not in ("dtype", "swizzle", "interleave", "oob_fill")
        numbers = value if isinstance(value, list) else [value]
        if listed and not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
            raise LaunchError(f"{name}: expected integers, got {value!r}")
    if isinstance(source, int):
        if not 0 <= source < len(earlier):
            raise LaunchError(
                f"array: expected the number of an argument before this one, got {source}"
            )
        array = array_of(earlier[source])
    else:
        array = array_of(argument(str(source), ()))
    if not isinstance(array, np.ndarray):
        raise LaunchError("array: expected an array, got a scalar or bytes")
    return _MODES[mode](array, **options)
