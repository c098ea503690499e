"""Records in `Allocations` the memory that scripts allocate with `numpy.empty` and `empty_like`."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from unittest.mock import patch

import numpy as np

from tcir.doors.memory import Allocations

_FILLED_AT_ONCE = {"numpy", "tcir"}
"""Packages whose own calls are not recorded, since they fill the memory at once."""


@contextmanager
def noise_in_empty(memory: Allocations) -> Iterator[None]:
    """Context in which `numpy.empty` and `empty_like` return memory recorded as uninitialised.

    `Allocations` detects later writes to this memory by numpy or C code.
    """

    def noisy(make: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        @wraps(make)
        def made(*args: object, **named: object) -> np.ndarray:
            array = make(*args, **named)
            caller = sys._getframe(1).f_globals.get("__name__", "")
            whole = array.base is None and not array.dtype.hasobject and array.flags.forc
            if whole and caller.split(".")[0] not in _FILLED_AT_ONCE:
                kept = weakref.ref(array)
                memory.allocated(array.ctypes.data, array.nbytes, lambda: kept() is not None)
            return array

        return made

    with ExitStack() as stack:
        for name in ("empty", "empty_like"):
            stack.enter_context(patch.object(np, name, noisy(getattr(np, name))))
        yield
