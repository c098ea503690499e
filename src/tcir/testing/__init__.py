"""Assertions for tests of kernels, to be run on machines with a GPU of the kernels' target."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcir.errors import InputError
from tcir.interp import OutputSpec

if TYPE_CHECKING:  # a GPU's computer may have no MLIR
    from tcir.kernel import Kernel

Array = NDArray[Any]
_UNWRITTEN = 0xA5
"""Initial bytes of results; the machine reports elements that a kernel does not write."""


def assert_same_as_gpu(kernel: Kernel, *inputs: Array, order_seed: int | None = None) -> None:
    """Asserts that a GPU and the simulated machine compute the same bits for `inputs`.

    inputs:     numpy arrays of the kernel's shapes and types; memory for results is allocated
    order_seed: seed of the order in which the simulated machine completes asynchronous operations;
        results must not depend on it

    Raises AssertionError for the first difference. Raises InputError for a kernel with approximate
    functions, whose bits no document defines. Without a GPU of the target, raises the error of
    `tcir.runtime.launch`.
    """
    approximate = re.search(r"^\s*(?:@\S+\s+)?(\w+\.approx\S*)", kernel.ptx, re.MULTILINE)
    if approximate:
        raise InputError(
            f"@{kernel.name}: expected a kernel whose results are defined bit for bit, got "
            f"{approximate[1]} (PTX ISA gives only an error bound for its result); use tc-run "
            "PROGRAM --bundle DIR, which compares with a bound"
        )
    wanted, got = ([_result(each) for each in kernel.signature.outputs] for _ in range(2))
    kernel(*inputs, *wanted, order_seed=order_seed)
    kernel.launch(*inputs, *got)
    for number, (ours, theirs) in enumerate(zip(wanted, got, strict=True)):
        off = (_bytes(ours) != _bytes(theirs)).any(axis=-1)
        if off.any():
            first = np.unravel_index(int(off.argmax()), ours.shape)
            at = ", ".join(map(str, first))
            raise AssertionError(
                f"@{kernel.name}: result {number}[{at}]: the machine has {ours[first]}, the GPU "
                f"{theirs[first]}; {int(off.sum())} of {off.size} elements differ"
            )


def _result(spec: OutputSpec) -> Array:
    size = prod(spec.shape) * spec.dtype.itemsize
    return np.full(size, _UNWRITTEN, np.uint8).view(spec.dtype).reshape(spec.shape)


def _bytes(array: Array) -> Array:
    """Bytes of the elements, one row per element."""
    return np.frombuffer(array.tobytes(), np.uint8).reshape(array.size, array.itemsize)
