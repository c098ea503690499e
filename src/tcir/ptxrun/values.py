"""The values of ``--arg``: arrays, scalars, bytes, tensor maps, structs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

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


def _shape(text: str, arrays: str) -> np.ndarray:
    name, _, shape = text.partition(",")
    if name not in _DTYPES or not shape:
        raise LaunchError(f"{arrays}: expected TYPE,AxBxC with one of {', '.join(_DTYPES)}")
    return np.zeros([int(n) for n in shape.split("x")], _DTYPES[name])


def array_of(value: Any) -> np.ndarray:
    return value.array if isinstance(value, Uninitialized) else value


def argument(text: str, earlier: Sequence[Any]) -> Any:
    """The Python value of one --arg. Raises LaunchError."""
    kind, separator, value = text.partition("=")
    try:
        if not separator:
            return np.ascontiguousarray(np.load(text))
        if kind == "zeros":
            return _shape(value, text)
        if kind == "empty":
            return Uninitialized(_shape(value, text))
        if kind == "bytes":
            return bytes.fromhex(value)
        if kind == "parts":
            return tuple(argument(part, earlier) for part in json.loads(value))
        if kind == "map":
            fields = json.loads(value)
            source = fields.pop("array")
            mode = fields.pop("mode", "tiled")
            array = array_of(earlier[source]) if isinstance(source, int) else argument(source, ())
            builders: dict[str, Callable[..., TensorMap]] = {
                "tiled": TensorMap.tiled,
                "im2col": TensorMap.im2col,
            }
            return builders[mode](array, **fields)
        if kind in _DTYPES:
            dtype = _DTYPES[kind]
            number = int(value, 0) if dtype.kind in "iu" else float(value)
            return np.array(number).astype(dtype)[()]
    except (OSError, ValueError, KeyError, IndexError, TypeError, OverflowError) as error:
        raise LaunchError(f"--arg {text}: {error}") from None
    raise LaunchError(
        f"--arg {text}: expected FILE.npy, TYPE=VALUE, zeros=, empty=, bytes=, map= or parts="
    )
