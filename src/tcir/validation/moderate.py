"""Inputs for deep programs: numbers for which sums of products are about 1, as in trained networks.

With whole numbers or standard normal weights, the activations grow with each layer until
exponentials are saturated and results are NaN, and a comparison shows nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tcir.interp.types import Array
from tcir.program.access import product_of
from tcir.program.factors import inputs_of, source_of
from tcir.program.programs import find_program
from tcir.program.signature import Signature

if TYPE_CHECKING:
    from tcir._mlir import ir

WORDS = "normal numbers, sums of products about 1, vectors around 1"
_DRAWN = ("float16", "bfloat16", "float32", "float64")
_AROUND = (1 / 2, 3 / 2)
"""Interval of numbers in vectors: scales, biases, means and variances of normalisations."""


def moderate_inputs(
    module: ir.Module, signature: Signature, inputs: Sequence[Array], seed: int, gain: float = 1.0
) -> list[Array]:
    """Replaces the floats of `inputs`. Arrays of two or more dimensions get normal numbers,
    multiplied by `gain` and divided by the square root of the number of products in a sum that
    multiplies them. Vectors and scalars get numbers from 1/2 to 3/2.
    """
    block = find_program(module, signature.name).op.operation.regions[0].blocks[0]
    scales = _scales(block)
    generator = np.random.default_rng(seed)
    made: list[Array] = []
    for array, spec in zip(inputs, signature.inputs, strict=True):
        number = len(made)
        if spec.dtype.name not in _DRAWN or spec.says_where:
            made.append(array)
        elif array.ndim < 2:
            made.append(generator.uniform(*_AROUND, array.shape).astype(spec.dtype))
        else:
            drawn = generator.standard_normal(array.shape, np.float32)
            made.append((drawn * (gain * scales.get(number, 1.0))).astype(spec.dtype))
    return made


def _scales(block: ir.Block) -> dict[int, float]:
    """The factor of each input that is multiplied, by its number: with the other factor about 1,
    the sums are."""
    arguments = inputs_of(block)
    scales: dict[int, float] = {}
    for each in block:
        product = product_of(each.operation)
        if product is None:
            continue
        summed, given = 1, set()
        for value, access in product.factors:
            loops = zip(access.shape, access.dims, strict=True)
            mine = [n for n, at in loops if at is not None and at[0] not in product.parallel]
            summed = max(summed, math.prod(mine))
            source, *_ = source_of(value, access.dims)
            if source in arguments:
                given.add(arguments.index(source))
        for number in given:
            scale = summed ** (-1 / 2 / len(given))
            scales[number] = min(scale, scales.get(number, scale))
    return scales
