"""Finds the last writer of an element of global memory in the accesses that the simulated machine
recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tcir.debug.control import Follower
from tcir.interp.ptx.interpreter import WarpInterpreter
from tcir.interp.ptx.op import Blocking
from tcir.machine.order.clocks import EARLIER, Access
from tcir.machine.order.involved import issuer


def locate(machine: Any, array: np.ndarray, index: tuple[int, ...]) -> tuple[Any, int]:
    """The machine's buffer that holds an element, and the element's byte offset in it."""
    start = array.__array_interface__["data"][0]
    flat = int(np.ravel_multi_index(index, array.shape)) if array.ndim else 0
    address = start + flat * array.itemsize
    for buffer in machine.memory.buffers:
        base = buffer.data.__array_interface__["data"][0]
        if base <= address < base + buffer.data.size:
            return buffer, address - base
    raise ValueError("expected an array that is an argument of the run, got another")


def last_writer(machine: Any, array: np.ndarray, index: tuple[int, ...]) -> Access | None:
    """The last write to an element; None if it was never written."""
    buffer, place = locate(machine, array, index)
    if buffer.shadow is None:
        return None
    first, last = place // buffer.granule, (place + array.itemsize - 1) // buffer.granule
    found: list[Access] = buffer.shadow.writers_at(slice(first, last + 1))  # in order of time
    return found[-1] if found else None


def words(access: Access) -> str:
    """The instruction of an access, and the warp or engine that executed it, if recorded."""
    if access.component == EARLIER:
        return str(access.site)
    cta, number = issuer(access.component)
    return f"{access.site} by {'TMA' if number is None else f'warp {number}'} of CTA {cta}"


class LastWriters(Follower):
    """Keeps the simulated machine of a run, so that writers can be looked up later."""

    passive = True

    def follow(self, interpreter: WarpInterpreter) -> Blocking:
        return interpreter.run()  # no warp is looked at

    def unwritten(self, array: np.ndarray) -> int:
        """Number of bytes of an uninitialised argument that were not written."""
        if not array.size:
            return 0
        buffer, _ = locate(self.machine, array, (0,) * array.ndim)
        return 0 if buffer.defined is None else int((~buffer.defined).sum())

    def stored(self, array: np.ndarray) -> np.ndarray:
        """Mask of the written bytes of an uninitialised argument."""
        buffer, _ = locate(self.machine, array, (0,) * array.ndim)
        assert buffer.defined is not None
        return buffer.defined.copy()

    def finder(self, array: np.ndarray) -> Callable[[tuple[int, ...]], str]:
        """Returns a function that maps an element's index to the instruction that wrote it last."""

        def find(index: tuple[int, ...]) -> str:
            access = last_writer(self.machine, array, index)
            return "nothing wrote it" if access is None else f"written at {words(access)}"

        return find
