"""Recognition of block-scaled contractions by indexing maps and body.

Two forms of the sum over k are recognised: a loop k whose scales are indexed by ``k floordiv
block``, and a pair of loops (block, within the block) over operands split accordingly. Scales are
row-major or in the 128x4 layout (`blocked_scales`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcir._mlir import ir, linalg
from tcir.dialect.ops.block_scaled import ELEMENT_BITS, SCALE_TYPES
from tcir.passes.analysis.contraction import n_loops, value
from tcir.passes.emit.fp8 import FP8

Axis = tuple[int, int]
"""The index of a dimension: a loop, floor-divided by a number."""
Factor = tuple[int, list[Axis], list[Axis]]
"""An operand's number, the loops over its rows, and those of sums."""


@dataclass(frozen=True)
class BlockScaledOperand:
    """The operand numbers of a block-scaled factor's elements and scales, and the loops over its
    rows."""

    elements: int
    scales: int
    rows: tuple[int, ...]


@dataclass(frozen=True)
class ScaledMatmul:
    """A block-scaled product: A, B, the operand numbers of global scales, and the block size.

    split: whether the operands have k in two dimensions, which must be joined.
    blocked: operand numbers of the scales in the 128x4 layout.
    """

    a: BlockScaledOperand
    b: BlockScaledOperand
    globals: tuple[int, ...]
    block: int
    split: bool
    blocked: tuple[int, ...] = ()


class Mismatch(Exception):
    """Raised with the reason why an op is not a block-scaled contraction."""


def is_scaled_contraction(op: ir.OpView) -> bool:
    """Whether `op` sums products of three or more tensors, of which at least one has an element
    type that is used for block scales."""
    tensors = [o for o in op.operation.operands if isinstance(o.type, ir.RankedTensorType)]
    if not op.operation.name.startswith("linalg.") or len(tensors) < 4:
        return False
    kinds = {str(each.type.element_type) for each in tensors[:-1]}
    if len(op.operation.results) != 1 or not kinds & {*ELEMENT_BITS, *SCALE_TYPES}:
        return False
    maps = linalg.get_indexing_maps(op.operation)
    return maps is not None and n_loops(maps[len(maps) - 1]) > len(
        value(maps[len(maps) - 1]).results
    )


def other_scales(op: ir.OpView) -> str:
    """Reason why CUDA cores must compute a scaled contraction; "" if tensor cores can apply scales
    of its type."""
    maps = [value(each) for each in linalg.get_indexing_maps(op.operation)]
    rows = {e.position for e in maps[-1].results if isinstance(e, ir.AffineDimExpr)}
    kinds = [str(each.type.element_type) for each in op.operation.operands]
    try:
        others = [
            kind
            for kind, read in zip(kinds[:-1], maps)
            if kind in ("f32", "f16", "bf16")
            and _is_plain(read)
            and {loop for loop, _ in _axes(read)} - rows
        ]
    except Mismatch:
        return ""
    if not others or not {*kinds} <= {*others, *FP8, "f32"}:
        return ""
    return (
        f"its scales are of {others[0]}, but tensor cores apply only scales of "
        f"{' or '.join(SCALE_TYPES)}"
    )


def recognise(op: ir.OpView) -> ScaledMatmul:
    """Describes the block-scaled contraction that `op` computes; raises `Mismatch` with the reason
    if `op` is not one."""
    inputs = len(op.operation.operands) - 1
    _check_body(op, inputs)
    maps = [value(m) for m in linalg.get_indexing_maps(op.operation)]
    shuffled = [n for n, m in enumerate(maps[:-1]) if not _is_plain(m)]
    axes = [[] if n in shuffled else _axes(m) for n, m in enumerate(maps)]
    out = [loop for loop, _ in axes[-1]]
    if any(divisor != 1 for _, divisor in axes[-1]) or len(set(out)) != len(out):
        raise Mismatch(
            f"expected each dimension of the output to be indexed by its own loop, got {maps[-1]}"
        )
    sums = sorted(set(range(maps[0].n_dims)) - set(out))
    if len(sums) not in (1, 2):
        raise Mismatch(
            "expected one summed loop (k), or two summed loops (the block of k and the position "
            f"within it), got {len(sums)}"
        )

    def factor(n: int) -> Factor:
        return n, [a for a in axes[n] if a[0] in out], [a for a in axes[n] if a[0] in sums]

    factors = [factor(n) for n in range(inputs) if n not in shuffled]
    elements = [f for f in factors if [d for _, d in f[2]] == [1] * len(sums)]
    shapes = [operand.type.shape for operand in op.operation.operands]
    sizes = {loop: size for n, *_ in elements for (loop, _), size in zip(axes[n], shapes[n])}
    without_scales = list(elements)
    for n in shuffled:
        axes[n] = _blocked(op, n, maps[n], without_scales, sizes)
        factors.append(factor(n))
    scales = [f for f in factors if len(f[2]) == 1 and f not in elements]
    rest = [f for f in factors if f not in elements and f not in scales]
    if len(elements) != 2 or len(scales) != 2 or any(axes[n] for n, _, _ in rest):
        raise Mismatch(
            "expected five kinds of inputs: two operands indexed by all of k, a tensor of scales "
            "for each, indexed by blocks of k (k floordiv 16, or a loop over blocks), and global "
            f"scales of type tensor<f32>; got maps {', '.join(map(str, maps))}"
        )
    for n, rows, _ in (*elements, *scales):
        if shared := [divisor for _, divisor in rows if divisor != 1]:
            raise Mismatch(_shared_scale(maps[n], shared[0]))
    block = _block(op, sums, elements, scales)
    for n, rows, inner in (*elements, *scales):
        order = [loop for loop, _ in axes[n]]
        if order != [*(loop for loop, _ in rows), *(loop for loop, _ in inner)]:
            raise Mismatch(
                "expected k to be the innermost dimension of every operand, as blocks of elements "
                f"with one scale lie along rows, got {maps[n]}; transpose the operand and "
                "quantise it along k"
            )
    a, b = _pair(out, elements, scales, maps)
    alpha = tuple(n for n, _, _ in rest)
    return ScaledMatmul(a, b, alpha, block, len(sums) == 2, tuple(shuffled))


def _shared_scale(affine_map: ir.AffineMap, rows: int) -> str:
    """The message for elements or scales that several rows have in common."""
    return (
        f"expected each row to have its own scale, got one for {rows} rows ({affine_map}): for "
        "every block of k the tensor core multiplies each row of A, and each column of B, by its "
        "own factor (PTX ISA 9.7.16.10.7; 128 rows by 4 blocks is the layout in which factors are "
        f"stored, not the elements that share a factor); repeat each scale {rows} times, or "
        "quantise every row by itself"
    )


def _is_plain(affine_map: ir.AffineMap) -> bool:
    """Whether every result is a loop, or a loop floordiv a constant."""
    return not any(
        isinstance(
            e, ir.AffineConstantExpr | ir.AffineAddExpr | ir.AffineMulExpr | ir.AffineModExpr
        )
        or (isinstance(e, ir.AffineFloorDivExpr) and not isinstance(e.lhs, ir.AffineDimExpr))
        for e in affine_map.results
    )


def _blocked(
    op: ir.OpView,
    number: int,
    affine_map: ir.AffineMap,
    elements: list[Factor],
    sizes: Mapping[int, int],
) -> list[Axis]:
    """The axes the scales would have in row-major order; removes their operand from `elements`.

    Raises `Mismatch` if the map is not that of the 128x4 layout.
    """
    from tcir.passes.analysis.blocked_scales import is_layout, offsets  # needs numpy

    kind = op.operation.operands[number].type
    found = offsets(affine_map, kind.shape, sizes)
    used = set(found or ())
    # Loops over one element may be missing in the map: the operand with the most loops in common.
    elements.sort(key=lambda factor: len(used ^ {loop for loop, _ in (*factor[1], *factor[2])}))
    for factor in elements:
        _, rows, inner = factor
        over = {loop: sizes[loop] for loop, _ in inner[:1]}
        for outer in (rows[:-1], rows):  # of a matrix, and of a vector
            batch = {loop: sizes[loop] for loop, _ in outer}
            row = {loop: sizes[loop] for loop, _ in rows[len(outer) :]}
            for step in (16, 32) if len(inner) == 1 else (1,):
                if found is not None and is_layout(found, batch, row, over, step):
                    elements.remove(factor)
                    return [*rows, (inner[0][0], step)]
    raise Mismatch(
        "expected indices that are loops or a loop floordiv a constant, or scales in blocks of "
        f"128 x 4 as tc.scales_to_blocked makes them, got {affine_map} for {kind}"
    )


def _axes(affine_map: ir.AffineMap) -> list[Axis]:
    found = []
    for e in affine_map.results:
        if isinstance(e, ir.AffineDimExpr):
            found.append((e.position, 1))
        elif (
            isinstance(e, ir.AffineFloorDivExpr)
            and isinstance(e.lhs, ir.AffineDimExpr)
            and isinstance(e.rhs, ir.AffineConstantExpr)
        ):
            found.append((e.lhs.position, e.rhs.value))
        else:
            raise Mismatch(
                f"expected indices that are loops or a loop floordiv a constant, got {e} in "
                f"{affine_map}"
            )
    return found


def _block(
    op: ir.OpView, sums: list[int], elements: Sequence[Factor], scales: Sequence[Factor]
) -> int:
    """Values of k per scale."""
    inner = [tuple(factor[2]) for factor in (*elements, *scales)]
    if inner[0] != inner[1] or inner[2] != inner[3]:
        raise Mismatch(
            "expected one block size, and k divided into blocks in the same way in both "
            "operands, got two different divisions"
        )
    if len(sums) == 1:
        return inner[2][0][1]
    (block_loop, divisor), (order_block, order_k) = inner[2][0], [loop for loop, _ in inner[0]]
    if divisor != 1 or block_loop != order_block or order_block == order_k:
        raise Mismatch(
            "expected scales to be indexed by the loop over blocks of k, got the loop within a "
            "block as their index"
        )
    return int(op.operation.operands[elements[0][0]].type.shape[-1])


def _pair(
    out: list[int], elements: Sequence[Factor], scales: Sequence[Factor], maps: Sequence[ir.Value]
) -> tuple[BlockScaledOperand, BlockScaledOperand]:
    """The operand that is A (its rows come first in the output), and the scales of each."""
    found = []
    for number, rows, _ in elements:
        loops = tuple(loop for loop, _ in rows)
        mine = [n for n, of, _ in scales if tuple(loop for loop, _ in of) == loops]
        if len(mine) != 1:
            raise Mismatch(
                "expected one tensor of scales, indexed by the rows, for each operand, got "
                f"{len(mine)} for the operand with map {maps[number]}"
            )
        found.append(BlockScaledOperand(number, mine[0], loops))
    for a, b in (found, found[::-1]):
        batch = a.rows[:-1]
        matrix = b.rows[:-1] == batch and [*a.rows, *b.rows[-1:]] == out
        vector = b.rows == batch and list(a.rows) == out
        if a.rows and len(batch) < 2 and a.rows != b.rows and (matrix or vector):
            return a, b
    raise Mismatch(
        "expected a product out[m, n] of a[m, k] and b[n, k], or out[m] of a[m, k] and b[k], with "
        f"a leading batch index in all of them or in none, got {', '.join(map(str, maps))}; "
        "transpose the result"
    )


def _check_body(op: ir.OpView, inputs: int) -> None:
    block = op.operation.regions[0].blocks[0]
    (yielded,) = list(block)[-1].operands
    kind = str(block.arguments[inputs].type)
    if kind != "f32":
        raise Mismatch(
            f"expected an f32 accumulator, got {kind} (the tensor core sums block-scaled "
            "products in f32)"
        )
    sums = _operands(yielded, "arith.addf")
    terms = [v for v in sums or [] if v != block.arguments[inputs]]
    if len(terms) != 1:
        raise Mismatch(
            "expected the body to yield the output element plus one product (arith.addf)"
        )
    found = sorted(_factors(terms[0], block))
    if found != list(range(inputs)):
        raise Mismatch(
            f"expected the product to have each of the {inputs} inputs as a factor exactly once, "
            f"got {found} factors"
        )


def _operands(value_: ir.Value, name: str) -> list[ir.Value] | None:
    if isinstance(value_, ir.BlockArgument) or value_.owner.name != name:
        return None
    return list(value_.owner.operands)


def _factors(value_: ir.Value, block: ir.Block) -> list[int]:
    """Numbers of the block arguments whose product a value is."""
    if isinstance(value_, ir.BlockArgument):
        if value_.owner == block:
            return [value_.arg_number]
        raise Mismatch(
            "expected factors that are elements of the inputs, got another value, such as a "
            "constant"
        )
    name = value_.owner.name
    operands = list(value_.owner.operands)
    if str(value_.type) != "f32":
        raise Mismatch(
            f"expected products and conversions in f32, got {name} of type {value_.type}: "
            "products in 16 bits would be rounded, and the tensor core rounds none"
        )
    if name == "arith.scaling_extf" and str(operands[1].type) != "f8E8M0FNU":
        raise Mismatch(
            "expected arith.scaling_extf by an f8E8M0FNU (it rounds other scales to powers of "
            f"two), got {operands[1].type}; use arith.extf and arith.mulf"
        )
    if name not in ("arith.extf", "arith.mulf", "arith.scaling_extf"):
        raise Mismatch(f"expected arith.extf, arith.scaling_extf and arith.mulf, got {name}")
    return [n for operand in operands for n in _factors(operand, block)]


def types_problem(op: ir.OpView, found: ScaledMatmul) -> str:
    """Reason why the element types are not supported; "" if they are."""
    kinds = [str(operand.type.element_type) for operand in op.operation.operands]
    for operand in (found.a, found.b):
        if kinds[operand.elements] not in ELEMENT_BITS:
            return (
                f"expected elements of {', '.join(ELEMENT_BITS)}, got "
                f"{kinds[operand.elements]} (tensor cores apply block scales to no others)"
            )
        if kinds[operand.scales] not in SCALE_TYPES:
            return (
                f"expected scales of {' or '.join(SCALE_TYPES)}, got {kinds[operand.scales]} "
                "(tensor cores apply no other scales); multiply the elements by the scales in a "
                "separate op, round the result to f16 or bf16, and pass it to a plain product"
            )
    wrong = next((kinds[n] for n in found.globals if kinds[n] != "f32"), None)
    if wrong:
        return f"expected global scales of f32, got {wrong}"
    return (
        ""
        if len(found.globals) < 3
        else "expected at most two global scales, one for each operand, got more"
    )
