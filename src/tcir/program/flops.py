"""Number of floating-point operations of a program on tensors: the multiplications and additions of
its sums of products, by kind.

For attention, both products are counted, over the scores that the mask does not exclude.

The kind is that of the ``tcgen05.mma`` instruction for the operand types.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tcir.dialect import tc
from tcir.dialect.limits import MMA_KIND_OF
from tcir.interp.types import is_integer
from tcir.program.access import SumOfProducts, product_of
from tcir.program.factors import source_of
from tcir.program.memory_image import PACKED_BITS
from tcir.program.programs import Program, programs_on_tensors
from tcir.program.signature import POWERS

if TYPE_CHECKING:
    from tcir._mlir import ir

OTHER = "other"
"""Kind of operations on types that no tensor core multiplies."""


def flops_in(module: ir.Module) -> list[tuple[str, int]]:
    """Returns, for each sum of products in a module of functions on tensors, its kind and its
    number of operations.
    """
    return [each for program in programs_on_tensors(module) for each in flops_of(program)]


def flops_of(program: Program) -> list[tuple[str, int]]:
    """Returns, for each sum of products in a program on tensors, its kind and its number of
    operations.
    """
    found = []
    for op in (each.operation for each in program.op.operation.regions[0].blocks[0]):
        if isinstance(op.opview, tc.AttentionOp):
            found += _of_attention(op.opview)
            continue
        if isinstance(op.opview, tc.AttentionBackwardOp):
            kind = MMA_KIND_OF[str(op.opview.element)]
            found.append((kind, _of_gradients(op.opview)))
            continue
        product = product_of(op)
        if product is not None and len(product.factors) > 1:
            results = prod(op.results[0].type.shape)
            found.append((_kind(product), 2 * results * _length(product)))
    return found


def _of_attention(op: tc.AttentionOp) -> list[tuple[str, int]]:
    """Kind and operations of both products of all heads."""
    extents, kind = op.extents(), MMA_KIND_OF[op.powers]
    each = 2 * extents["b"] * extents["h"] * op.scores()
    of_scores = op.scaled_kind if isinstance(op, tc.BlockScaledAttentionOp) else kind
    if of_scores == kind:
        return [(kind, each * (extents["d"] + extents["e"]))]
    return [(of_scores, each * extents["d"]), (kind, each * extents["e"])]


def _of_gradients(op: tc.AttentionBackwardOp) -> int:
    """Operations of the products of scores, of their gradients, and of each result."""
    of = op.extents()
    scores = op.band.scores(range(of["m"]), of["n"])
    widths = of["d"] + of["e"] + of["d"] + (0 if op.of_queries else of["e"])
    return 2 * of["b"] * of["h"] * scores * widths


def _length(product: SumOfProducts) -> int:
    """Number of products in a sum."""
    extents: dict[int, int] = {}
    for _, access in product.factors:
        for n, index in zip(access.shape, access.dims, strict=True):
            if index is not None and index[0] not in product.parallel:
                extents[index[0]] = max(n * index[1], extents.get(index[0], 1))
    return prod(extents.values())


def _kind(product: SumOfProducts) -> str:
    types = [source_of(value, access.dims)[2] for value, access in product.factors]
    scales = len(types) > 2  # wider than what they scale, or powers of two
    powers = [each for each in types if each.name == POWERS]
    operands = sorted((t for t in types if t not in powers), key=_bits)[:2] if scales else types
    widest = max(map(_bits, operands))
    if all(is_integer(each) for each in operands):
        return "i8" if widest == 8 else OTHER
    if widest == 16 and len(set(operands)) == 1:
        return "f16"
    if widest > 8:
        return "tf32" if widest <= 32 else OTHER
    if not scales:
        return "f8f6f4"
    return "mxf8f6f4" if widest > 4 else "mxf4" if powers else "mxf4nvf4"


def _bits(dtype: np.dtype[Any]) -> int:
    return PACKED_BITS.get(dtype, 8 * dtype.itemsize)
