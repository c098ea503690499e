"""The memory of the tensors that a script passes to CuTe DSL."""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Callable, Sequence

import numpy as np
from cutlass.cute import runtime

from tcir.doors.dlpack import moved_to_gpu
from tcir.doors.memory import Allocations
from tcir.errors import LaunchError
from tcir.storage import outermost


class DlpackMemory:
    """The whole memory of every live tensor of `cute.runtime.from_dlpack`.

    contents:  records which bytes are initialised
    addressed: finds memory that the script passes only by its address, such as torch's `data_ptr`,
               among the arguments or in a table of addresses
    """

    addressed: Callable[[Sequence[np.ndarray]], list[np.ndarray]] | None = None

    def __init__(self, contents: Allocations) -> None:
        self.contents = contents
        self._tensors: dict[int, np.ndarray] = {}
        self._allocated: dict[int, np.ndarray] = {}
        initialise = runtime._Tensor.__init__

        def keep(tensor: object, data: object, *given: object, **named: object) -> None:
            named.pop("enable_tvm_ffi", None)  # see `DirectCalls`
            initialise(tensor, data, *given, **named)
            # CuTe DSL compiles other code for CPU memory
            moved_to_gpu(tensor._dlpack_data)  # type: ignore[attr-defined]
            self._tensors[id(tensor)] = whole(data)
            weakref.finalize(tensor, self._tensors.pop, id(tensor), None)

        runtime._Tensor.__init__ = keep

    def allocate(self, size: int) -> int:
        """Allocates memory for the script; returns its address."""
        array = np.empty(size, np.uint8)
        self.contents.allocated(array.ctypes.data, size)
        self._allocated[array.ctypes.data] = array
        return array.ctypes.data

    def release(self, base: int) -> bool:
        """Frees memory of `allocate`; returns whether `base` was allocated."""
        self.contents.freed(base)
        return self._allocated.pop(base, None) is not None

    def arrays(self, words: np.ndarray) -> list[np.ndarray]:
        """All known memory in order of address, without arrays that lie inside another.

        words: 64-bit integers among the arguments of a launch
        """
        known = [*self._tensors.values(), *self._allocated.values()]
        if self.addressed is not None:
            known += self.addressed([words, *known])
        found: list[np.ndarray] = []
        for array in sorted(filter(np.size, known), key=lambda a: (a.ctypes.data, -a.nbytes)):
            if not (found and array.ctypes.data < found[-1].ctypes.data + found[-1].nbytes):
                found.append(array)
        return found


def whole(data: object) -> np.ndarray:
    """The whole memory that contains a tensor's elements. Raises LaunchError for a tensor that is
    not on the CPU.
    """
    if isinstance(data, np.ndarray):
        data = outermost(data)
        if data.flags.c_contiguous:
            return data
        low, high = np.lib.array_utils.byte_bounds(data)
        kept = (ctypes.c_uint8 * (high - low)).from_address(low)
        kept.owner = data  # type: ignore[attr-defined]
        return np.ctypeslib.as_array(kept)
    if "torch" in sys.modules and isinstance(data, sys.modules["torch"].Tensor):
        import torch

        if hasattr(data, "fake_mode"):  # its shape is all that there is of it
            return np.empty(0, np.uint8)
        storage = data.untyped_storage()
        if storage.device.type != "cpu":
            raise LaunchError(f"expected tensors on the CPU, got one on {storage.device}")
        raw = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage).numpy()
        return raw.view(f"u{data.element_size()}") if raw.size % data.element_size() == 0 else raw
    try:
        return whole(np.from_dlpack(data))  # type: ignore[arg-type]
    except Exception as error:
        raise LaunchError(
            f"expected numpy or torch tensors on the CPU, got {type(data).__name__}: {error}"
        ) from None
