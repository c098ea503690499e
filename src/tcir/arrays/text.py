"""Builds the text of a `linalg` function op by op."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import DTypeLike

from tcir.errors import InputError
from tcir.interp.types import DTYPES, Array
from tcir.program.ways_out import to_array, to_type

NAMES = {np.dtype(dtype): name for name, dtype in reversed(DTYPES.items())}
"""MLIR element types by numpy type."""


@dataclass(frozen=True)
class TensorValue:
    """A tensor value in the text of the function."""

    name: str
    shape: tuple[int, ...]
    element: str

    @property
    def type(self) -> str:
        """The tensor's type in MLIR."""
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element}>"

    def __str__(self) -> str:
        return self.name


@dataclass
class FunctionBuilder:
    """A function under construction: the text so far, and the arrays of its arguments."""

    name: str
    arguments: list[TensorValue] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def argument(self, name: str, array: object, rank: Sequence[int] = ()) -> TensorValue:
        """Adds an argument. Raises InputError for an object that is not an array of a supported
        type with one of these ranks."""
        if not isinstance(array, np.ndarray | np.generic):
            way_out = to_array(array)
            raise InputError(
                f"{self.name}: {name}: expected a numpy array, got {type(array).__name__}"
                + (way_out and f"; {way_out}")
            )
        array = np.asarray(array)
        if array.dtype not in NAMES:
            way_out = to_type(array)
            raise InputError(
                f"{self.name}: {name}: expected elements of {', '.join(map(str, NAMES))}, "
                f"got {array.dtype}" + (way_out and f", {way_out}")
            )
        if rank and array.ndim not in rank:
            raise InputError(
                f"{self.name}: {name}: expected {' or '.join(map(str, rank))} dimensions, "
                f"got shape {list(array.shape)}"
            )
        value = TensorValue(f"%{name}", array.shape, NAMES[array.dtype])
        self.arguments.append(value)
        self.arrays.append(array)
        return value

    def op(self, text: str, shape: Sequence[int], element: str) -> TensorValue:
        """Adds an op and returns its result; in `text`, ``{type}`` stands for the result's type."""
        result = TensorValue(f"%{next(self._numbers)}", tuple(shape), element)
        self.lines.append(f"{result} = {text.replace('{type}', result.type)}")
        return result

    def constant(self, number: float, element: str) -> str:
        """Adds a scalar constant and returns its name."""
        name = f"%c{next(self._numbers)}"
        spelled = f"{int(number)}" if element.startswith("i") else f"{number!r}"
        self.lines.append(f"{name} = arith.constant {spelled} : {element}")
        return name

    def empty(self, shape: Sequence[int], element: str) -> TensorValue:
        """Adds an uninitialised tensor."""
        return self.op("tensor.empty() : {type}", shape, element)

    def zeros(self, shape: Sequence[int], element: str) -> TensorValue:
        """Adds a tensor of zeros."""
        zero, empty = self.constant(0.0, element), self.empty(shape, element)
        text = f"linalg.fill ins({zero} : {element}) outs({empty} : {empty.type}) -> {{type}}"
        return self.op(text, shape, element)

    def linalg(
        self, name: str, ins: Sequence[TensorValue], out: TensorValue, attributes: str = ""
    ) -> TensorValue:
        """Adds a named `linalg` op that accumulates into `out`."""
        operands = f"{', '.join(map(str, ins))} : {', '.join(each.type for each in ins)}"
        text = f"linalg.{name} {attributes}ins({operands}) outs({out} : {out.type}) -> {{type}}"
        return self.op(text, out.shape, out.element)

    def module(self, *results: TensorValue) -> str:
        """Text of a module with the function, which returns `results`."""
        types = ", ".join(each.type for each in results)
        given = ", ".join(f"{each}: {each.type}" for each in self.arguments)
        body = "\n".join(f"  {line}" for line in self.lines)
        names = ", ".join(map(str, results))
        return (
            f"func.func @{self.name}({given}) -> ({types}) {{\n{body}\n"
            f"  return {names} : {types}\n}}\n"
        )


def element_of(function: str, out: DTypeLike | str, legal: Sequence[str]) -> str:
    """The MLIR name of a result's element type. Raises InputError if the type is not one of
    `legal`."""
    try:
        name = NAMES[np.dtype(DTYPES.get(str(out), out))]
    except (TypeError, ValueError, KeyError):
        name = str(out)
    if name not in legal:
        raise InputError(f"{function}: out: expected one of {', '.join(legal)}, got {name}")
    return name
