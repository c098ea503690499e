"""Edits of programs of CTA pairs: ways in which the two CTAs can miss each other."""

from __future__ import annotations

from typing import Any

from tcir._mlir import arith, ir

from .breaking import Edit, pick, walk

UNORDERED = ("hazard", "illegal", "deadlock")


def other_rank(rank: Any) -> Any:
    """The rank of the other CTA."""
    return arith.subi(arith.constant(rank.type, 1), rank)


def first_half(rank: Any) -> Any:
    """0 for both."""
    return arith.constant(rank.type, 0)


def of_rank(make: Any) -> Edit:
    """Another value in place of the CTA's rank."""

    def edit(module: Any) -> None:
        rank = pick(module, "tc.cta_rank").results[0]
        (use,) = rank.uses
        with ir.InsertionPoint(use.owner), use.owner.location:
            use.owner.operands[use.operand_number] = make(rank)

    return edit


def without(name: str, attribute: str, index: int = 0) -> Edit:
    """Takes an attribute from an operation."""

    def edit(module: Any) -> None:
        del pick(module, name, index).attributes[attribute]

    return edit


def with_unit(name: str, attribute: str, index: int = 0) -> Edit:
    """Gives an operation a unit attribute."""

    def edit(module: Any) -> None:
        pick(module, name, index).attributes[attribute] = ir.UnitAttr.get()

    return edit


def of_cta(index: int) -> Edit:
    """A barrier of the CTA in place of the cluster's."""

    def edit(module: Any) -> None:
        op = pick(module, "tc.cluster_barrier", index)
        ir.Operation.create("tc.cta_barrier", loc=op.location, ip=ir.InsertionPoint(op))
        op.erase()

    return edit


def both_issue(module: Any) -> None:
    """What the leader alone waits for, multiplies and commits, both do."""
    for name in ("tc.mbarrier_wait", "tc.fence", "tc.mma", "tc.commit"):
        for op in walk(module, name):
            if "leader" in op.attributes:
                del op.attributes["leader"]
