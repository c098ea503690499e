"""A program prepared for one stream: its code, constants and workspaces on the device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from tcir.program.frozen import split, with_scratch
from tcir.runtime.devices import Device
from tcir.runtime.launch_list import LaunchList
from tcir.runtime.module import shared
from tcir.runtime.resident import resident

if TYPE_CHECKING:
    from tcir.program.launch import LaunchSequence
    from tcir.program.signature import Signature


class CompiledKernel(Protocol):
    """Protocol of a program that can be launched, such as a `tcir.Kernel`."""

    @property
    def name(self) -> str:
        """Name of the program."""

    @property
    def signature(self) -> Signature:
        """Shapes and types of inputs and results."""

    @property
    def launches(self) -> LaunchSequence:
        """Sizes and parameters of each launch, in order."""

    @property
    def cubin(self) -> bytes:
        """Machine code of all kernels."""


Allocate = Callable[[int], tuple[object, int]]
"""Allocates bytes of device memory, aligned to 256 bytes; returns the owner, whose end frees them,
and the address."""


class Prepared:
    """A program prepared for one stream. It may be called many times, by any thread.

    Its workspaces are allocated once and belong to this object. This is safe because calls follow
    each other on the stream; no call waits for another on the host.

    frozen:   indices of the inputs whose contents change rarely. Launches that read only these
              inputs and constants of the program run only when the `state` of a call is new; their
              results are kept
    allocate: the function that allocates the workspaces
    replay:   whether launches may be replayed as CUDA graphs (`LaunchList`)
    """

    def __init__(
        self,
        kernel: CompiledKernel,
        on: Device,
        stream: int,
        allocate: Allocate,
        frozen: Collection[int] = (),
        *,
        replay: bool = False,
    ) -> None:
        inputs, results = len(kernel.signature.inputs), len(kernel.signature.outputs)
        constants = kernel.launches.constants
        callers = inputs + len(constants) + results
        sequence = with_scratch(kernel.launches, callers)
        fixed = (*frozen, *range(inputs, inputs + len(constants))) if frozen else ()
        parts = split(sequence, callers, fixed)
        self._lock = threading.Lock()
        self._state: object = None
        self.module = shared(kernel.cubin, on)
        self._constants = [resident(each, self.module) for each in constants]
        self._kept, kept = allocate(parts.bytes) if parts.bytes else (None, 0)
        placed = sequence.workspaces
        needed = [
            offset + size
            for n, (offset, size) in enumerate(zip(placed.offsets, placed.sizes, strict=True))
            if callers + n not in parts.kept
        ]
        self.arena_bytes, self.kept_bytes = max(needed, default=0), parts.bytes
        self._arena, arena = allocate(self.arena_bytes) if self.arena_bytes else (None, 0)
        self._workspaces = [
            kept + parts.kept[number] if number in parts.kept else arena + offset
            for number, offset in enumerate(placed.offsets, callers)
        ]
        self._once = LaunchList(parts.once, self.module, stream) if parts.once else None
        self._each = LaunchList(parts.each, self.module, stream, replay=replay)

    def __call__(self, inputs: Sequence[int], results: Sequence[int], state: object = None) -> None:
        """Puts the launches on the stream. inputs, results: addresses of the caller's buffers.

        state: an object that changes whenever the contents of a frozen input change between calls;
        None: they may have changed

        `LaunchFailedError` if the driver rejects a launch.
        """
        with self._lock:
            addresses = [*inputs, *self._constants, *results, *self._workspaces]
            if self._once is not None and (state is None or self._state is not state):
                self._state = None  # and if this is interrupted, so it stays
                self._once(addresses)
                self._state = state
            self._each(addresses)
