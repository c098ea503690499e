"""Block quantisation of a thread's row in registers, and the store of its scales.

Nothing is shuffled: a block is neighbouring columns of a row, and a thread has the whole row.
"""

from __future__ import annotations

from functools import reduce

from tcir._mlir import arith, ir, llvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integer_type
from tcir.dialect.ops.block_scale import SCALE_ROW_BYTES
from tcir.dialect.ops.block_scaled import BLOCK_BYTES, BLOCK_ROWS, BLOCK_SCALES
from tcir.passes.build import simt
from tcir.passes.build.quantised_block import quantised_block

from .converter import Converter, GlobalTensor, lower, require_role
from .structure import only_if


@lower(tc.QuantiseRowsOp)
def convert_quantise_rows(converter: Converter, op: tc.QuantiseRowsOp) -> None:
    """Per block the largest magnitude, the scale, quotients, and codes in words."""
    row, form = converter.ssa(op.values), op.format
    columns = range(ir.VectorType(row.type).shape[0])
    numbers = [llvm.extractelement(row, simt.constant(n)) for n in columns]
    words, scales = list[ir.Value](), list[ir.Value]()
    for first in columns[:: form.block]:
        made, scale = quantised_block(numbers[first : first + form.block], form, op.elements)
        words += made
        scales.append(scale)
    kind = ir.VectorType.get([len(words)], integer_type(32))
    codes = llvm.mlir_poison(kind)
    for n, word in enumerate(words):
        codes = llvm.insertelement(codes, word, simt.constant(n))
    converter.values[op.codes] = codes
    placed = [simt.left(scale, 8 * n) if n else scale for n, scale in enumerate(scales)]
    converter.values[op.scales] = reduce(simt.either_bits, placed)


@lower(tc.StoreScalesOp)
def convert_store_scales(converter: Converter, op: tc.StoreScalesOp) -> None:
    """Each thread stores its row's scales, 1, 2 or 4 bytes; those that are padding as zeros."""
    require_role(converter, op)
    value, target, *indices = op.operands
    tensor = converter.record(target, GlobalTensor)
    *outer, row, scale = (converter.ssa(each) for each in indices)
    count = value.type.shape[1]
    block = [*outer, simt.right(row, 7), simt.right(scale, 2)]
    ult, inside = arith.CmpIPredicate.ult, converter.constant(1, bits=1)
    linear = simt.constant(0, 64)
    for index, extent in zip(block, tensor.shape, strict=False):
        inside = arith.andi(inside, arith.cmpi(ult, index, converter.constant(extent)))
        linear = simt.add(simt.mul(linear, extent), simt.wide(index))
    quarter = simt.both_bits(simt.right(row, 5), BLOCK_ROWS // 32 - 1)
    place = simt.add(simt.mul(quarter, BLOCK_SCALES), simt.both_bits(scale, BLOCK_SCALES - 1))
    place = simt.add(place, simt.mul(converter.lane, SCALE_ROW_BYTES))
    left = simt.sub(simt.constant(integer(op, "rows")), row)
    used = arith.cmpi(arith.CmpIPredicate.slt, converter.lane, left)
    scales = _without_padding(converter.ssa(value), scale, count, integer(op, "scales"))
    word = arith.select(used, scales, simt.constant(0))
    with only_if(inside):
        offset = simt.add(simt.mul(linear, BLOCK_BYTES), simt.wide(place))
        pointer = llvm.getelementptr(converter.pointers[tensor.argument], offset)
        if count == 1:
            simt.store_byte(pointer, word)
        else:
            part = word if count == 4 else arith.trunci(integer_type(16), word)
            llvm.store(part, pointer, alignment=count)


def _without_padding(value: ir.Value, first: ir.Value, count: int, scales: int) -> ir.Value:
    """`count` scales in a word, from number `first` on, with zeros from number `scales` on.

    `first` is a multiple of `count`: where `scales` is one, too, all are scales or none.
    """
    if scales % BLOCK_SCALES == 0:
        return value  # what is behind the last block is not stored
    whole = scales - scales % count
    before = arith.select(simt.less(first, whole), value, simt.constant(0))
    if scales == whole:
        return before
    part = simt.both_bits(value, (1 << 8 * (scales - whole)) - 1)
    return arith.select(simt.equal(first, whole), part, before)
