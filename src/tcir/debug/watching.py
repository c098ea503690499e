"""Stops after a write to an element of an argument, or to an address."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tcir.debug.control import AtWrite, Follower
from tcir.debug.difference import array_of
from tcir.debug.watching_ctas import SharedWatch, TensorWatch, cta_watch
from tcir.debug.writers import locate, words
from tcir.errors import LaunchError
from tcir.interp.ptx.launch import LaunchState
from tcir.machine import Machine
from tcir.machine.memory.memories import Buffer
from tcir.machine.order.clocks import Access
from tcir.run import RunReport


@dataclass(frozen=True)
class Watch:
    """A stop after a write to an element of an array argument, or to an address of global memory.

    argument: number of the argument, from 0
    index:    index of the element
    address:  an address, instead of argument and index
    hit:      number of the write to stop after, from 1
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
        """Raises LaunchError if the element does not exist; an address is checked during the
        launch."""
        if self.hit < 1:
            raise LaunchError(f"watch: expected hit=1 or more, got {self.hit}")
        if self.address is not None:
            return
        array = array_of(args[self.argument]) if 0 <= self.argument < len(args) else None
        if array is None:
            raise LaunchError(f"watch: argument {self.argument} is not an array")
        fits = len(self.index) == array.ndim and all(
            0 <= i < n for i, n in zip(self.index, array.shape, strict=True)
        )
        if not fits:
            raise LaunchError(
                f"watch: expected an index of argument {self.argument}, which is "
                f"{array.dtype.name}{list(array.shape)}, got {list(self.index)}"
            )

    def start(self, seen: Follower) -> None:
        """Does nothing, because `check` has already checked the watch."""

    def value(self, seen: Follower, args: Sequence[object]) -> str:
        """Formats the watched value: an element, or four bytes."""
        buffer, place, size = self._place(seen.machine, args)
        data = buffer.data[place : place + size]
        if self.address is not None:
            return "0x" + bytes(data[::-1]).hex()
        array = array_of(args[self.argument])
        assert array is not None
        return str(data.view(array.dtype)[0])

    def writer(self, seen: Follower, args: Sequence[object]) -> Access | None:
        """The last write to the watched place; None if there has been no write."""
        buffer, place, size = self._place(seen.machine, args)
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


Watched = Watch | SharedWatch | TensorWatch
"""A watched place."""
FORMS = (
    "N[I,J] of argument N, an address 0x…, smem[0xADDRESS], smem:TYPE[0xADDRESS], "
    "smem:TYPE@0xTILE,COLUMNS,SWIZZLE[ROW,COLUMN] or tmem[LANE,COLUMN]"
)


def watch(text: str) -> Watched:
    """Parses one of `FORMS`, then `,hit=N` and, for a CTA's memories, `,cta=X.Y.Z`. Raises
    LaunchError."""
    place, options = text, {}
    while found := re.fullmatch(r"(.*),(hit|cta)=([\d.]+)", place):
        place, options[found[2]] = found[1], found[3]
    hit, of = options.get("hit", "1"), options.get("cta", "0.0.0")
    if not hit.isdigit() or not re.fullmatch(r"\d+(\.\d+){0,2}", of):
        raise LaunchError(f"watch: expected hit=N and cta=X.Y.Z, got {text!r}")
    x, y, z = (*map(int, of.split(".")), 0, 0)[:3]
    watched = cta_watch(place, (x, y, z), int(hit))
    if watched is not None:
        return watched
    element = re.fullmatch(r"(\d+)\[([\d, ]*)\]", place)
    address = re.fullmatch(r"0x[0-9a-fA-F]+", place)
    if "cta" in options or not (element or address):
        raise LaunchError(f"watch: expected {FORMS}, got {text!r}")
    if element:
        index = tuple(int(n) for n in element[2].replace(",", " ").split())
        return Watch(int(element[1]), index, hit=int(hit))
    return Watch(address=int(place, 16), hit=int(hit))


class AtWatch(AtWrite):
    """Stops right after a write to a watched place, and reports the change."""

    def __init__(self, watch: Watched, args: Sequence[object]) -> None:
        super().__init__(lambda _: watch.writer(self, args), watch.hit)
        self.watch, self.args = watch, args
        self._before = ""

    def attach(self, machine: Machine, launch: LaunchState, report: RunReport) -> None:
        super().attach(machine, launch, report)
        self.watch.start(self)
        self._before = self.watch.value(self, self.args)

    def poll(self) -> None:
        before = self.count
        super().poll()
        if before != self.count < self.last:
            self._before = self.watch.value(self, self.args)

    def reason(self) -> str:
        access = self.find(self.machine)
        now = self.watch.value(self, self.args)
        by = "" if access is None else f"; written at {words(access)}"
        return f"watch of {self.watch}: {self._before} became {now}{by}"
