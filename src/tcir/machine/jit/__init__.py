"""Compiles the inner loops of the simulated machine to native code.

numba compiles a function for the types of its first call. The object code is cached on disk: later
processes link it (`native`) and call it (`calls`) without loading numba. Loading numba would take a
third of a second, and preparing each function would take more.
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
    """Decorator that compiles a `function` of arrays, numbers and tuples of integers. The compiled
    function runs without the global interpreter lock.
    """
    return cast(F, CompiledCalls(cast(FunctionType, function), fma=False))


def fma_jit(function: F) -> F:
    """Decorator like `jit`, for functions whose sums are exact in floating point: the compiler may
    fuse a product and a sum into one instruction.
    """
    return cast(F, CompiledCalls(cast(FunctionType, function), fma=True))
