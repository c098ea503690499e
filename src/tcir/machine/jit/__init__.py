"""The few inner loops of the machine as native code.

numba compiles a function for the types of its first call. Its object code is kept on disk, so that
later processes link it (`native`) and call it (`calls`) without loading numba, which would take a
third of a second, and more for each function.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TypeVar, cast

from tcir.machine.jit.calls import CompiledCalls
from tcir.machine.jit.external import External

__all__ = ["External", "fma_jit", "jit"]

F = TypeVar("F", bound=Callable[..., object])


def jit(function: F) -> F:
    """Compiles a `function` of arrays, numbers and tuples of integers; it runs without the
    interpreter lock."""
    return cast(F, CompiledCalls(cast(FunctionType, function), fma=False))


def fma_jit(function: F) -> F:
    """Compiles like `jit`, for sums that are exact: a product and a sum may become one
    instruction."""
    return cast(F, CompiledCalls(cast(FunctionType, function), fma=True))
