"""The epilogue of a product whose sums are in registers of warps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcir._mlir import arith, ir
from tcir.dialect import tc
from tcir.passes.build.clone import clone
from tcir.passes.build.tile_kernel import argument


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
