"""The main loop of kernels that keep their sums in fragments, in the registers of warps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tcir._mlir import ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import UNSIGNED
from tcir.passes.emit import index

Made = TypeVar("Made", bound=ir.OpView)


def sums_over(
    kinds: Sequence[tc.FragmentType],
    steps: int,
    multiply: Callable[[ir.Value, Sequence[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """Emits the sums of a tile as fragments, one for each type in `kinds`, which a loop of `steps`
    iterations carries.

    ``multiply(step, before)`` loads the operands of a step, and adds its products to the sums
    `before`::

        %zero = "tc.zero_fragment"()
        %sums = scf.for %step = … iter_args(%before = %zero) { …; scf.yield %after }
    """
    zeros = [tc.ZeroFragmentOp(kind).fragment for kind in kinds]
    loop = scf.ForOp(index.value(0), index.value(steps), index.value(1), zeros)
    with ir.InsertionPoint(loop.body):
        scf.YieldOp(list(multiply(loop.induction_variable, list(loop.inner_iter_args))))
    return list(loop.results)


def signed_as(op: ir.OpView, product: Made) -> Made:
    """Marks integers of `product` as signed or unsigned, as they are in the product `op`, and
    returns it."""
    if UNSIGNED in op.attributes:
        product.attributes[UNSIGNED] = op.attributes[UNSIGNED]
    return product
