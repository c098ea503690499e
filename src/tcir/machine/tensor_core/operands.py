"""Operands of the tensor core as an instruction names them, and their places in shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tcir.machine.order.distinct import distinct
from tcir.machine.tensor_core.narrow import data_bytes

Index = NDArray[np.int64]


@dataclass(frozen=True)
class SharedDesc:
    """An operand named by a 64-bit shared-memory matrix descriptor."""

    bits: int

    @property
    def lacks_constant(self) -> bool:
        """Whether bits 48..46 of the descriptor are 0, as in a Hopper descriptor, instead of 0b001
        (PTX ISA 9.7.16.4.1).
        """
        return not self.bits >> 46 & 0b111


@dataclass(frozen=True)
class TmemAddr:
    """An A operand in tensor memory."""

    address: int


@dataclass(frozen=True, eq=False)
class ElementAddresses:
    """An operand in shared memory, given by the byte address of every element: ``base +
    addresses``.

    addresses: int64 [rows, K]; base: a multiple of 16. If an array is read-only, results for it are
        cached by the array's identity.
    """

    addresses: Index
    base: int = 0

    def footprint(self, element_bytes: int) -> OperandTables:
        """Returns the `OperandTables` of the operand for elements of the given size."""
        if self.addresses.flags.writeable:
            return _footprint(self.addresses, element_bytes)
        return _remembered(_Same(self.addresses), element_bytes)

    def data_only(self, bits: int) -> ElementAddresses:
        """Returns the operand without the padding bytes of padded 16-byte units (see `narrow`)."""
        if self.addresses.flags.writeable:
            return ElementAddresses(_data_only(self.addresses, bits), self.base)
        return ElementAddresses(_remembered_data(_Same(self.addresses), bits), self.base)


@dataclass(frozen=True, eq=False)
class OperandTables:
    """Tables that describe an operand, relative to its base.

    low, high: the operand's bytes are in [low, high). granules: the 4-byte words that it occupies,
        each listed once. elements: index of every element if memory is viewed as an array of
        elements.
    """

    low: int
    high: int
    granules: Index
    elements: Index
    aligned: bool


class _Same:
    """Makes an array a key by its identity, and keeps it alive."""

    __slots__ = ("array",)

    def __init__(self, array: Index) -> None:
        self.array = array

    def __hash__(self) -> int:
        return id(self.array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.array is self.array


@lru_cache(maxsize=2048)
def _remembered(key: _Same, element_bytes: int) -> OperandTables:
    return _footprint(key.array, element_bytes)


@lru_cache(maxsize=512)
def _remembered_data(key: _Same, bits: int) -> Index:
    data = _data_only(key.array, bits)
    data.flags.writeable = False
    return data


def _data_only(addresses: Index, bits: int) -> Index:
    return addresses[:, data_bytes(bits, addresses.shape[1])]


def _footprint(addresses: Index, element_bytes: int) -> OperandTables:
    return OperandTables(
        low=int(addresses.min()) if addresses.size else 0,
        high=int(addresses.max()) + element_bytes if addresses.size else 0,
        granules=distinct(addresses // 4),
        elements=addresses // element_bytes,
        aligned=not (addresses % element_bytes).any(),
    )
