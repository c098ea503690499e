"""Computes those inputs of a backward pass that are results of the forward pass, from the other
inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tcir.dialect import tc
from tcir.interp.bands import allowed
from tcir.interp.tensor.attention import attended
from tcir.interp.tensor.attention_backward import heads_of
from tcir.interp.types import Array
from tcir.program.boundary.targets import drawn_of
from tcir.program.programs import find_program

if TYPE_CHECKING:
    from tcir._mlir import ir
    from tcir.program.signature import Signature

Following: TypeAlias = Callable[[Sequence[Array]], "list[Array]"]
"""Replaces the inputs that follow from others."""


def following(module: ir.Module, signature: Signature) -> Following:
    """Returns a function that computes the logarithms and row sums of each
    ``tc.attention_backward`` whose operands are all inputs of the program. With arbitrary
    logarithms, the exponentials would overflow.
    """
    if signature.level != "tensor":
        return list
    block = find_program(module, signature.name).op.operation.regions[0].blocks[0]
    arguments = drawn_of(block, signature)
    ops = [each for each in block if isinstance(each, tc.AttentionBackwardOp)]
    ops = [each for each in ops if set(each.operation.operands) <= set(arguments)]

    def replaced(inputs: Sequence[Array]) -> list[Array]:
        found = list(inputs)
        for op in ops:
            places = [arguments.index(each) for each in op.operation.operands]
            sums = _forward(op, *(found[place] for place in places[:4]))
            for place, array in zip(places[4:], sums, strict=True):
                found[place] = array.astype(np.float32)
        return found

    return replaced


def _forward(
    op: tc.AttentionBackwardOp, q: Array, k: Array, v: Array, dout: Array
) -> tuple[Array, Array]:
    """``lse`` and ``delta`` of the forward pass, in float64."""
    of = op.extents()
    q, k, v, dout = heads_of(op, q, k, v, dout)
    with np.errstate(all="ignore"):
        scores = q @ k.swapaxes(-1, -2) * op.factor
        out, lse = attended(
            np.where(allowed(of["m"], of["n"], of["n"], op.band), scores, -np.inf), v
        )
        return lse, (dout * out).sum(axis=-1)
