"""Epilogues: what a kernel does to its sums between tensor memory and the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tcir._mlir import arith, ir, vector
from tcir.passes.build.index import Index

Epilogue: TypeAlias = "Callable[[ir.Value, Sequence[Index]], ir.Value]"
"""``epilogue(sums, at)``: the register tile to store, as many lanes and columns as `sums`, a register
tile of the accumulator; `at`: where its first column goes in the output, an index per dimension: of
lane 0, or of every lane (``vector<32xindex>``) where lanes have places of their own."""


def rounded(element: ir.Type) -> Epilogue:
    """The sums, rounded to `element` if it is narrower."""

    def epilogue(sums: ir.Value, at: Sequence[Index]) -> ir.Value:
        if sums.type.element_type == element:
            return sums
        return arith.truncf(ir.VectorType.get(sums.type.shape, element), sums)

    return epilogue


def scaled(alpha: ir.Value, element: ir.Type) -> Epilogue:
    """The sums times `alpha`, an f32, rounded to `element`."""
    finish = rounded(element)

    def epilogue(sums: ir.Value, at: Sequence[Index]) -> ir.Value:
        return finish(arith.mulf(sums, vector.broadcast(sums.type, alpha)), at)

    return epilogue
