"""Results of a program before any pass, and the bound on a kernel's results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcir.errors import InputError
from tcir.interp.types import Array
from tcir.validation.settings import Settings
from tcir.validation.validator import begin

if TYPE_CHECKING:
    from tcir._mlir import ir


@dataclass(frozen=True)
class Reference:
    """The inputs as kernels receive them, the results of the input program, and the bound of each
    result, which is the largest allowed error of each element.
    """

    inputs: list[Array]
    results: list[Array]
    errors: list[Array]


def reference_of(module: ir.Module, settings: Settings) -> Reference:
    """Executes the program of `module`. Raises InputError if its results have no bound."""
    validation = begin(module, settings)
    line, draw = validation.input, validation.main
    if line.verdict != "reference" or draw.bound is None:
        why = str(line.difference or draw.no_bound or line.compared)
        raise InputError(f"expected results with a bound on their rounding, got none: {why}")
    return Reference(draw.images, draw.reference, draw.bound.errors)
