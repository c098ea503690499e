"""Derives the undefined bits of a result from the undefined bits of the operands, as
MemorySanitizer does.

`Bits` are the undefined bits of a value in each lane, as bytes. A `Flow` is a function that
computes the undefined bits of a result. Bits that it cannot determine exactly count as undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.lanes import FULL
from tcir.interp.ptx.lanes import bits as lane_mask
from tcir.machine.memory.undefined import Origin

Bits = NDArray[np.uint8]
"""Undefined bits: uint8 [32, bytes of the value]; of a predicate one byte, 0 or 0xFF."""
Function = Callable[..., Any]
Flow = Callable[[Function, Sequence[np.ndarray], Sequence[Bits], np.dtype], Bits]
"""(fn, values, their undefined bits, type of the result) -> undefined bits of fn(*values)."""
PredicateFlow = Callable[[Function, Sequence[np.ndarray], Sequence[Bits]], NDArray[np.bool_]]
"""(fn, values, their undefined bits) -> the lanes in which fn(*values) is undefined."""


@dataclass(frozen=True)
class Unknown:
    """Undefined bits of a register, and the origin of some of these bits."""

    bits: Bits
    origin: Origin

    @property
    def lanes(self) -> int:
        """Mask of the lanes with an undefined bit."""
        return lane_mask(undefined_lanes(self.bits))


def undefined_lanes(bits: Bits) -> NDArray[np.bool_]:
    """Mask of the lanes with an undefined bit."""
    return np.asarray(bits.any(axis=1))


def words(bits: Bits) -> np.ndarray:
    """Views the bits as unsigned numbers of the same size."""
    return np.ascontiguousarray(bits).view(f"u{bits.shape[1]}")[:, 0]


def octets(values: np.ndarray) -> Bits:
    """Views one number per lane as its bytes."""
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)


def as_bits(lanes: NDArray[np.bool_]) -> Bits:
    """Converts the undefined bits of a predicate to those of a number."""
    return np.where(lanes, np.uint8(0xFF), np.uint8(0))[:, None]


def whole(fn: Function, values: Sequence[np.ndarray], bits: Sequence[Bits], out: np.dtype) -> Bits:
    """Flow of an instruction for which one undefined bit makes the whole result undefined."""
    return as_bits(any_bit(fn, values, bits)).repeat(out.itemsize, axis=1)


def elements(size: int) -> Flow:
    """Flow of an instruction on packed elements of `size` bytes: one undefined bit makes the same
    element of the result undefined.
    """

    def flow(
        fn: Function, values: Sequence[np.ndarray], bits: Sequence[Bits], out: np.dtype
    ) -> Bits:
        count = out.itemsize // size
        lost = np.zeros((32, count), bool)
        for operand in bits:
            lost |= operand.reshape(32, count, -1).any(axis=2)
        return np.where(lost, np.uint8(0xFF), np.uint8(0)).repeat(size, axis=1)

    return flow


def packed(size: int) -> Flow:
    """Flow of an instruction that packs one element of `size` bytes from each operand, the last
    operand in the lowest bits.
    """

    def flow(
        fn: Function, values: Sequence[np.ndarray], bits: Sequence[Bits], out: np.dtype
    ) -> Bits:
        parts = [as_bits(undefined_lanes(b)).repeat(size, axis=1) for b in reversed(bits)]
        return np.concatenate(parts, axis=1)

    return flow


def joined(fn: Function, values: Sequence[np.ndarray], bits: Sequence[Bits], out: np.dtype) -> Bits:
    """Undefined bits of the result of an instruction that concatenates its operands, the first
    operand in the lowest bits."""
    return np.concatenate(bits, axis=1)


def mixed(size: int) -> Callable[[Sequence[Bits]], Bits]:
    """Flow like `whole`, for operands of different sizes and a result of `size` bytes."""
    return lambda bits: as_bits(any_bit(np.add, (), bits)).repeat(size, axis=1)


def upward(fn: Function, values: Sequence[np.ndarray], bits: Sequence[Bits], out: np.dtype) -> Bits:
    """Flow of sums and products: an undefined bit affects its own and higher bits only, as carries
    do.
    """
    total = np.zeros(32, np.uint64)
    for operand in bits:
        total |= words(operand)
    lowest = total & (~total + np.uint64(1))
    return octets(np.where(total == 0, np.uint64(0), ~(lowest - np.uint64(1))))[:, : out.itemsize]


def bitwise(data: int) -> Flow:
    """Flow of an instruction in which each result bit depends on one bit of each of the first
    `data` operands.

    The other operands select the operation: in a lane in which one of them has an undefined bit,
    the whole result is undefined. The flow is exact: it finds the result bits that change when
    undefined bits are taken as 0 or as 1.
    """

    def flow(
        fn: Function, values: Sequence[np.ndarray], bits: Sequence[Bits], out: np.dtype
    ) -> Bits:
        choices = [(0, 1) if n < data and b.any() else (0,) for n, b in enumerate(bits)]
        results = [
            np.asarray(fn(*map(_assumed, values, bits, choice))).astype(out, casting="unsafe")
            for choice in product(*choices)
        ]
        first = octets(results[0])
        changed = np.zeros_like(first)
        for other in results[1:]:
            changed |= first ^ octets(other)
        for control in bits[data:]:
            changed[control.any(axis=1)] = 0xFF
        return changed

    return flow


def _assumed(value: np.ndarray, bits: Bits, choice: int) -> np.ndarray:
    """The value with its undefined bits taken for 0s or for 1s."""
    unsigned, unknown = value.view(f"u{bits.shape[1]}"), words(bits)
    return (unsigned | unknown if choice else unsigned & ~unknown).view(value.dtype)


def equal(fn: Function, values: Sequence[np.ndarray], bits: Sequence[Bits]) -> NDArray[np.bool_]:
    """Lanes in which the result of == or != is undefined because the defined bits do not decide
    it.
    """
    unknown = words(bits[0]) | words(bits[1])
    dtype = unknown.dtype
    differ = (values[0].view(dtype) ^ values[1].view(dtype)) & ~unknown
    return np.asarray((unknown != 0) & (differ == 0))


def ordered(fn: Function, values: Sequence[np.ndarray], bits: Sequence[Bits]) -> NDArray[np.bool_]:
    """Lanes in which the result of an ordered comparison of integers is undefined: the smallest and
    largest values that the undefined bits allow compare differently.
    """
    extremes = []
    for value, unknown in zip(values, bits, strict=True):
        ends = [_assumed(value, unknown, choice) for choice in (0, 1)]
        if value.dtype.kind == "i":  # an undefined sign of 1 is the least, not the greatest
            sign = unknown & octets(np.full(32, np.iinfo(value.dtype).min, value.dtype))
            ends = [(end.view(words(sign).dtype) ^ words(sign)).view(value.dtype) for end in ends]
        extremes.append(ends)
    results = [np.asarray(fn(*choice)) for choice in product(*extremes)]
    return np.logical_or.reduce([result != results[0] for result in results])


def any_bit(fn: Function, values: Sequence[np.ndarray], bits: Sequence[Bits]) -> NDArray[np.bool_]:
    """Lanes in which an operand has an undefined bit."""
    return np.asarray(np.logical_or.reduce([undefined_lanes(b) for b in bits]))


def varying(fn: Callable[..., int], *operands: tuple[int, int]) -> int:
    """Lanes in which the result of `fn` depends on undefined bits. operands: predicates, each as
    lane masks (value, undefined lanes)
    """
    choices = [
        {value & ~unknown, value | unknown} if unknown else {value} for value, unknown in operands
    ]
    results = [fn(*choice) for choice in product(*choices)]
    changed = 0
    for other in results[1:]:
        changed |= results[0] ^ other
    return changed & FULL
