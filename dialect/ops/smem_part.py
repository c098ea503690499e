"""Views of a shared tile: a part, which another CTA or load may fill, and its transpose."""

from tcir._mlir import ext, ir
from tcir.dialect.attributes import constant_of, defining
from tcir.dialect.limits import SWIZZLE_ATOM_ROWS
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, verify
from tcir.dialect.types import SmemType, element_bytes

HALF_BYTES = 2
"""Bytes of an element that the tensor core transposes."""


class SmemPartOp(Op, name="smem_part", pure=True):
    """Part ``number`` of a shared tile that is cut into equal parts along M or N. The part is
    itself a tile.

    The result's type gives the part's extent: ``number`` must be less than the extent of the tile
    divided by the extent of a part, and the part begins at row ``number`` times its extent.
    """

    example = """
    !tile = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
    !half = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
    func.func @example(%tile: !tile, %rank: index) {
      %half = "tc.smem_part"(%tile, %rank) : (!tile, index) -> !half
      return
    }
    """
    form = "{tile}.part({number})"

    tile: ext.Operand[SmemType]
    number: ext.Operand[ir.IndexType]
    part: ext.Result[SmemType]


class SmemTransposedOp(Op, name="smem_transposed", pure=True):
    """The transpose of a shared tile, in the same bytes: element [i, j] of the result is element
    [j, i] of the tile.

    A K-major tile consists of blocks of columns. Each block is one swizzle span wide along K. If
    the tile is read as an MN-major tile, each block is one span wide along M or N and has a row for
    each k. So one product can sum over the elements of a row of the tile, and another product can
    sum over its rows (PTX ISA 9.7.15.5.1).
    """

    example = """
    !tile = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
    !transposed = !tc.smem<array<i64: 128, 64>, f16, "MN", "128B">
    func.func @example(%tile: !tile) {
      %transposed = "tc.smem_transposed"(%tile) : (!tile) -> !transposed
      return
    }
    """
    form = "{tile}.transposed"

    tile: ext.Operand[SmemType]
    transposed: ext.Result[SmemType]


def whole_tile(tile: ir.Value) -> ir.Value:
    """The tile that `tile` is a part or the transpose of; `tile` itself if it is neither."""
    view = defining(tile, SmemPartOp | SmemTransposedOp)
    return tile if view is None else whole_tile(view.tile)


@verify(
    SmemPartOp,
    "type",
    "tc",
    "a part must have its tile's K extent, element type, major and swizzle, got {got} of {tile}",
    bad={"array<i64: 64, 64>": "array<i64: 64, 32>"},
)
def _(op: SmemPartOp) -> Broken:
    tile, part = _kind(op.tile.type), _kind(op.part.type)
    return None if part == tile else {"got": op.part.type, "tile": op.tile.type}


def _kind(tile: SmemType) -> tuple[int, ir.Type, str, str]:
    return tile.shape[1], tile.element, tile.major, tile.swizzle


@verify(
    SmemPartOp,
    "extent",
    "PTX ISA 9.7.16.10.6",
    "the extent of a part along M or N must divide the tile's, {tile}, and be a multiple of {step} "
    "({why}), got {got}",
    bad=(
        {'"K"': '"MN"', "array<i64: 64, 64>": "array<i64: 32, 64>"},
        {"array<i64: 128, 64>": "array<i64: 24, 64>", "array<i64: 64, 64>": "array<i64: 16, 64>"},
    ),
    good={
        '!tile = !tc.smem<array<i64: 128, 64>, f16, "K"': (
            '!tile = !tc.smem<array<i64: 128, 64>, f16, "MN"'
        ),
        '!half = !tc.smem<array<i64: 64, 64>, f16, "K"': (
            '!half = !tc.smem<array<i64: 64, 64>, f16, "MN"'
        ),
    },
)
def _(op: SmemPartOp) -> Broken:
    tile, got = op.tile.type, op.part.type.shape[0]
    step, why = SWIZZLE_ATOM_ROWS, "rows of a swizzle pattern"
    if tile.major == "MN":
        step, why = tile.span // element_bytes(tile.element), "elements of a swizzle span"
    if tile.shape[0] % got == 0 and got % step == 0:
        return None
    return {"tile": tile.shape[0], "step": step, "why": why, "got": got}


@verify(
    SmemPartOp,
    "contiguous",
    "tc",
    "a K-major tile that has parts must be one swizzle span wide, {span} bytes, got {got}: each "
    "column of spans has all of the tile's rows, so a part of several would lie in several places",
    bad={'"128B"': '"64B"'},
    good={"array<i64: 128, 64>": "array<i64: 128, 32>", "array<i64: 64, 64>": "array<i64: 32, 32>"},
)
def _(op: SmemPartOp) -> Broken:
    tile = op.tile.type
    got = tile.shape[1] * element_bytes(tile.element)
    return None if tile.major == "MN" or got <= tile.span else {"span": tile.span, "got": got}


@verify(
    SmemPartOp,
    "number",
    "tc",
    "number must be in [0, {parts}), got {got}",
    bad={
        '%half = "tc.smem_part"(%tile, %rank': (
            '%two = arith.constant 2 : index %half = "tc.smem_part"(%tile, %two'
        )
    },
)
def _(op: SmemPartOp) -> Broken:
    got, parts = constant_of(op.number), op.tile.type.shape[0] // op.part.type.shape[0]
    return None if got is None or 0 <= got < parts else {"parts": parts, "got": got}


@verify(
    SmemTransposedOp,
    "type",
    "PTX ISA 9.7.15.5.1",
    "expected {shape} and {major}-major, the transpose of {tile}, got {got}: another type would be "
    "in other bytes",
    bad=({"array<i64: 128, 64>": "array<i64: 64, 64>"}, {'"MN", "128B"': '"MN", "64B"'}),
    good={'f16, "K"': 'bf16, "K"', 'f16, "MN"': 'bf16, "MN"'},
)
def _(op: SmemTransposedOp) -> Broken:
    tile, got = op.tile.type, op.transposed.type
    other = "MN" if tile.major == "K" else "K"
    want = tile.shape[::-1], tile.element, other, tile.swizzle
    if want == (got.shape, got.element, got.major, got.swizzle):
        return None
    return {"shape": tile.shape[::-1], "major": other, "tile": tile, "got": got}


@verify(
    SmemTransposedOp,
    "element",
    "PTX ISA 9.7.15.5.1",
    "expected elements of 16 bits, got {got}: the tensor core reads MN-major tiles of no others",
    bad={"f16": "f8E4M3FN"},
)
def _(op: SmemTransposedOp) -> Broken:
    got = op.tile.type.element
    return None if element_bytes(got) == HALF_BYTES else {"got": got}
