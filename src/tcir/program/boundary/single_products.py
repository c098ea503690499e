"""Inputs for which each sum has a single non-zero product, so that the sum is exact in any order.

The sums of a product with constants cannot be chosen. But if an input has one non-zero number per
sum, each sum is a single product. Four kinds of numbers are used: small odd numbers, whose products
often are ties of the result type; numbers with all bits of their type; small numbers, for subnormal
results; and zeros. The addends are subnormal, so that they matter only if the product is zero or
small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tcir.interp import OutputSpec
from tcir.interp.types import Array
from tcir.program.access import SumOfProducts, product_of
from tcir.program.boundary.targets import boundaries_of
from tcir.program.factors import inputs_of, source_of
from tcir.program.slices import is_drawn
from tcir.program.spans import info_of

if TYPE_CHECKING:
    from tcir._mlir import ir

ALL_BITS = np.inf
_NUMBERS = ((3, 0), (ALL_BITS, 0), (5, -4), (0, 0), (3, -16), (ALL_BITS, 4), (1, 0), (5, -19))
"""(number, exponent) of the sums in turn: odd numbers, ALL_BITS for any number with all bits, and
0."""


def with_single_products(
    block: ir.Block, specs: Sequence[OutputSpec], drawn: Sequence[Array], seed: int
) -> list[Array] | None:
    """Returns `drawn` with inputs replaced so that each sum has a single non-zero product; None if
    no product of the program allows it."""
    generator = np.random.default_rng(seed)
    arguments = inputs_of(block)
    made, added = dict[int, Array](), dict[int, Array]()
    for op in (each.operation for each in block):
        product = product_of(op)
        if product is None or len(product.factors) != 2:
            continue
        number = _factor(product, arguments, specs)
        if number is not None and number not in made:
            made[number] = _single(product, arguments[number], specs[number], generator)
            for n, neutral in boundaries_of(block, arguments, op.results[0]).neutral.items():
                if not neutral and n < len(specs) and specs[n].shape and is_drawn(specs[n]):
                    added[n] = _subnormals(specs[n], generator)
    return [(added | made).get(n, array) for n, array in enumerate(drawn)] if made else None


def _factor(
    product: SumOfProducts, arguments: Sequence[ir.Value], specs: Sequence[OutputSpec]
) -> int | None:
    """Returns the number of the input that is one factor if the other factor is a constant; else
    None."""
    sources = [source_of(value, access.dims)[0] for value, access in product.factors]
    inputs = list(arguments)[: len(specs)]
    constant = [_is_constant(source, inputs) for source in sources]
    given = next((s for s, known in zip(sources, constant[::-1]) if known and s in inputs), None)
    number = None if given is None else inputs.index(given)
    return number if number is not None and is_drawn(specs[number]) else None


def _is_constant(value: ir.Value, inputs: Sequence[ir.Value]) -> bool:
    """Whether a value is a constant, or an argument that no caller passes."""
    from tcir._mlir import ir

    if isinstance(value.owner, ir.Block):
        return value not in inputs
    return str(value.owner.operation.name) == "arith.constant"


def _single(
    product: SumOfProducts, argument: ir.Value, spec: OutputSpec, generator: np.random.Generator
) -> Array:
    """Draws an input with one non-zero number per sum: at one index of the reduction loops; for
    windows at pixels as far apart as the filter is long."""
    found = [source_of(value, access.dims) for value, access in product.factors]
    side = next(n for n, (source, _, _) in enumerate(found) if source == argument)
    dims, (other, beside, _) = found[side][1], found[1 - side]
    shared = {index for index in dims if index is not None}
    filters = [
        n
        for n, index in zip(other.type.shape, beside, strict=True)
        if index is not None and index not in shared and index[0] not in product.parallel
    ]
    far = max(filters, default=1)
    summed = [n for n, i in enumerate(dims) if i is not None and i[0] not in product.parallel]
    rows = [n for n in range(len(dims)) if n not in summed]
    counts = [-(-spec.shape[n] // far) if dims[n] is None else spec.shape[n] for n in rows]
    places = list(np.indices(counts).reshape(len(rows), -1))
    places = [
        place * far if dims[n] is None else place for n, place in zip(rows, places, strict=True)
    ]
    count = math.prod(counts)
    at = [
        places[rows.index(n)] if n in rows else generator.integers(0, extent, count)
        for n, extent in enumerate(spec.shape)
    ]
    array = np.zeros(spec.shape)
    array[tuple(at)] = _numbers(spec, count, generator)
    return array.astype(spec.dtype)


def _numbers(spec: OutputSpec, count: int, generator: np.random.Generator) -> Array:
    odd, exponents = np.resize(np.array(_NUMBERS), (count, 2)).T
    low = int(np.log2(float(info_of(spec.dtype).smallest_subnormal)))
    size = np.where(odd == ALL_BITS, generator.uniform(1, 2, count), odd)
    signs = 1.0 if spec.unsigned else generator.choice([-1.0, 1.0], count)
    return np.asarray(signs * size * 2.0 ** np.maximum(exponents, low))


def _subnormals(spec: OutputSpec, generator: np.random.Generator) -> Array:
    small = float(info_of(spec.dtype).smallest_subnormal)
    signs = 1.0 if spec.unsigned else generator.choice([-1.0, 1.0], spec.shape)
    return np.asarray(signs * small * generator.integers(1, 4, spec.shape), np.float64).astype(
        spec.dtype
    )
