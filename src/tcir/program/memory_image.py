"""Memory images of the caller's arrays, which are the bytes that kernels below the tensor level
receive.

Elements of 2, 4 and 6 bits are packed along the last axis (`tcir.formats.pack`), little-endian. Two
elements of i4 or fp4 share a byte, the one with the even index in the low nibble. Four elements of
i2 share a byte, the first one in the lowest bits. Four elements of fp6 share three bytes. The image
of any other array is the array itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tcir.errors import InputError
from tcir.formats import ELEMENTS, pack, packed_bytes, unpack
from tcir.interp import Outcome, OutputSpec

Array = np.ndarray[Any, Any]

PACKED_BITS: dict[np.dtype[Any], int] = {
    np.dtype(ml_dtypes.int2): 2,
    np.dtype(ml_dtypes.int4): 4,
    np.dtype(ml_dtypes.float4_e2m1fn): ELEMENTS["e2m1"].bits,
    np.dtype(ml_dtypes.float6_e2m3fn): ELEMENTS["e2m3"].bits,
    np.dtype(ml_dtypes.float6_e3m2fn): ELEMENTS["e3m2"].bits,
}
"""Packed element type -> its bits."""


def image_spec(spec: OutputSpec) -> OutputSpec:
    """Returns shape and type of the array's image; packed rows are int8."""
    bits = PACKED_BITS.get(spec.dtype)
    if bits is None:
        return spec
    if not spec.shape or spec.shape[-1] * bits % 8:
        raise InputError(
            f"expected rows of whole bytes, got {spec.dtype.name}{list(spec.shape)} "
            f"({bits} bits an element); pad the last dimension with zeros"
        )
    return OutputSpec((*spec.shape[:-1], packed_bytes(spec.shape[-1], bits)), np.dtype(np.int8))


def to_memory(array: Array) -> Array:
    """Returns the image of an array; the array itself unless its elements are packed."""
    bits = PACKED_BITS.get(array.dtype)
    if bits is None:
        return array
    image_spec(OutputSpec(array.shape, array.dtype))
    return pack(np.ascontiguousarray(array).view(np.uint8), bits).view(np.int8)


def from_memory(image: Array, spec: OutputSpec) -> Array:
    """Returns the array that `spec` describes, from its image."""
    bits = PACKED_BITS.get(spec.dtype)
    if bits is None or image.dtype == spec.dtype:
        return image
    codes = unpack(np.ascontiguousarray(image).view(np.uint8), bits, spec.shape[-1])
    return codes.view(spec.dtype).reshape(spec.shape)


def is_image(array: Any, spec: OutputSpec) -> bool:
    """Whether `array` is already the packed image of an array that `spec` describes."""
    wanted = image_spec(spec)
    return (
        spec.dtype in PACKED_BITS
        and isinstance(array, np.ndarray)
        and array.shape == wanted.shape
        and array.dtype in (np.int8, np.uint8)
    )


def images(arrays: Sequence[Array]) -> list[Array]:
    """Returns the image of each array."""
    return [to_memory(array) for array in arrays]


def in_memory(
    outputs: Sequence[OutputSpec], run: Callable[[Sequence[OutputSpec]], Outcome]
) -> Outcome:
    """Calls `run` with the specs of the images of `outputs`, and unpacks its results."""
    outcome = run([image_spec(spec) for spec in outputs])
    if not outcome.incomplete:
        outcome.outputs = [
            from_memory(image, spec) for image, spec in zip(outcome.outputs, outputs, strict=True)
        ]
    packed = {n for n, spec in enumerate(outputs) if spec.dtype in PACKED_BITS}
    outcome.sites = {n: site for n, site in outcome.sites.items() if n not in packed}
    return outcome
