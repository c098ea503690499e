"""Registry of the host functions that Python computes, and helpers by which they access memory by
address.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from tcir.cuda.program import ProgramDevice

FAILED = 719
"""Status of a function that raised an exception; libraries have no such number."""
FIRST = 1 << 12
"""The first handle."""

LETTERS: dict[str, tuple[str, type]] = {
    "p": ("void *", ctypes.c_void_p),
    "i": ("int", ctypes.c_int),
    "z": ("size_t", ctypes.c_size_t),
    "l": ("long long", ctypes.c_longlong),
    "d": ("double", ctypes.c_double),
    "f": ("float", ctypes.c_float),
}
"""Types of parameters by letter: in C, and for Python."""
Thing = TypeVar("Thing")


class HostCall:
    """A call of a host function. Its arguments are attributes with the names of the function's
    parameters; a null pointer is 0.

    device: the program's device
    """

    def __init__(self, device: ProgramDevice, names: Iterable[str], values: Iterable[int]) -> None:
        self.device = device
        self._values = dict(zip(names, values, strict=True))

    def __getattr__(self, name: str) -> int:
        if name not in self._values:
            raise AttributeError(name)
        return self._values[name] or 0

    def write(self, to: np.ndarray, source: np.ndarray | float) -> int:
        """Copies to the device's memory; returns the status 0."""
        to[...] = source
        low, high = np.lib.array_utils.byte_bounds(to)
        self.device.launches.memory.wrote(low, high - low)
        return 0


Host = Callable[[HostCall], int]


@dataclass(frozen=True)
class HostFunction:
    """A host function that returns the library's status or, if `text` is set, the address of a
    text.

    parameters: name and type letter of each parameter
    waits: whether the function enqueues work on a stream; a stream capture would have to record
        this work
    """

    parameters: tuple[tuple[str, str], ...]
    call: Host
    text: bool = False
    waits: bool = False

    def bound(self, device: ProgramDevice, name: str) -> ctypes._CFunctionType:
        """C function that calls this function."""
        names = [each for each, _ in self.parameters]
        result = ctypes.c_void_p if self.text else ctypes.c_int

        def call(*values: int) -> int:
            return device.guarded(name, lambda: self.call(HostCall(device, names, values)), FAILED)

        return ctypes.CFUNCTYPE(result, *(LETTERS[kind][1] for _, kind in self.parameters))(call)

    def stub(self, name: str, number: int) -> str:
        """C source of the function, which calls entry `number` of `tcir_functions`."""
        types = [LETTERS[letter][0] for _, letter in self.parameters]
        given = ", ".join(f"{kind} a{n}" for n, kind in enumerate(types))
        values = ", ".join(f"a{n}" for n in range(len(types)))
        result = "const char *" if self.text else "int"
        check = f'if (tcir_capturing()) tcir_missing("{name}, in a stream capture"); '
        return (
            f"{result} {name}({given}) {{ {check if self.waits else ''}"
            f"return (({result} (*)({', '.join(types)}))tcir_functions[{number}])({values}); }}"
        )


FUNCTIONS: dict[str, HostFunction] = {}


def function(
    *names: str, given: str, text: bool = False, waits: bool = False
) -> Callable[[Host], Host]:
    """Decorator that registers a function under one or several names. given: its parameters, such
    as "handle:p n:i".
    """
    parts = (each.partition(":") for each in given.split())
    parameters = tuple((name, letter) for name, _, letter in parts)

    def register(call: Host) -> Host:
        for name in names:
            FUNCTIONS[name] = HostFunction(parameters, call, text, waits)
        return call

    return register


def succeeds(*names: str, given: str) -> None:
    """Registers functions that do nothing and report success."""
    function(*names, given=given)(lambda call: 0)


class Objects(dict[int, Thing]):
    """Objects to which programs refer by a handle."""

    def made(self, where: int, thing: Thing, kind: str = "<u8") -> int:
        """Writes the handle of a new object to an address; returns the status 0."""
        handle = FIRST + len(self)
        self[handle] = thing
        array(where, 1, kind)[0] = handle
        return 0


def array(address: int, count: int, kind: str | np.dtype) -> np.ndarray:
    """The elements at an address of the host."""
    dtype = np.dtype(kind)
    memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
    return np.ctypeslib.as_array(memory).view(dtype)


def strided(address: int, count: int, step: int, kind: str) -> np.ndarray:
    """`count` elements that are `step` apart. With a negative step, the last element comes first in
    memory (as in BLAS).
    """
    if count == 0:
        return np.zeros(0, kind)
    found = array(address, (count - 1) * abs(step) + 1, kind)[:: abs(step) or 1]
    return found[::-1] if step < 0 else found


def matrix(address: int, rows: int, columns: int, leading: int, kind: str) -> np.ndarray:
    """A column-major matrix [rows, columns] whose columns are `leading` elements apart."""
    if rows == 0 or columns == 0:
        return np.zeros((rows, columns), kind)
    found = array(address, leading * (columns - 1) + rows, kind)
    step = found.itemsize
    return np.lib.stride_tricks.as_strided(found, (rows, columns), (step, leading * step))


_TEXTS: dict[str, ctypes.Array[ctypes.c_char]] = {}


def text_at(words: str) -> int:
    """Address of a copy of a text that is never freed."""
    buffer = _TEXTS.setdefault(words, ctypes.create_string_buffer(words.encode()))
    return ctypes.addressof(buffer)
