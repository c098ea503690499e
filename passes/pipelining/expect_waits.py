"""expect-waits: marks branches that lead to a wait on an mbarrier as likely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.passmanager.pipeline import Pass, register_pass

WEIGHTS = (63, 1)
"""Weights of the wait and of the way around it, which the last step of a tile takes."""


@register_pass
@dataclass(frozen=True)
class ExpectWaits(Pass):
    """Adds weights to branches that can skip a wait on an mbarrier.

    Before, where ``^wait`` ends in the loop that polls the barrier::

        llvm.cond_br %more, ^wait, ^behind

    After::

        llvm.cond_br %more weights([63, 1]), ^wait, ^behind

    Without weights LLVM considers both targets equally likely and places the end of the loop before
    its start. ptxas allocates registers in that order and then spills the partial sums of fp8
    products. Changes only the weights.
    """

    name: ClassVar[str] = "expect-waits"

    def run(self, module: ir.Module) -> None:
        for function in _functions(module.operation):
            for block in function.regions[0]:
                end = _terminator(block)
                if end.name == "llvm.cond_br" and _waits(*end.successors):
                    end.attributes["branch_weights"] = ir.DenseI32ArrayAttr.get(WEIGHTS)


def _functions(op: ir.Operation) -> list[ir.Operation]:
    """The llvm.func with a body in the gpu.module of a module."""
    found = []
    for inner in (each.operation for block in op.regions[0] for each in block.operations):
        if inner.name == "gpu.module":
            found += _functions(inner)
        elif inner.name == "llvm.func" and len(inner.regions[0].blocks):
            found.append(inner)
    return found


def _terminator(block: ir.Block) -> ir.Operation:
    return list(block.operations)[-1].operation


def _waits(way: ir.Block, around: ir.Block) -> bool:
    """Whether one way only leads to a block that asks again until the answer is yes, and from
    there to where the other one leads."""
    end = _terminator(way)
    if end.name != "llvm.br":
        return False
    (asking,) = end.successors
    ways = list(_terminator(asking).successors)
    left = [block for block in ways if block != asking]
    return len(ways) - len(left) == len(left) == 1 and _onwards(left[0]) == _onwards(around)


def _onwards(block: ir.Block) -> ir.Block:
    """The block behind one that only branches."""
    (first, *more) = block.operations
    return first.operation.successors[0] if first.name == "llvm.br" and not more else block
