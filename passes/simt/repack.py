"""A kernel that copies a tensor into another layout."""

from __future__ import annotations

from math import gcd, prod

from tcir._mlir import arith, func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import integer_type, integers
from tcir.dialect.ops.codes import PACKED_BITS
from tcir.dialect.ops.repack import zeros_before
from tcir.passes.analysis.moves import transpose
from tcir.passes.emit import simt
from tcir.passes.emit.tensor_functions import only_op
from tcir.passes.simt import tiles
from tcir.passes.simt.elements import digits

THREADS = 256


def convert(module: ir.Module, function: func.FuncOp) -> bool:
    """Turns a function of one ``tc.repack`` into a kernel. Each thread computes up to 16 bytes of a
    row of the result and stores them at once.

    Before::

        func.func @f_repack0(%x: tensor<1x224x224x3xf16>) -> tensor<1x224x224x8xf16>

    After (`llvm.func @f_repack0` in ``gpu.module @kernels``)::

        %i = 256 * %ctaid + %tid; if %i < 50176: %out[8 * %i …] = [inside ? %x[…] : 0, …]

    A permutation without padding that turns columns into rows goes through shared memory
    (`tcir.passes.simt.tiles`). Preserves every value, bit for bit.
    """
    op = only_op(function, tc.RepackOp)
    if op is None:
        return False
    if _transposed(module, function, op):
        return True
    source, out = (_in_bytes(value.type) for value in (op.source, op.out))
    run = _run(out)
    count = prod(out.shape) // run
    with simt.units_of(module, function, count, THREADS, op.location) as (number, pointers):
        _copy(op, source, out, (number, run), *pointers)
    return True


def _transposed(module: ir.Module, function: func.FuncOp, op: tc.RepackOp) -> bool:
    """Makes the kernel of a permutation by tiles, if it has such; returns whether."""
    order = integers(op, "permutation")
    shape = [op.source.type.shape[d] for d in order]
    packed = str(op.out.type.element_type) in PACKED_BITS
    if packed or any(zeros_before(op)) or list(op.out.type.shape) != shape:
        return False
    with ir.InsertionPoint(op), op.location:
        result = transpose(op.source, order)
    tiling = tiles.tiling_of(result)
    if tiling is None:
        return False
    tiles.convert(module, function, result, tiling)
    return True


def _in_bytes(kind: ir.RankedTensorType) -> ir.RankedTensorType:
    """The tensor as it is in memory: rows of packed elements are rows of bytes."""
    if str(kind.element_type) not in PACKED_BITS:
        return kind
    *rows, last = kind.shape
    shape = [*rows, last * PACKED_BITS[str(kind.element_type)] // 8]
    return ir.RankedTensorType.get(shape, integer_type(8))


def _run(out: ir.RankedTensorType) -> int:
    """Elements of a row of the result that a thread writes: 2, 4, … of up to 16 bytes, or one."""
    most = simt.ALIGNMENT // tc.element_bytes(out.element_type)
    return gcd(most, out.shape[-1]) if out.shape else 1


def _copy(
    op: tc.RepackOp,
    source: ir.RankedTensorType,
    out: ir.RankedTensorType,
    part: tuple[ir.Value, int],
    read: ir.Value,
    write: ir.Value,
) -> None:
    """Part `number` of the result, of `run` elements."""
    number, run = part
    size = tc.element_bytes(out.element_type)
    *rows, last = out.shape
    indices = digits(number, [*rows, last // run])
    elements = [
        _element(op, source, out, [*indices[:-1], _behind(indices[-1], run, n)], read)
        for n in range(run)
    ]
    target = simt.at(write, simt.mul(simt.wide(number), run * size))
    if run == 1:
        _store(target, elements[0], size)
    else:
        simt.store_run(target, elements, size)


def _behind(part: ir.Value, run: int, place: int) -> ir.Value:
    first = simt.mul(part, run) if run > 1 else part
    return simt.add(first, place) if place else first


def _element(
    op: tc.RepackOp,
    source: ir.RankedTensorType,
    out: ir.RankedTensorType,
    indices: list[ir.Value],
    read: ir.Value,
) -> ir.Value:
    """The element of the result at `indices`, in a register."""
    size = tc.element_bytes(out.element_type)
    place: ir.Value = simt.constant(0)
    inside: ir.Value | None = None
    permutation, low = integers(op, "permutation"), zeros_before(op)
    for dim, extent in enumerate(source.shape):
        at = permutation.index(dim)
        index = simt.sub(indices[at], low[at]) if low[at] else indices[at]
        place = simt.add(simt.mul(place, extent), index)
        if out.shape[at] > extent:
            within = simt.less(index, extent)
            inside = within if inside is None else arith.AndIOp(inside, within).result

    def load() -> ir.Value:
        return _load(simt.at(read, simt.mul(simt.wide(place), size)), size)

    if inside is None:
        return load()
    both = scf.IfOp(inside, [integer_type(_REGISTER[size])], has_else=True)
    with ir.InsertionPoint(both.then_block):
        scf.YieldOp([load()])
    with ir.InsertionPoint(both.else_block):
        scf.YieldOp([simt.constant(0, _REGISTER[size])])
    return both.results[0]


_REGISTER = {1: 32, 2: 16, 4: 32}
"""Bits of the register that holds an element, by element bytes."""


def _load(pointer: ir.Value, size: int) -> ir.Value:
    return simt.load_byte(pointer) if size == 1 else simt.load(pointer, integer_type(8 * size))


def _store(pointer: ir.Value, value: ir.Value, size: int) -> None:
    if size == 1:
        simt.store_byte(pointer, value)
    else:
        simt.store(pointer, value)
