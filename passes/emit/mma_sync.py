"""Builds ``mma.sync`` as inline assembly."""

from __future__ import annotations

from collections.abc import Sequence

from tcir._mlir import ir, llvm


def mma_sync(
    shape: tuple[int, int, int],
    types: tuple[str, str],
    a: Sequence[ir.Value],
    b: Sequence[ir.Value],
    c: Sequence[ir.Value],
) -> list[ir.Value]:
    """Emits ``a · b + c`` and returns its registers. types: types of A and B, as PTX names them"""
    element = c[0].type
    text, constraints = _text(shape, *types, str(element) == "i32", [len(a), len(b), len(c)])
    result = llvm.StructType.get_literal([element] * len(c))
    made = llvm.inline_asm(result, [*a, *b, *c], text, constraints, has_side_effects=True).result
    return [llvm.extractvalue(element, made, n) for n in range(len(c))]


def _text(
    shape: tuple[int, int, int], a: str, b: str, integers: bool, counts: Sequence[int]
) -> tuple[str, str]:
    """The instruction and its constraints; counts: registers of A, B and C."""
    m, n, k = shape
    total = "s32" if integers else "f32"
    numbers = iter(range(2 * counts[2] + counts[0] + counts[1]))
    operands = [
        "{" + ", ".join(f"${next(numbers)}" for _ in range(count)) + "}"
        for count in (counts[2], *counts)
    ]
    text = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{total}.{a}.{b}.{total} {', '.join(operands)};"
    letter = "r" if integers else "f"
    constraints = [f"={letter}"] * counts[2] + ["r"] * (counts[0] + counts[1])
    return text, ",".join([*constraints, *[letter] * counts[2]])
