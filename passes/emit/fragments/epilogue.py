"""The epilogue of a product whose sums are in registers of warps, and their quantisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcir._mlir import arith, ir
from tcir.dialect import tc
from tcir.dialect.ops.quantise import WORD_COLUMNS
from tcir.passes.emit.builders import i64
from tcir.passes.emit.clone import clone
from tcir.passes.emit.diagnostics import SMALLEST_MATMUL, match_failure
from tcir.passes.emit.limits import round_up
from tcir.passes.emit.tile_kernel import argument


def tensors_of(after: tc.EpilogueOp, arguments: Sequence[ir.Value]) -> dict[ir.Value, ir.Value]:
    """The kernel's arguments for the tensors that `after` reads."""
    return {each.tensor: argument(arguments, each.tensor) for each in after.elements}


def fragment_epilogue(
    after: tc.EpilogueOp, tensors: Mapping[ir.Value, ir.Value], sums: ir.Value,
    place: list[ir.Value], past: ir.StringAttr,
) -> ir.Value:  # fmt: skip
    """`sums` with the body of `after` around every element; the tile begins at `place`.

    tensors: what the kernel has for those that `after` reads
    """
    kind = sums.type
    out = tc.FragmentType.build(kind.shape, after.out.type.element_type, "C", kind.atom)
    with after.location:
        made = tc.FragmentEpilogueOp(sums, place, past, out)
        block = made.body.blocks.append(kind.element, arg_locs=[after.location])
        (total,), (argument_,) = block.arguments, after.body.blocks[0].arguments
        mapping = dict(tensors)
        with ir.InsertionPoint(block):
            narrow = kind.element != argument_.type
            mapping[argument_] = arith.truncf(argument_.type, total) if narrow else total
            for op in after.body.blocks[0]:
                clone(op, mapping)
    return made.out


def check_fragment_quantised(op: tc.QuantiseBlocksOp, n_tile: int, parts: int, target: str) -> None:
    """Raises a match failure for what threads with pairs of a row cannot quantise.

    parts: fragments of a tile's columns
    """
    if op.format.bits != 8:
        raise match_failure(
            op,
            f"expected codes that {target} converts to, got {op.codes.type.element_type} (cvt to "
            "e2m1x2 needs sm_100a, PTX ISA 9.7.9.21); quantise to f8E4M3FN or f8E5M2 with scales "
            "of 32, or return the values",
            SMALLEST_MATMUL,
        )
    if n_tile % (WORD_COLUMNS * parts):
        whole = WORD_COLUMNS * parts
        raise match_failure(
            op,
            f"expected n-tile to be a multiple of {whole} to quantise, got {n_tile} (a thread has "
            f"the scales of {WORD_COLUMNS} columns in a register); take "
            f"n-tile={min(round_up(n_tile, whole), 256)}; smallest accepted: n-tile={WORD_COLUMNS}",
            SMALLEST_MATMUL,
        )


def store_quantised(
    op: tc.QuantiseBlocksOp, values: ir.Value, results: Sequence[ir.Value], place: list[ir.Value],
    past: ir.StringAttr,
) -> None:  # fmt: skip
    """Quantises a fragment whose first element is at `place`, and stores its codes and scales."""
    kinds = [
        tc.FragmentType.build(values.type.shape, each.type.element_type, "C", values.type.atom)
        for each in results
    ]
    with op.location:
        made = tc.QuantiseFragmentOp(values, *kinds)
        if "scale_rounding" in op.attributes:
            made.attributes["scale_rounding"] = op.attributes["scale_rounding"]
        codes, scales = results
        tc.StoreFragmentOp(made.codes, codes, place, past)
        *_, rows, columns = op.values.type.shape
        counts = i64(rows), i64(columns // op.format.block)
        tc.StoreFragmentScalesOp(made.scales, scales, place, *counts)
