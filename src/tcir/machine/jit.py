"""Just-in-time compilation of the few inner loops of the machine.

Compiled code is cached on disk next to the package, or in the user's cache directory. Where neither
can be written, numba refuses to cache at all; then each process compiles for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile `function` without the interpreter lock; cache it where a cache can be written."""
    compiled: Any
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
        compiled = numba.njit(nogil=True)(function)
    return cast(F, compiled)
