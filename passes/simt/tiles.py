"""Transposes on CUDA cores: operands that are contiguous along another dimension than the result
are copied through shared memory in tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tcir._mlir import func, ir, nvvm
from tcir.dialect.attributes import integer_type
from tcir.passes.analysis.row_chain import At, loads_of
from tcir.passes.emit import narrow, simt
from tcir.passes.emit.element_epilogue import place_of
from tcir.passes.emit.limits import ceil_div
from tcir.passes.simt.elements import ThreadElements, digits
from tcir.passes.simt.group import run_of
from tcir.passes.simt.slices import Index
from tcir.passmanager.remarks import remark

THREADS = 256
SIDE = 64
"""Rows and columns of a tile."""
PITCH = SIDE + 1
"""Words from one row of a tile to the next: not a multiple of 32 banks."""


@dataclass(frozen=True)
class ResultTiling:
    """The division of a result into tiles.

    down:   the dimension of the result along which most operands are contiguous
    right:  the last dimension of the result
    staged: the tensors that are contiguous along `down`, with their indices, derived from those of
        the result
    run:    number of consecutive elements of a load and of a store
    """

    down: int
    right: int
    staged: tuple[tuple[ir.Value, tuple[int | None, ...]], ...]
    run: int


def tiling_of(result: ir.Value) -> ResultTiling | None:
    """The tiles of an elementwise result; None if most operands are contiguous along the rows of
    the result."""
    shape = result.type.shape
    sized = [dim for dim, size in enumerate(shape) if size != 1]
    weights: dict[int, int] = {}
    found: list[tuple[ir.Value, tuple[int | None, ...], int]] = []
    loads = loads_of(result)
    for tensor, at in loads:
        dims = _dims(at)
        last = next((d for d, n in zip(at[::-1], tensor.type.shape[::-1]) if n != 1), None)
        if last is None or dims is None:
            continue
        found.append((tensor, dims, last[0][1]))
        weights[last[0][1]] = weights.get(last[0][1], 0) + prod(tensor.type.shape)
    down = max(weights, key=lambda dim: weights[dim], default=None)
    if down is None or down == sized[-1] or min(shape[down], shape[sized[-1]]) < SIDE // 2:
        return None
    staged = tuple((tensor, dims) for tensor, dims, last in found if last == down)
    elements = [tensor.type.element_type for tensor, _ in staged] + [result.type.element_type]
    run = min(run_of(shape[dim], elements) for dim in (down, sized[-1]))
    if len(staged) > 2 or any(each.width > 32 or not narrow.has_runs(each) for each in elements):
        return None
    return ResultTiling(down, sized[-1], staged, run)


def _dims(at: At) -> tuple[int | None, ...] | None:
    """The dimension of the result that each index is, None: 0; None where one is another number."""
    if any(s is None or len(s) > 1 or any(kind != "d" for kind, _ in s) for s in at):
        return None
    return tuple(symbol[0][1] if symbol else None for symbol in at)


def convert(
    module: ir.Module, function: func.FuncOp, result: ir.Value, tiling: ResultTiling
) -> None:
    """Turns an elementwise function with transposed operands into a kernel with a CTA per tile.

    Before::

        func.func @f(%x: tensor<64x128xf16>) -> tensor<128x64xf16> attributes {tc.simt} {
          %y = linalg.transpose ins(%x) outs(%e) permutation = [1, 0]

    After (`llvm.func @f` in ``gpu.module @kernels``)::

        %v = llvm.load %x[%right, %down …]; llvm.store each, %partials[%down …, %right]
        nvvm.barrier
        %w = llvm.load %partials[%down, %right …]; llvm.store the run, %y[%down, %right …]

    So both loads and stores access whole runs. An element takes a 32-bit word in shared memory, and
    the rows of a tile are 65 words apart. Preserves every value, bit for bit.
    """
    _Kernel(module, function, result, tiling).build()


@dataclass
class _Kernel:
    module: ir.Module
    function: func.FuncOp
    result: ir.Value
    tiling: ResultTiling

    def build(self) -> None:
        shape, tiling = self.result.type.shape, self.tiling
        block = self.function.entry_block
        self.counts = [
            ceil_div(size, SIDE) if dim in (tiling.down, tiling.right) else size
            for dim, size in enumerate(shape)
        ]
        grid, smem = (prod(self.counts), 1, 1), len(tiling.staged) * SIDE * PITCH * 4
        owner = self.result.owner
        remark(
            owner.opview,
            f"tiles of {SIDE} x {SIDE} through shared memory: {len(tiling.staged)} of the operands "
            f"{'are' if len(tiling.staged) > 1 else 'is'} contiguous along dimension "
            f"{tiling.down}, the result along {tiling.right}; loads of {tiling.run} elements",
        )
        kernel = simt.kernel_of(
            self.module, self.function, grid, THREADS, owner.location, smem=smem
        )
        with kernel as pointers:
            self.elements = ThreadElements(dict(zip(block.arguments, pointers)))
            self.shared = simt.shared(self.module)
            tile = list(digits(simt.block_index(0), self.counts))
            self.outer = dict(enumerate(tile))
            for dim in (tiling.down, tiling.right):
                self.outer[dim] = simt.mul(tile[dim], SIDE)
            for turn in range(SIDE * SIDE // tiling.run // THREADS):
                self._stage(turn)
            nvvm.barrier()
            for turn in range(SIDE * SIDE // tiling.run // THREADS):
                self._store(turn, pointers[-1])

    def _place(self, turn: int) -> tuple[ir.Value, ir.Value]:
        """The row of a thread's run in the tile, and the run's first element."""
        number = simt.add(simt.thread_index(), turn * THREADS)
        runs = SIDE // self.tiling.run
        return simt.divide(number, runs), simt.mul(simt.rest(number, runs), self.tiling.run)

    def _stage(self, turn: int) -> None:
        """Loads a run along `down` of each operand, and stores it in the tile across."""
        tiling, shape = self.tiling, self.result.type.shape
        right, first = self._place(turn)
        column = simt.add(self.outer[tiling.right], right)
        row = simt.add(self.outer[tiling.down], first)
        column = simt.smaller(column, shape[tiling.right] - 1)
        row = simt.smaller(row, shape[tiling.down] - tiling.run)
        members = self.elements.run(row, tiling.run)
        for number, (tensor, dims) in enumerate(tiling.staged):
            for n, member in enumerate(members):
                at = self._at(dims, {tiling.down: member, tiling.right: column})
                (word,) = simt.words_of(self.elements.element(tensor, at))
                simt.store(self._slot(number, simt.add(first, n), right), word)

    def _store(self, turn: int, out: ir.Value) -> None:
        """Reads a run along `right`, and computes and stores the result's elements."""
        tiling, shape = self.tiling, self.result.type.shape
        down, first = self._place(turn)
        row, column = (
            simt.add(self.outer[tiling.down], down),
            simt.add(self.outer[tiling.right], first),
        )
        inside = simt.both_bits(
            simt.less(row, shape[tiling.down]), simt.less(column, shape[tiling.right])
        )
        row = simt.smaller(row, shape[tiling.down] - 1)
        members = self.elements.run(
            simt.smaller(column, shape[tiling.right] - tiling.run), tiling.run
        )
        ats = [self._result_at(row, member) for member in members]
        for number, (tensor, dims) in enumerate(tiling.staged):
            kind = narrow.register(tensor.type)
            for n, member in enumerate(members):
                word = simt.load(self._slot(number, down, simt.add(first, n)), integer_type(32))
                at = self._at(dims, {tiling.down: row, tiling.right: member})
                self.elements.learn(tensor, at, simt.of_words([word], kind))
        values = [self.elements.element(self.result, at) for at in ats]
        with simt.only_if(inside):
            place, element = place_of(self.result.type, ats[0]), self.result.type.element_type
            if tiling.run > 1:
                narrow.store_run(out, place, values, element)
            else:
                narrow.store(out, place, values, element)

    def _slot(self, number: int, down: ir.Value, right: ir.Value) -> ir.Value:
        """Where an element of a tile is."""
        word = simt.add(simt.mul(down, PITCH), right)
        place = simt.add(simt.mul(word, 4), number * SIDE * PITCH * 4)
        return simt.at(self.shared, place)

    def _at(self, dims: Sequence[int | None], own: dict[int, ir.Value]) -> Index:
        """The index of an operand's element."""
        zero = simt.constant(0)
        return tuple(zero if d is None else own[d] if d in own else self.outer[d] for d in dims)

    def _result_at(self, row: ir.Value, column: ir.Value) -> Index:
        """The index of an element of the result."""
        own = {self.tiling.down: row, self.tiling.right: column}
        return tuple(own.get(dim, self.outer[dim]) for dim in range(len(self.counts)))
