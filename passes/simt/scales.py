"""A kernel that reorders block scales for the tensor core."""

from __future__ import annotations

from math import prod

from tcir._mlir import arith, func, ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer_type
from tcir.dialect.ops.block_scaled import BLOCK_BYTES, BLOCK_ROWS, BLOCK_SCALES
from tcir.passes.emit import simt
from tcir.passes.emit.tensor_functions import only_op

THREADS = BLOCK_BYTES // 4
"""Threads per CTA: one for each word of a block, the four scales of a row."""
BLOCKS = (4, 2, 1)
"""Adjacent blocks per CTA: four if they divide evenly, 16 bytes of every row."""


def convert(module: ir.Module, function: func.FuncOp) -> bool:
    """Turns a function of one ``tc.scales_to_blocked`` into a kernel in which each CTA writes four
    blocks.

    Before::

        func.func @f_scales0(%s: tensor<7168x1024xf8E4M3FN>) -> tensor<56x256x512xf8E4M3FN>

    After (`llvm.func @f_scales0` in ``gpu.module @kernels``)::

        row = 128 * block row + 32 * (tid % 4) + tid / 4
        for n in 0..3: out[512 * (4 * %ctaid + n) + 4 * %tid] = row < 7168 ? the row's next four : 0

    Preserves every value, bit for bit.
    """
    op = only_op(function, tc.ScalesToBlockedOp)
    if op is None:
        return False
    *outer, down, across, _ = op.out.type.shape
    *_, scales = op.scales.type.shape
    matrix = op.out.type.rank == op.scales.type.rank + 1
    rows = op.scales.type.shape[-2] if matrix else 1
    batch = prod(outer)
    blocks = next(count for count in BLOCKS if across % count == 0)
    grid = (across // blocks, down, batch)
    with simt.kernel_of(module, function, grid, THREADS, op.location) as (source, target):
        thread = simt.thread_index()
        quarter, lane = simt.both_bits(thread, 3), simt.right(thread, 2)
        row = simt.add(simt.mul(simt.block_index(1), BLOCK_ROWS), simt.mul(quarter, 32))
        row = simt.add(row, lane)
        column = simt.mul(simt.block_index(0), blocks)
        # Beyond the operand the last row (scale) is read again, and not used.
        whole = simt.add(
            simt.mul(simt.wide(simt.block_index(2)), rows), simt.wide(simt.smaller(row, rows - 1))
        )
        words = _words(simt.at(source, simt.mul(whole, scales)), column, blocks, scales)
        block = simt.add(simt.mul(simt.block_index(2), down), simt.block_index(1))
        block = simt.add(simt.mul(block, across), column)
        place = simt.add(simt.mul(simt.wide(block), BLOCK_BYTES), simt.wide(simt.mul(thread, 4)))
        first, inside = simt.at(target, place), simt.less(row, rows)
        for n, word in enumerate(words):
            word = arith.SelectOp(inside, word, simt.constant(0)).result
            simt.store(simt.behind(first, n * BLOCK_BYTES), word)
    return True


def _words(row: ir.Value, column: ir.Value, blocks: int, scales: int) -> list[ir.Value]:
    """The scales of a row in the blocks from `column` on, four per word."""
    first = simt.mul(column, BLOCK_SCALES)
    if blocks > 1 and scales % (blocks * BLOCK_SCALES) == 0:
        return simt.load_words(simt.at(row, simt.wide(first)), blocks)
    return [_word(row, simt.add(first, n * BLOCK_SCALES), scales) for n in range(blocks)]


def _word(row: ir.Value, first: ir.Value, scales: int) -> ir.Value:
    """Four scales of a row from `first` on, zeros past its end."""
    if scales % BLOCK_SCALES == 0:
        return simt.load(simt.at(row, simt.wide(first)), integer_type(32))
    word = simt.constant(0)
    for n in range(BLOCK_SCALES):
        place = simt.add(first, n)
        byte = simt.load_byte(simt.at(row, simt.wide(simt.smaller(place, scales - 1))))
        inside = arith.SelectOp(simt.less(place, scales), byte, simt.constant(0)).result
        word = simt.either_bits(word, simt.left(inside, 8 * n))
    return word
