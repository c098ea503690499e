"""Derives the compiled kernel of an instruction from the instruction's numpy function."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import FunctionType

import numpy as np
from numpy.typing import DTypeLike

from tcir.interp.ptx.kernels.template import PREFIX, vector
from tcir.interp.ptx.kernels.traced import Function, traced
from tcir.interp.ptx.syntax import Type
from tcir.machine.jit import native
from tcir.threads import cached_property

MOST_SOURCES = 3
Dtypes = tuple[np.dtype, ...]


@dataclass(frozen=True)
class DerivedKernel:
    """Machine code that computes one result of an instruction. module: its LLVM IR, which defines
    the function `name`
    """

    name: str
    module: str

    @cached_property
    def address(self) -> int:
        """Address of the machine code, which is compiled on first use."""
        link([self])
        return native.address(PREFIX + self.name)


def link(kernels: Iterable[DerivedKernel]) -> None:
    """Compiles the machine code of these kernels and links them together."""
    native.link_texts(Path(__file__), {one.name: one.module for one in kernels})


def kernels(fn: Function, sources: Dtypes, results: Dtypes) -> tuple[DerivedKernel, ...] | None:
    """Returns one kernel for each result of a function of arrays with these dtypes. Returns None if
    the function cannot be traced, or has more operands than a kernel can have.
    """
    return _derived(_Rule(_contents(fn), sources, results, fn))


@dataclass(frozen=True)
class _Rule:
    """Key of a function's computation; each instruction of a program has a function object of its
    own."""

    contents: object
    sources: Dtypes
    results: Dtypes
    fn: Function = field(compare=False)


@lru_cache(maxsize=1 << 12)
def _derived(rule: _Rule) -> tuple[DerivedKernel, ...] | None:
    if len(rule.sources) > MOST_SOURCES:
        return None
    found = []
    for which, result in enumerate(rule.results):
        code = traced(rule.fn, rule.sources, result, which)
        if code is None:
            return None
        kinds = tuple(map(_stored, rule.sources))
        name = hashlib.sha256("\n".join((*kinds, *code.lines)).encode()).hexdigest()[:16]
        text = vector(name, _stored(result), kinds, "\n".join(code.lines))
        found.append(DerivedKernel(name, "\n".join([*sorted(code.declared), text])))
    return tuple(found)


def _stored(dtype: np.dtype) -> str:
    """The LLVM type of a lane in a register; a predicate has a byte."""
    return {"f2": "half", "f4": "float", "f8": "double"}.get(
        dtype.str[1:], f"i{8 * dtype.itemsize}"
    )


def _contents(of: object) -> object:
    """What a value depends on: functions of equal contents compute the same. One that closes over
    something else than numbers, names, types and functions is equal to itself only."""
    if isinstance(of, FunctionType):
        cells = tuple(_contents(cell.cell_contents) for cell in of.__closure__ or ())
        defaults = _contents(of.__defaults__), _contents(tuple((of.__kwdefaults__ or {}).items()))
        return of.__code__, of.__module__, cells, defaults
    if isinstance(of, tuple):
        return tuple(map(_contents, of))
    if isinstance(of, Type):
        return of
    if of is None or isinstance(of, _PLAIN):
        return type(of), of
    return _Itself(of)


_PLAIN = (int, float, str, type, np.ufunc, np.dtype, np.generic)


@dataclass(frozen=True, eq=False)
class _Itself:
    """Compares an object by identity, and keeps it alive so that no other object takes its
    address."""

    of: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.of is self.of

    def __hash__(self) -> int:
        return id(self.of)


def one_kernel(fn: Function, result: DTypeLike, *sources: DTypeLike) -> DerivedKernel:
    """Returns the kernel of a traceable function with one result."""
    found = kernels(fn, tuple(map(np.dtype, sources)), (np.dtype(result),))
    assert found is not None
    return found[0]


NOT, COPY = (one_kernel(fn, "?", "?") for fn in (np.logical_not, np.copy))
AND, XOR = (one_kernel(fn, "?", "?", "?") for fn in (np.logical_and, np.logical_xor))
"""Of predicates."""
SELECT = {
    size: one_kernel(
        lambda x, y, test: np.where(test, x, y), f"u{size}", f"u{size}", f"u{size}", "?"
    )
    for size in (1, 2, 4, 8)
}
"""Kernels by bytes per lane that select the first source where a predicate is true, else the
second."""
