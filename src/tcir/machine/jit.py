"""Just-in-time compilation of the few inner loops of the machine.

Compiled code is cached on disk next to the package, or in the user's cache directory. Where neither
can be written, numba refuses to cache at all; then each process compiles for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile `function` without the interpreter lock; cache it where a cache can be written."""
    return cast(F, _cached(partial(numba.njit, nogil=True), function))


def fma_jit(function: F) -> F:
    """As `jit`, for sums that are exact: a product and a sum may be one instruction."""
    return cast(F, _cached(partial(numba.njit, nogil=True, fastmath={"contract"}), function))


def elementwise(function: Callable[..., float]) -> Callable[..., np.ndarray]:
    """Compile a function of numbers to one of arrays, with numpy's broadcasting."""
    return cast("Callable[..., np.ndarray]", _cached(numba.vectorize, function))


def _cached(compiler: Callable[..., Any], function: Callable[..., Any]) -> Any:
    try:
        return compiler(cache=True)(function)
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
        return compiler()(function)
