"""Swizzles with which accesses to shared tiles have no bank conflicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.fragments import MATRIX_ROWS, ROW_BYTES, WORD_BYTES, elements, matrices
from tcir.dialect.limits import WARP
from tcir.layout.banks import conflicts

CANDIDATES = (
    (0, 0, 0),
    *((bits, 4, shift) for shift in (3, 4, 5, 6) for bits in (1, 2, 3) if bits <= shift),
    *((bits, 5, shift) for shift in (2, 3, 4) for bits in (1, 2) if bits <= shift),
)
"""(bits, base, shift), the simplest first; base 4 moves pieces of 16 bytes, base 5 of 32."""


def choose_swizzle(
    shape: list[int], element: ir.Type, major: str, width: int, atom: str, operand: str, via: str
) -> tuple[tuple[int, int, int], int]:
    """The first swizzle with the fewest bank conflicts, and the number of these conflicts.

    Conflicts are counted over one warp's copies into the tile and all its loads of one atom's rows.
    Other warps and atoms need not be counted, because their addresses differ from these by
    multiples that no candidate swizzle changes.
    """
    best: tuple[tuple[int, int, int], int] | None = None
    for candidate in CANDIDATES:
        tile = tc.StagedType.build(shape, element, major, candidate)
        bits, base, shift = candidate
        if bits and 1 << (base + shift + bits) > tile.nbytes:
            continue
        count = sum(conflicts(a, w) for a, w in _copies(tile, width))
        count += conflicts_of(tile, atom, operand, via)
        if best is None or count < best[1]:
            best = candidate, count
        if count == 0:
            break
    assert best is not None  # the first candidate fits every tile
    return best


def conflicts_of(tile: tc.StagedType | tc.SmemType, atom: str, operand: str, via: str) -> int:
    """Number of bank conflicts of one warp's loads from a tile that TMA or threads fill."""
    return sum(conflicts(a, w) for a, w in _reads(tile, atom, operand, via))


def _copies(tile: tc.StagedType, width: int) -> Iterator[tuple[list[int], int]]:
    """(addresses of the threads, bytes of each) of one warp's copies."""
    bytes_ = tc.element_bytes(tile.element)
    inner = tile.pitch // bytes_
    copies = min(WARP, tile.nbytes // width)
    starts = [divmod(t * width // bytes_, inner) for t in range(copies)]
    yield [_at(tile, outer, column) for outer, column in starts], width


def _reads(
    tile: tc.StagedType | tc.SmemType, atom: str, operand: str, via: str
) -> Iterator[tuple[list[int], int]]:
    """(addresses of the threads, bytes of each) of one warp's loads of one atom's rows."""
    bytes_ = tc.element_bytes(tile.element)
    held = elements(atom, operand)
    columns = max(k for register in held for lane in register for _, k in lane) + 1
    for first in range(0, tile.shape[1], columns):
        for register in range(len(held)):
            if via == "loads":
                yield from _loads(tile, held[register], first, bytes_)
                continue
            rows = matrices(atom, operand)
            assert rows is not None
            at = rows[register]
            yield (
                [
                    tile.offset(at.mn + r, first + at.k)
                    if via == "ldmatrix"
                    else tile.offset(at.mn, first + at.k + r)
                    for r in range(MATRIX_ROWS)
                ],
                ROW_BYTES,
            )


def _loads(
    tile: tc.StagedType | tc.SmemType,
    held: Sequence[Sequence[tuple[int, int]]],
    first: int,
    bytes_: int,
) -> Iterator[tuple[list[int], int]]:
    for i in range(len(held[0])):
        words = [tile.offset(lane[i][0], first + lane[i][1]) for lane in held]
        yield [a - a % WORD_BYTES for a in words], WORD_BYTES


def _at(tile: tc.StagedType, outer: int, inner: int) -> int:
    mn, k = (outer, inner) if tile.major == "K" else (inner, outer)
    offset: int = tile.offset(mn, k)
    return offset
