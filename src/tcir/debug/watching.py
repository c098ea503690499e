"""Stopping after a write to an element of an argument, or to an address."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tcir.debug.control import AtWrite
from tcir.debug.difference import array_of
from tcir.debug.writers import locate, words
from tcir.errors import LaunchError
from tcir.interp.ptx.launch import LaunchState
from tcir.machine import Machine
from tcir.machine.memory.memories import Buffer
from tcir.machine.order.clocks import Access
from tcir.run import RunReport


@dataclass(frozen=True)
class Watch:
    """Stop after a write to an element of an array argument, or to an address of global memory.

    argument, index: the number of the argument (from 0) and the element; address: instead of them.
    hit: of which write.
    """

    argument: int = 0
    index: tuple[int, ...] = ()
    address: int | None = None
    hit: int = 1

    def __str__(self) -> str:
        if self.address is not None:
            return f"address {self.address:#x}"
        return f"argument {self.argument} at [{', '.join(map(str, self.index))}]"

    def check(self, args: Sequence[object]) -> None:
        """LaunchError if there is no such element; an address is looked up in the launch."""
        if self.hit < 1:
            raise LaunchError(f"watch: expected hit=1 or more, got {self.hit}")
        if self.address is not None:
            return
        array = array_of(args[self.argument]) if 0 <= self.argument < len(args) else None
        if array is None:
            raise LaunchError(f"watch: argument {self.argument} is no array")
        fits = len(self.index) == array.ndim and all(
            0 <= i < n for i, n in zip(self.index, array.shape, strict=True)
        )
        if not fits:
            raise LaunchError(
                f"watch: expected an index of argument {self.argument}, which is "
                f"{array.dtype.name}{list(array.shape)}, got {list(self.index)}"
            )

    def value(self, machine: Machine, args: Sequence[object]) -> str:
        """What is there: an element, or four bytes."""
        buffer, place, size = self._place(machine, args)
        data = buffer.data[place : place + size]
        if self.address is not None:
            return "0x" + bytes(data[::-1]).hex()
        array = array_of(args[self.argument])
        assert array is not None
        return str(data.view(array.dtype)[0])

    def writer(self, machine: Machine, args: Sequence[object]) -> Access | None:
        """The last write to it; None: none yet."""
        buffer, place, size = self._place(machine, args)
        if buffer.shadow is None:
            return None
        span = slice(place // buffer.granule, (place + size - 1) // buffer.granule + 1)
        found: list[Access] = buffer.shadow.writers_at(span)
        return found[-1] if found else None

    def _place(self, machine: Machine, args: Sequence[object]) -> tuple[Buffer, int, int]:
        if self.address is not None:
            for buffer in machine.memory.buffers:
                if buffer.base <= self.address < buffer.end:
                    place = self.address - buffer.base
                    return buffer, place, min(4, buffer.data.size - place)
            raise LaunchError(f"watch: no buffer holds the address {self.address:#x}")
        array = array_of(args[self.argument])
        assert array is not None
        return *locate(machine, array, self.index), array.itemsize


def watch(text: str) -> Watch:
    """`N[I,J]` or an address in hexadecimal. Raises LaunchError."""
    element = re.fullmatch(r"(\d+)\[([\d, ]*)\]", text)
    if element:
        index = tuple(int(n) for n in element[2].replace(",", " ").split())
        return Watch(int(element[1]), index)
    if re.fullmatch(r"0x[0-9a-fA-F]+", text):
        return Watch(address=int(text, 16))
    raise LaunchError(f"watch: expected N[I,J] of argument N, or an address 0x…, got {text!r}")


class AtWatch(AtWrite):
    """Stops right after a write to a watched place, and says what it changed."""

    def __init__(self, watch: Watch, args: Sequence[object]) -> None:
        super().__init__(lambda machine: watch.writer(machine, args), watch.hit)
        self.watch, self.args = watch, args
        self._before = ""

    def attach(self, machine: Machine, launch: LaunchState, report: RunReport) -> None:
        super().attach(machine, launch, report)
        self._before = self.watch.value(machine, self.args)

    def poll(self) -> None:
        before = self.count
        super().poll()
        if before != self.count < self.last:
            self._before = self.watch.value(self.machine, self.args)

    def reason(self) -> str:
        access = self.find(self.machine)
        now = self.watch.value(self.machine, self.args)
        by = "" if access is None else f"; written at {words(access)}"
        return f"watch of {self.watch}: {self._before} became {now}{by}"
