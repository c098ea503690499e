"""Calls native code of compiled functions through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType

import numpy as np

from tcir.machine.jit.external import External
from tcir.machine.jit.kinds import RESULTS, ArgumentKind, Key, flatten
from tcir.machine.jit.native import address, code_key, link
from tcir.threads import cached_property

_SUCCESS = (0, -2)
"""Result of native code for None, where it could also be a value."""

Entry = Callable[..., int]


class CompiledCalls:
    """A function that is compiled once for each combination of argument types with which it is
    called.

    A call from Python takes no keyword arguments. It returns None or a number, according to the
    function's annotation.
    """

    def __init__(self, function: FunctionType, fma: bool) -> None:
        self.function, self.fma = function, fma
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        returned = function.__annotations__["return"]
        self.returned: str = getattr(returned, "__name__", str(returned))
        self._entries: dict[tuple[Key, ...], Entry] = {}

    def __call__(self, *args: object) -> bool | int | float | None:
        values: list[int | float] = []
        keys = tuple([flatten(arg, values) for arg in args])
        entry = self._entries.get(keys)
        if entry is None:
            entry = self._entries[keys] = self._link([ArgumentKind(*key) for key in keys])
        result, error = RESULTS[self.returned](), ctypes.c_void_p()
        status = entry(ctypes.byref(result), ctypes.byref(error), *values)
        if status not in _SUCCESS:
            raise RuntimeError(f"{self.__name__}: native code ended with {status}")
        value: int | float | None = result.value
        return bool(value) if self.returned == "bool" else value

    @cached_property
    def _numba_type_(self) -> object:
        """Numba type of this function in the functions that call it."""
        from tcir.machine.jit.compiling import type_of

        return type_of(self.function, self.fma)

    def _link(self, kinds: list[ArgumentKind]) -> Entry:
        name = f"{self.__name__}-{code_key(*_contents(self), kinds)}"

        def make() -> bytes:
            from tcir.machine.jit.compiling import object_code

            return object_code(self.function, self.fma, kinds, self.returned, name)

        link(Path(self.function.__code__.co_filename), name, make)
        flat = [one for kind in kinds for one in kind.flat]
        called = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *flat)
        return called(address(name))


def _contents(compiled: CompiledCalls) -> Iterator[str]:
    """All that the code of a function depends on."""
    yield f"{compiled.fma} {compiled.returned}"
    yield from _constants(compiled.function.__code__, compiled.function.__globals__)


def _constants(code: CodeType, scope: dict[str, object]) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_varnames} {code.co_names}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _constants(constant, scope)
        else:
            yield repr(constant)
    for name in code.co_names:
        value = scope.get(name)
        if isinstance(value, CompiledCalls):
            yield from _contents(value)
        elif isinstance(value, External):
            yield value.text
        elif isinstance(value, np.ndarray):
            yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
        elif isinstance(value, int | float | str | tuple):
            yield repr(value)
