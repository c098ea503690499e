"""Tensor maps of the TMA engine, in the form in which a caller builds them.

A tensor map describes an array in global memory, innermost dimension first, and the box that one
instruction moves. A caller builds a `TensorMap` from the arguments of cuTensorMapEncodeTiled,
cuTensorMapEncodeIm2col or cuTensorMapEncodeIm2colWide (with the limits of `tensor_limits`).
`encode` returns the 128 bytes that a kernel parameter contains (`tensor_encoding`). `decode`
returns the `DecodedMap` that the machine executes (`map_fields`).

Sources: CUDA driver API 13.1, tensor map object management; PTX ISA 5.5 (tensors), 9.7.9.27
(cp.async.bulk.tensor).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any

from numpy.typing import NDArray

from tcir.machine.refusal import TensorMapError
from tcir.machine.tma.map_fields import DecodedMap, MapFields
from tcir.machine.tma.tensor_encoding import MAP_BYTES, decode, encode
from tcir.machine.tma.tensor_limits import check_address
from tcir.machine.tma.tensor_types import TYPES

__all__ = ["MAP_BYTES", "TYPES", "DecodedMap", "MapFields", "TensorMap", "decode", "encode"]


_WHY = "the CUDA driver API takes 64-bit integers"


def _numbers(name: str, values: Sequence[int]) -> tuple[int, ...]:
    try:
        return tuple(_number(name, each) for each in values)
    except TypeError:
        raise TensorMapError(name, repr(values), "a sequence of integers", _WHY) from None


def _number(name: str, value: int) -> int:
    try:
        return index(value)
    except TypeError:
        raise TensorMapError(name, repr(value), "an integer", _WHY) from None


@dataclass(frozen=True, eq=False)
class TensorMap:
    """A tensor map over the buffer of `array`, starting at byte `offset_bytes`. The launch assigns
    the global address.

    uninitialized: whether the kernel writes the buffer and must not read its previous contents.
    """

    array: NDArray[Any] = field(repr=False)
    fields: MapFields
    offset_bytes: int = 0
    uninitialized: bool = False

    def __post_init__(self) -> None:
        check_address("offset_bytes", self.fields, self.offset_bytes)

    @classmethod
    def tiled(
        cls,
        array: NDArray[Any],
        *,
        dtype: str,
        dims: Sequence[int],
        strides_bytes: Sequence[int],
        box: Sequence[int],
        element_strides: Sequence[int] | None = None,
        swizzle: str = "NONE",
        interleave: str = "NONE",
        oob_fill: str = "zero",
        offset_bytes: int = 0,
    ) -> TensorMap:
        """Builds a map from the arguments of cuTensorMapEncodeTiled: dimensions innermost first;
        strides in bytes, without the innermost stride.

        Raises TensorMapError, which names the argument, the allowed values and the reason.
        """
        return cls(
            array,
            MapFields(
                "tiled",
                dtype,
                _numbers("dims", dims),
                _numbers("strides_bytes", strides_bytes),
                _numbers("element_strides", element_strides or (1,) * len(_numbers("dims", dims))),
                swizzle,
                box=_numbers("box", box),
                interleave=interleave,
                oob_fill=oob_fill,
            ),
            offset_bytes,
        )

    @classmethod
    def im2col(
        cls,
        array: NDArray[Any],
        *,
        dtype: str,
        dims: Sequence[int],
        strides_bytes: Sequence[int],
        lower_corner: Sequence[int],
        upper_corner: Sequence[int],
        channels_per_pixel: int,
        pixels_per_column: int,
        element_strides: Sequence[int] | None = None,
        swizzle: str = "NONE",
        interleave: str = "NONE",
        oob_fill: str = "zero",
        offset_bytes: int = 0,
    ) -> TensorMap:
        """Builds a map from the arguments of cuTensorMapEncodeIm2col: dims C, W(, H(, D)), N;
        corners W(, H(, D)).

        Raises TensorMapError, which names the argument, the allowed values and the reason.
        """
        return cls(
            array,
            MapFields(
                "im2col",
                dtype,
                _numbers("dims", dims),
                _numbers("strides_bytes", strides_bytes),
                _numbers("element_strides", element_strides or (1,) * len(_numbers("dims", dims))),
                swizzle,
                lower_corner=_numbers("lower_corner", lower_corner),
                upper_corner=_numbers("upper_corner", upper_corner),
                channels_per_pixel=_number("channels_per_pixel", channels_per_pixel),
                pixels_per_column=_number("pixels_per_column", pixels_per_column),
                interleave=interleave,
                oob_fill=oob_fill,
            ),
            offset_bytes,
        )

    @classmethod
    def im2col_wide(
        cls,
        array: NDArray[Any],
        *,
        dtype: str,
        dims: Sequence[int],
        strides_bytes: Sequence[int],
        lower_corner_width: int,
        upper_corner_width: int,
        channels_per_pixel: int,
        pixels_per_column: int,
        mode: str,
        swizzle: str,
        element_strides: Sequence[int] | None = None,
        oob_fill: str = "zero",
        offset_bytes: int = 0,
    ) -> TensorMap:
        """Builds a map from the arguments of cuTensorMapEncodeIm2colWide; `mode` is "W"
        (.im2col::w) or "W128" (.im2col::w::128).

        Raises TensorMapError, which names the argument, the allowed values and the reason.
        """
        return cls(
            array,
            MapFields(
                f"im2col_{mode.lower()}",
                dtype,
                _numbers("dims", dims),
                _numbers("strides_bytes", strides_bytes),
                _numbers("element_strides", element_strides or (1,) * len(_numbers("dims", dims))),
                swizzle,
                lower_corner=_numbers("lower_corner_width", (lower_corner_width,)),
                upper_corner=_numbers("upper_corner_width", (upper_corner_width,)),
                channels_per_pixel=_number("channels_per_pixel", channels_per_pixel),
                pixels_per_column=_number("pixels_per_column", pixels_per_column),
                oob_fill=oob_fill,
            ),
            offset_bytes,
        )

    def encode(self, base_address: int) -> bytes:
        """Encodes the map in its 128 bytes. base_address: global address of the array's buffer."""
        return encode(DecodedMap(self.fields, base_address + self.offset_bytes))

    @staticmethod
    def decode(raw: bytes) -> DecodedMap:
        """Decodes 128 bytes to a tensor map, as the function `decode` of `tensor_encoding` does."""
        return decode(bytes(raw))
