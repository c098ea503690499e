"""A compiled kernel together with the arrays that it was built from."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar, Unpack

from tcir.arrays.text import FunctionBuilder, TensorValue
from tcir.errors import check_names
from tcir.interp.types import Array
from tcir.kernel import CallOptions, Kernel
from tcir.session.entry import compile as compile_program
from tcir.session.entry import validate as validate_program
from tcir.validation.report import Report
from tcir.validation.settings import ValidateOptions

T = TypeVar("T", bound="ArrayKernel")


@dataclass(repr=False)
class ArrayKernel(Kernel):
    """A `Kernel` built from arrays.

    mlir:     the program as MLIR text, which `tc-opt` accepts
    pipeline: the pipeline that compiled it, with its options
    arrays:   the example inputs, on which `run` runs by default
    """

    mlir: str
    pipeline: str
    arrays: tuple[Array, ...]

    def run(self, *inputs: Array, **options: Unpack[CallOptions]) -> Array | tuple[Array, ...]:
        """Runs the kernel as `Kernel.run` does; without `inputs`, on the arrays from which it was
        built.
        """
        return super().run(*(inputs or self.arrays), **options)

    def validate(self, **settings: Unpack[ValidateOptions]) -> Report:
        """Executes the program after every pass, on generated inputs; see `tcir.validate`."""
        check_names("validate", settings, ValidateOptions)
        return validate_program(self.mlir, self.pipeline, target=self.target, **settings)


def build(
    function: FunctionBuilder,
    results: tuple[TensorValue, ...],
    pipeline: str,
    target: str,
    options: dict[str, Any],
    kind: type[T] = ArrayKernel,  # type: ignore[assignment]
) -> T:
    """Compiles `function`, which returns `results`, with `pipeline` for `target`."""
    text = function.module(*results)
    kernel = compile_program(text, pipeline, target=target, **options)
    made = {each.name: getattr(kernel, each.name) for each in fields(kernel)}
    return kind(**made, mlir=text, pipeline=kernel.report.pipeline, arrays=tuple(function.arrays))
