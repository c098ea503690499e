"""Elementwise ops, reductions and pooling on CUDA cores: chooses the kernel of a function."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import gcd, prod

from tcir._mlir import func, ir
from tcir.dialect.upstream import RESHAPES
from tcir.dialect.walk import walk
from tcir.passes.analysis.reductions import is_product, is_reduction, is_window
from tcir.passes.analysis.row_chain import At, goes_along, joint_chain, loads_of, moving
from tcir.passes.emit import narrow, simt
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.element_epilogue import place_of
from tcir.passes.emit.fp8 import FP8
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.small import SMALL
from tcir.passes.emit.tensor_functions import is_simt
from tcir.passes.simt import cells, depthwise, tiles
from tcir.passes.simt.elements import STORED, ThreadElements, digits, has_loop
from tcir.passes.simt.flat import flatten
from tcir.passes.simt.group import ENOUGH, RUN, group_of, run_of
from tcir.passes.simt.slices import Index
from tcir.target import TARGETS, targets_with

THREADS = 256
MANY = 1 << 12
"""Number of elements from which on a thread computes several; below it each has a thread."""
PIXELS = (7, 4, 2)
"""Pixels of a thread, the most first: images are 7, 14, 28, 56 and 112 wide."""
BLOCKS = ((2, 2),)
"""Results of a pool of 16 bits that a thread computes, down and along an image: windows of 3 x 3 at
every other pixel read 25 pixels for four of them, not 36. Sums in f32 are slower so, as are blocks
of 2 x 4, 4 x 2 and 1 x 4 (measured on an H200)."""
PARTS = (4, 2)
"""Runs of a row that a thread gathers, the most first: 64 bytes in flight per thread."""
BYTES = 16
"""Bytes of a result that each thread has at least, where there are enough: runs of rows that are
not aligned, and rows of a transpose, are shorter."""
MOST = 1 << 31
"""Elements of a tensor: their numbers are i32."""


def convert(module: ir.Module, function: func.FuncOp) -> bool:
    """Turns a function with the attribute ``tc.simt`` into a kernel.

    Reductions over one row use `tcir.passes.simt.cells`, transposes `tcir.passes.simt.tiles`; in
    other kernels a thread computes an element, or a run of them.

    Before (split-layers sets the attribute)::

        func.func @f(%x: tensor<64x9xf32>) -> tensor<64xf32> attributes {tc.simt} {
          %low = linalg.fill ins(%minus_infinity) outs(%empty)
          %m = linalg.reduce ins(%x) outs(%low) dimensions = [1] … arith.maximumf …

    After (`llvm.func @f` in ``gpu.module @kernels``)::

        %i = 256 * %ctaid + %tid; if %i < 64:
          %t = scf.for %k = 0 to 9 iter_args(%t = -inf) { maximumf(%x[%i, %k], %t) }; %out[%i] = %t

    A thread computes as many elements of 2, 4 or 6 bits as fill whole bytes. Intermediate values
    are computed for each element and not stored. Reductions combine their points in lexicographic
    order, as the reference does. Preserves every value, bit for bit, except for ``math`` functions
    (docs/explanation/gemm.md).
    """
    if not is_simt(function):
        return False
    _check(function, target_of(module))
    flatten(function)
    block = function.entry_block
    yielded = list(list(block)[-1].operands)
    results = [in_memory(each) for each in yielded]
    made = not any(isinstance(each, ir.BlockArgument) for each in results)
    chain = joint_chain(results) if made else None
    if chain is not None and (group := group_of(results, chain)) is not None:
        cells.convert(module, function, results, chain, group)
        return True
    if len(results) > 1:
        raise match_failure(
            function,
            f"expected one result, or several of the same rows, got {len(results)}; run "
            "split-layers first",
        )
    (returned,), (result,) = yielded, results
    if chain is None and result == returned and (tiling := _tiling(function, result)) is not None:
        tiles.convert(module, function, result, tiling)
        return True
    if (form := depthwise.form_of(function, result)) is not None:
        depthwise.convert(module, function, result, form)
        return True
    _threads(module, function, returned)
    return True


def _tiling(function: func.FuncOp, result: ir.Value) -> tiles.ResultTiling | None:
    """The tiles of a result that is elementwise, and no argument."""
    if isinstance(result, ir.BlockArgument) or any(
        is_reduction(op.operation) for op in function.entry_block
    ):
        return None
    return tiles.tiling_of(result)


def _threads(module: ir.Module, function: func.FuncOp, result: ir.Value) -> None:
    """Builds a kernel whose threads each compute one or several runs of elements."""
    block = function.entry_block
    shape, element = list(result.type.shape), result.type.element_type
    each = narrow.together(element)
    if each == 1 and _runs_pay(function):
        loads = loads_of(result)
        read = moving(loads, ("d", len(shape) - 1))
        along = shape[-1] if shape and not _slides(function, result, loads) else 1
        each = run_of(along, [t.element_type for t in (*read, result.type)])
    down, pixels = _pixels(function, result, each)
    parts = _parts(function, shape, each)
    count = prod(shape) // (each * down * pixels * parts)
    turns = 1 if down * pixels * parts > 1 else _turns(function, element, each, count)
    location = function.location if isinstance(result, ir.BlockArgument) else result.owner.location
    place = module, function, (ceil_div(count, turns * THREADS), 1, 1), THREADS, location
    with simt.kernel_of(*place, all_registers=any(map(_is_pool, block))) as (*inputs, out):
        first = simt.mul(simt.block_index(0), turns * THREADS)
        first = simt.add(first, simt.thread_index())
        with simt.only_if(simt.less(first, count)):
            known = ThreadElements(dict(zip(block.arguments, inputs)))
            made = list[tuple[ir.Value | None, _Runs]]()
            for turn in range(turns):
                number, inside = simt.add(first, turn * THREADS) if turn else first, None
                if turn and count % (turns * THREADS):
                    inside = simt.less(number, count)
                    number = simt.smaller(number, count - 1)
                made.append((inside, _elements(known, result, number, (each, down, pixels, parts))))
            for inside, runs in made:  # all loads are in flight before the first store
                with nullcontext() if inside is None else simt.only_if(inside):
                    runs.store(out)


@dataclass(frozen=True)
class _Runs:
    """Runs of a result's elements that a thread has computed, each with the indices of its first
    element, or with its number."""

    kind: ir.RankedTensorType
    runs: Sequence[tuple[Index | ir.Value, Sequence[ir.Value]]]

    def store(self, out: ir.Value) -> None:
        """Stores the elements to `out` in memory."""
        element = self.kind.element_type
        for at, values in self.runs:
            if isinstance(at, tuple):
                narrow.store_run(out, place_of(self.kind, at), values, element)
            else:
                narrow.store(out, simt.wide(at), values, element)


def _elements(
    known: ThreadElements, result: ir.Value, number: ir.Value, sizes: tuple[int, int, int, int]
) -> _Runs:
    """Computes the elements with the number of a thread; sizes: elements of a run, pixels down and
    along an image, parts of a row."""
    each, down, pixels, parts = sizes
    kind, shape = result.type, list(result.type.shape)
    if narrow.together(kind.element_type) > 1:
        numbers = [simt.add(simt.mul(number, each), n) for n in range(each)]
        return _Runs(kind, [(number, [known.element(result, digits(n, shape)) for n in numbers])])
    if each == 1:
        return _Runs(kind, [(number, [known.element(result, digits(number, shape))])])
    step = shape[-1] // (each * parts)
    counts = [*shape[:-1], step]
    if pixels > 1:
        counts[-2] //= pixels
    if down > 1:
        counts[-3] //= down
    *outer, last = digits(number, counts)
    starts = [simt.add(last, n * step) if n else last for n in range(parts)]
    runs = [known.run(simt.mul(start, each), each) for start in starts]
    rows = [outer]
    if pixels > 1:
        columns = known.run(simt.mul(outer[-1], pixels), pixels)
        rows = [[*outer[:-1], column] for column in columns]
    if down > 1:
        lines = known.run(simt.mul(outer[-2], down), down)
        rows = [[*row[:-2], line, row[-1]] for line in lines for row in rows]
    ats = [[(*row, n) for n in run] for row in rows for run in runs]
    if each == shape[-1] and down == 1 and pixels in (2, 4, 8):
        ats = [[at for run in ats for at in run]]  # rows side by side in memory
    found = [[known.element(result, at) for at in run] for run in ats]
    return _Runs(kind, [(at[0], run) for at, run in zip(ats, found, strict=True)])


def _pixels(function: func.FuncOp, result: ir.Value, run: int) -> tuple[int, int]:
    """Pixels of which a thread computes a run each, down and along an image: those of a convolution
    read the same elements, and all of them the same filter; those of a pool the same elements."""
    shape = result.type.shape
    windows = [op.operation for op in function.entry_block if is_window(op.operation)]
    if run > 1 and not windows:
        return 1, _short_rows(function, result, run)
    if run == 1 or len(shape) < 3:
        return 1, 1
    blocks, least = [(1, n) for n in PIXELS], ENOUGH // 4
    if not any(map(is_product, windows)):
        half = all(op.results[0].type.element_type.width == 16 for op in windows)
        blocks, least = list(BLOCKS) if half and len(shape) > 3 else [], ENOUGH
    fits = ((d, n) for d, n in blocks if shape[-2] % n == 0 and (d == 1 or shape[-3] % d == 0))
    return next(((d, n) for d, n in fits if prod(shape) // (run * d * n) >= least), (1, 1))


def _short_rows(function: func.FuncOp, result: ir.Value, run: int) -> int:
    """Rows of a transpose that a thread computes, if they are shorter than `BYTES`: memory is
    contiguous from row to row where it loads, and they are side by side where it stores."""
    shape = result.type.shape
    if (
        run < shape[-1]
        or len(shape) < 2
        or any(is_reduction(op.operation) for op in function.entry_block)
        or goes_along(loads_of(result), result)
    ):
        return 1
    rows = gcd(shape[-2], 8 * BYTES // (run * result.type.element_type.width) or 1)
    return rows if prod(shape) // (run * rows) >= ENOUGH else 1


def _parts(function: func.FuncOp, shape: Sequence[int], run: int) -> int:
    """Runs of a row that a thread computes, as far apart as possible: a gather loads them all
    after the row's index, and waits for that once."""
    if run == 1 or not _gathers(function):
        return 1
    fits = (n for n in PARTS if shape[-1] % (run * n) == 0)
    return next((n for n in fits if prod(shape) // (run * n) >= ENOUGH), 1)


def _turns(function: func.FuncOp, element: ir.Type, run: int, count: int) -> int:
    """Runs that a thread computes, `THREADS` apart: as many as have `BYTES`. Where rows are not
    aligned, runs are short, and a thread with one would have too few bytes in flight."""
    reduces = any(is_reduction(op.operation) for op in function.entry_block)
    if reduces or _gathers(function) or narrow.together(element) > 1:
        return 1
    runs = 8 * BYTES // (run * max(8, element.width)) or 1
    while runs > 1 and count // runs < ENOUGH:
        runs //= 2
    return runs


def _gathers(function: func.FuncOp) -> bool:
    return any(op.operation.name == "tensor.extract" for op in walk(function))


def _runs_pay(function: func.FuncOp) -> bool:
    """Whether a thread computes several elements, because there are enough for all SMs even
    then."""
    (result,) = list(function.entry_block)[-1].operands
    ops = [op.operation for op in function.entry_block]
    loops = any(is_reduction(op) and has_loop(op) for op in ops)
    return prod(result.type.shape) >= (RUN * ENOUGH if loops else MANY)


def _slides(function: func.FuncOp, result: ir.Value, loads: Sequence[tuple[ir.Value, At]]) -> bool:
    """Whether a pool's windows extend along contiguous memory; adjacent threads then load elements
    of adjacent results, one by one."""
    return any(map(_is_pool, walk(function))) and not goes_along(loads, result)


def _is_pool(op: ir.OpView) -> bool:
    return bool(is_window(op.operation) and not is_product(op.operation))


def in_memory(tensor: ir.Value) -> ir.Value:
    """The operand of a chain of reshapes; its bytes in memory are those of the result."""
    while not isinstance(tensor, ir.BlockArgument) and isinstance(tensor.owner.opview, RESHAPES):
        tensor = tensor.owner.operands[0]
    return tensor


def _check(function: func.FuncOp, target: str) -> None:
    """Rejects functions without results, and types that cannot be stored in memory."""
    *ops, end = function.entry_block
    if not len(end.operands):
        raise match_failure(function, "expected a result, got none; run split-layers first")
    arguments = [each.type for each in function.entry_block.arguments]
    for kind in (*arguments, *(each.type for each in end.operands)):
        shaped = isinstance(kind, ir.RankedTensorType) and kind.has_static_shape
        if not shaped or str(kind.element_type) not in STORED or not 0 < prod(kind.shape) < MOST:
            raise match_failure(
                ops[-1] if ops else function,
                f"expected static tensors of {', '.join(STORED)} with less than 2^31 elements in "
                f"memory, got {kind}; convert it first",
            )
        if kind.element_type.width % 8 and prod(kind.shape[-1:]) % narrow.together(
            kind.element_type
        ):
            raise match_failure(
                function,
                f"expected rows of whole bytes, got {kind} ({kind.element_type.width} bits an "
                "element, and the next row begins at a byte); pad the last dimension, or join it "
                "with the one before it",
            )
    for each in walk(function):
        source, result = map(_last_element, (each.operation.operands, each.operation.results))
        if not TARGETS[target].fp8 and {source, result} & set(FP8):
            raise match_failure(
                each,
                f"expected f16, bf16, f32 or integers on {target}, got "
                f"{result if result in FP8 else source} (cvt of fp8 needs sm_89, PTX ISA "
                f"9.7.9.21); take {' or '.join(targets_with('fp8'))}",
            )
        made = each.operation.name in ("arith.truncf", "arith.constant") and result in SMALL
        if made and not TARGETS[target].tcgen05:
            raise match_failure(
                each,
                f"expected no rounding to {result} on {target} (its cvt needs sm_100a, PTX ISA "
                f"9.7.9.21; codes are only read here); take {' or '.join(targets_with('tcgen05'))}",
            )


def _last_element(values: Sequence[ir.Value]) -> str:
    """The type of the last value's elements, if there is one."""
    kinds = [getattr(each.type, "element_type", each.type) for each in values]
    return str(kinds[-1]) if kinds else ""
