"""Walks ops in program order."""

from __future__ import annotations

from collections.abc import Iterator

from tcir._mlir import ir


def walk(op: ir.OpView | ir.Operation) -> Iterator[ir.OpView]:
    """Yields ``op`` and every op inside it in program order; an op comes before the ops in its
    regions."""
    yield op.operation.opview
    yield from nested(op)


def nested(op: ir.OpView | ir.Operation) -> Iterator[ir.OpView]:
    """Yields every op inside the regions of ``op`` in program order; an op comes before the ops in
    its own regions."""
    for region in op.operation.regions:
        for block in region:
            for inner in block:
                yield inner
                yield from nested(inner)
