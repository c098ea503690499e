"""Encodes tensor maps of 4- and 6-bit elements as maps of bytes, which Hopper's TMA supports.

Such a map of bytes has a note in its last word, which no hardware reads. Copies rewritten by
`emulate(..., narrow=True)` look for the note and scale their first coordinate. Elements that should
be padded in shared memory (`_align16b`) arrive there without padding, and helper warps spread them:
see `tensor_core.cu`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from tcir.emulation.errors import EmulationError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance as DataclassInstance
else:

    class DataclassInstance(Protocol):
        """Protocol of an argument of `dataclasses.replace`."""


class MapLike(DataclassInstance, Protocol):
    """A dataclass with the fields of a tensor map, under the same names as in `tcir.TensorMap`."""

    @property
    def mode(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def dims(self) -> tuple[int, ...]: ...
    @property
    def element_strides(self) -> tuple[int, ...]: ...
    @property
    def box(self) -> tuple[int, ...]: ...
    @property
    def swizzle(self) -> str: ...


F = TypeVar("F", bound=MapLike)
UNITS = {"u4_align8b": 8, "u4_align16b": 8, "u6_align16b": 12}
"""Bytes of 16 elements, by element type."""
NOTE, SPREAD, SWIZZLED = 0x7C120000, 16, 32
"""The note, which has the bytes of a unit in its low bits, and its flags; `tensor_core.cu` has the
same values."""
NOTE_AT = 124


def some(types: Iterable[str | None]) -> bool:
    """Whether any of these element types of tensor maps is narrow (4 or 6 bits)."""
    return not UNITS.keys().isdisjoint(types)


def encoder(encode: Callable[[F, int], bytes]) -> Callable[[F, int], bytes]:
    """Wraps `encode`, which maps the fields of a tensor map and the address of its tensor to 128
    bytes. The wrapped function encodes a map of narrow elements as a map of bytes with its note. It
    raises EmulationError for a map of narrow elements that cannot be emulated.
    """

    def narrow(fields: F, address: int) -> bytes:
        unit = UNITS.get(fields.dtype)
        if unit is None:
            return encode(fields, address)
        spread = fields.dtype.endswith("_align16b")
        swizzled = fields.swizzle == "128B"
        rows = 1
        for extent in fields.box[1:]:
            rows *= extent
        if fields.mode != "tiled" or fields.element_strides[0] != 1 or fields.dims[0] % 2:
            raise EmulationError(
                f"expected a tiled map of an even number of {fields.dtype} with element stride 1, "
                f"got {fields}: it is emulated by a map of bytes; run it on the simulated machine"
            )
        if spread and (fields.swizzle not in ("NONE", "128B") or rows * (16 - unit) % 16):
            raise EmulationError(
                f"expected a map of {fields.dtype} with swizzle NONE or 128B and rows whose "
                f"padding is a multiple of 128 bytes, got {fields}: TMA fills multiples of 128 "
                "bytes; run it on the simulated machine"
            )
        as_bytes = replace(
            fields,
            dtype="u8",
            dims=(fields.dims[0] * unit // 16, *fields.dims[1:]),
            box=(fields.box[0] * unit // 16, *fields.box[1:]),
            swizzle="NONE" if spread else fields.swizzle,
        )
        note = NOTE | unit | (SPREAD if spread else 0) | (SWIZZLED if spread and swizzled else 0)
        return encode(as_bytes, address)[:NOTE_AT] + note.to_bytes(4, "little")

    return narrow
