"""A whole model as one program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tcir.errors import InputError
from tcir.imported.check import ProgramOrigin, checked, signless
from tcir.interp.types import Array
from tcir.kernel import Kernel
from tcir.program.inputs import Kind
from tcir.session.entry import validate
from tcir.validation.report import Report


@dataclass(frozen=True)
class ModelPart:
    """The ops of a model, and the kernel that computes them.

    mlir:     the program that was compiled
    pipeline: the pipeline that compiled it
    """

    ops: tuple[str, ...]
    kernel: Kernel
    mlir: str
    pipeline: str

    def __str__(self) -> str:
        return lowered(self.ops, self.pipeline, self.kernel)


def lowered(ops: Sequence[str], pipeline: str, kernel: Kernel) -> str:
    """Line of the table for ops that became a kernel."""
    launches = len(kernel.launches.launches)
    return f"{', '.join(ops)}: {pipeline}, {launches} launch{'es' * (launches > 1)}"


P = TypeVar("P")


class PartTable(tuple[P, ...]):
    """Parts of a model; as text, one line per part."""

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    __repr__ = __str__


def run(kernel: Kernel, arrays: Sequence[Array]) -> list[Array]:
    """Runs the kernel on the simulated machine and returns its results. Unsigned integers are
    passed as signed integers with equal bits.
    """
    results = [np.zeros(spec.shape, spec.dtype) for spec in kernel.signature.outputs]
    pairs = zip(arrays, kernel.signature.inputs, strict=True)
    kernel(*(signless(array, spec.dtype) for array, spec in pairs), *results)
    return results


def validated(
    part: ModelPart, source: ProgramOrigin, target: str, seed: int, inputs: Kind, orders: int
) -> Report:
    """Runs `tcir.validate` on a part; its lines follow the line of the import."""
    report = validate(
        part.mlir, part.pipeline, target=target, seed=seed, inputs=inputs, orders=orders
    )
    report.passes.insert(0, checked(source, part.mlir, seed))
    return report


def check_array(name: str, array: object, shape: Sequence[int], dtype: np.dtype) -> Array:
    """Converts an argument to a numpy array. Raises InputError if its shape or type differs.

    Any object with `__array__` is accepted (JAX arrays, tensors on the CPU).
    """
    if not hasattr(array, "__array__"):
        raise InputError(
            f"{name}: expected an array, got {type(array).__module__}.{type(array).__name__}; "
            "np.asarray makes one"
        )
    found = np.asarray(array)
    if found.shape != tuple(shape) or found.dtype != dtype:
        raise InputError(
            f"{name}: expected {dtype}{list(shape)}, as at compile time, got "
            f"{found.dtype}{list(found.shape)}; compile again for others"
        )
    return found
