"""Block quantisation as a separate kernel in which each thread quantises one block."""

from __future__ import annotations

from math import prod

from tcir._mlir import arith, func, ir
from tcir.dialect import tc
from tcir.dialect.ops.block_scaled import BLOCK_BYTES, BLOCK_ROWS, BLOCK_SCALES
from tcir.passes.emit import simt
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import ceil_div, round_up
from tcir.passes.emit.quantised_block import quantised_block
from tcir.passes.simt.elements import digits
from tcir.target import TARGETS, targets_with

THREADS = 256
SMALLEST_QUANTISE = (
    "func.func @f(%x: tensor<1x32xf32>) -> (tensor<1x32xf8E4M3FN>, tensor<1x1xf8E8M0FNU>) { "
    '%q:2 = "tc.quantise_blocks"(%x) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<1x32xf32>) '
    "-> (tensor<1x32xf8E4M3FN>, tensor<1x1xf8E8M0FNU>) "
    "return %q#0, %q#1 : tensor<1x32xf8E4M3FN>, tensor<1x1xf8E8M0FNU> }"
)
MOST = 1 << 31
"""Blocks: their numbers are i32."""


def convert(module: ir.Module, function: func.FuncOp) -> bool:
    """Turns a function of one ``tc.quantise_blocks`` into a kernel with one thread per block.

    Before::

        func.func @f_quantise1(%y: tensor<2x14x14x64xf32>)
            -> (tensor<2x14x14x64xf8E4M3FN>, tensor<2x14x14x2xf8E8M0FNU>)

    After (`llvm.func @f_quantise1` in ``gpu.module @kernels``)::

        %i = 256 * %ctaid + %tid; if %i < 784:
          32 f32 at %y[32 * %i]: the largest magnitude, the scale, quotients
          8 words of codes to %codes[32 * %i], the scale's byte to %scales[%i]

    If the layout of the scales is blocks of 128 rows x 4 scales, they are stored in that order, and
    further threads store zeros to the padding. Preserves every value, bit for bit.
    """
    found = (op for op in function.entry_block if isinstance(op, tc.QuantiseBlocksOp))
    op = next(found, None)
    if op is None:
        return False
    _check(op, function, target_of(module))
    space, (*_, rows, columns) = _blocks(op), op.values.type.shape
    count = columns // op.format.block
    grid = (ceil_div(prod(space), THREADS), 1, 1)
    with simt.kernel_of(module, function, grid, THREADS, op.location) as pointers:
        at = dict(zip(function.arguments, pointers))
        values, *norm = (at[each] for each in op.operands)
        codes, scales = pointers[-2:]
        number = simt.thread_number(THREADS)
        matrix, row, block = digits(number, space)
        place = simt.wide(number) if op.row_major else _place(matrix, row, block, space)
        scale = simt.at(scales, place)
        exists, used = simt.less(number, prod(space)), simt.constant(1, 1)
        if padded := space[1:] != [rows, count]:
            used = simt.both_bits(simt.less(row, rows), simt.less(block, count))
        with simt.only_if(simt.both_bits(exists, used)):
            first = simt.add(simt.mul(simt.wide(matrix), rows), simt.wide(row))
            first = simt.add(simt.mul(first, count), simt.wide(block))
            simt.store_byte(scale, _quantise(op, values, norm, codes, first))
        if padded:
            padding = simt.both_bits(exists, simt.differing_bits(used, 1))
            with simt.only_if(padding):
                simt.store_byte(scale, simt.constant(0))
    return True


def _check(op: tc.QuantiseBlocksOp, function: func.FuncOp, target: str) -> None:
    """Rejects other ops beside it, codes that the target does not convert to, and more blocks than
    i32 count."""
    others = [each.operation.name for each in function.entry_block if each != op]
    if others != ["func.return"]:
        raise match_failure(
            op,
            f"expected nothing beside tc.quantise_blocks in its launch, got {', '.join(others)} (a "
            "thread reads a block of f32 in memory); return the values and quantise them in a "
            "separate function; the pipelines of products also quantise the result of a product",
            SMALLEST_QUANTISE,
        )
    element = str(op.codes.type.element_type)
    narrow = element == "f4E2M1FN"
    able = TARGETS[target].tcgen05 if narrow else TARGETS[target].fp8
    if not able:
        which = targets_with("tcgen05" if narrow else "fp8")
        raise match_failure(
            op,
            f"expected codes that {target} converts to, got {element} (cvt to "
            + ("e2m1x2 needs sm_100a" if narrow else "fp8 needs sm_89")
            + f", PTX ISA 9.7.9.21); take {' or '.join(which)}, or return the values",
        )
    if prod(_blocks(op)) >= MOST:
        raise match_failure(
            op, f"expected less than 2^31 blocks, got {op.values.type}; quantise it in parts"
        )


def _blocks(op: tc.QuantiseBlocksOp) -> list[int]:
    """Numbers of matrices, of rows in each, and of blocks per row, including those whose scales are
    padding."""
    *outer, rows, columns = op.values.type.shape
    count = columns // op.format.block
    if op.row_major:
        return [prod(outer), rows, count]
    return [prod(outer), round_up(rows, BLOCK_ROWS), round_up(count, BLOCK_SCALES)]


def _place(matrix: ir.Value, row: ir.Value, block: ir.Value, space: list[int]) -> ir.Value:
    """The byte of a scale in blocks of 128 x 4, as ``tc.store_scales`` has it."""
    down, across = space[1] // BLOCK_ROWS, space[2] // BLOCK_SCALES
    tile = simt.add(simt.mul(simt.wide(matrix), down), simt.wide(simt.divide(row, BLOCK_ROWS)))
    tile = simt.add(simt.mul(tile, across), simt.wide(simt.divide(block, BLOCK_SCALES)))
    lane, quarter = simt.rest(row, 32), simt.divide(simt.rest(row, BLOCK_ROWS), 32)
    byte = simt.add(simt.mul(lane, 16), simt.mul(quarter, BLOCK_SCALES))
    byte = simt.add(byte, simt.rest(block, BLOCK_SCALES))
    return simt.add(simt.mul(tile, BLOCK_BYTES), simt.wide(byte))


def _quantise(
    op: tc.QuantiseBlocksOp,
    values: ir.Value,
    norm: list[ir.Value],
    codes: ir.Value,
    block: ir.Value,
) -> ir.Value:
    """Stores the codes of a block; the code of its scale."""
    form = op.format
    source = simt.at(values, simt.mul(block, 4 * form.block))
    numbers = [simt.as_f32(word) for word in simt.load_words(source, form.block)]
    if norm:
        by = simt.load(norm[0], ir.F32Type.get())
        numbers = [arith.mulf(each, by) for each in numbers]
    words, scale = quantised_block(numbers, form, str(op.codes.type.element_type))
    target = simt.at(codes, simt.mul(block, 4 * len(words)))
    for n, word in enumerate(words):
        simt.store(simt.behind(target, 4 * n), word)
    return scale
