"""Functions of the thread's number that are linear over XOR in its bits, such as addresses in
swizzled tiles.

If the extents of a tile are powers of two, an address in the tile is linear over the bits of its
coordinates, and so is its swizzle. If the coordinates are linear in the bits of the thread's
number, the address is an XOR of one constant for each set bit of that number. A constant part of
the coordinates is one more XOR, or a plain offset if it changes none of the bits that the thread's
number can set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tcir._mlir import arith, ir
from tcir.errors import PassError

from .converter import Converter


@dataclass(frozen=True)
class LinearMap:
    """A function of the thread's number: the XOR of ``columns[b]`` over the set bits b of that
    number."""

    columns: tuple[int, ...]

    @staticmethod
    def of(function: Callable[[int], int], threads: int) -> LinearMap:
        """Converts a function of the thread's number to this form; raises PassError if it is not
        linear."""
        columns = tuple(function(1 << bit) for bit in range((threads - 1).bit_length()))
        made = LinearMap(columns)
        for thread in range(threads):
            if function(thread) != made(thread):
                raise PassError(
                    f"expected an address that is an XOR of the bits of the thread's number, got "
                    f"{function(thread)} for thread {thread}, {made(thread)} by its bits"
                )
        return made

    def __call__(self, thread: int) -> int:
        value = 0
        for bit, column in enumerate(self.columns):
            if thread >> bit & 1:
                value ^= column
        return value

    @property
    def mask(self) -> int:
        """Mask of the bits that can be set in a result."""
        value = 0
        for column in self.columns:
            value |= column
        return value

    def emit(self, converter: Converter) -> ir.Value:
        """Emits the value for the executing thread, at the kernel's entry."""
        key = ("linear", self.columns)
        if key not in converter.at_entry:
            with ir.InsertionPoint.after(converter.lane.owner):
                converter.at_entry[key] = self._build(converter)
        return converter.at_entry[key]

    def _build(self, converter: Converter) -> ir.Value:
        value = converter.constant(0)
        bit = 0
        while bit < len(self.columns):
            # Neighbouring bits that go to neighbouring places move together.
            end = bit + 1
            first = self.columns[bit]
            taken = first
            while end < len(self.columns) and self.columns[end] == first << (end - bit):
                if not first or taken & self.columns[end]:
                    break  # a product adds where XOR does not
                taken |= self.columns[end]
                end += 1
            if first:
                moved = _field(converter, bit, end - bit)
                if first != 1:
                    moved = arith.MulIOp(moved, converter.constant(first)).result
                value = arith.XOrIOp(value, moved).result
            bit = end
        return value


def _field(converter: Converter, low: int, count: int) -> ir.Value:
    """``thread >> low`` modulo ``2^count``."""
    value = converter.thread
    if low:
        value = arith.ShRUIOp(value, converter.constant(low)).result
    return arith.AndIOp(value, converter.constant((1 << count) - 1)).result


@dataclass(frozen=True)
class ThreadOffset:
    """The number ``linear(thread) ^ constant``, divided into a number for each thread and a plain
    offset."""

    linear: LinearMap
    constant: int

    def emit(self, converter: Converter) -> tuple[ir.Value, int]:
        """Emits the thread's value at the kernel's entry; returns that value and the constant to
        add to it."""
        mask = self.linear.mask
        mixed = self.constant & mask
        base = self.linear.emit(converter)
        if mixed:
            key = ("xor", self.linear.columns, mixed)
            if key not in converter.at_entry:
                with ir.InsertionPoint.after(base.owner):
                    made = arith.XOrIOp(base, converter.constant(mixed)).result
                converter.at_entry[key] = made
            base = converter.at_entry[key]
        return base, self.constant & ~mask
