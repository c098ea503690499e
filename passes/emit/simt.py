"""Builds kernels for CUDA cores at the thread level: the kernel function, memory accesses and
arithmetic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from tcir._mlir import arith, func, ir, llvm, nvvm, scf
from tcir.dialect.attributes import integer_type
from tcir.dialect.limits import GRID, WARP
from tcir.dialect.ops.grid_control import PROGRAMMATIC
from tcir.errors import PassError
from tcir.passes.emit.builders import i64
from tcir.passes.emit.gpu_module import (
    buffer_numbers,
    kernels_block,
    launch_order,
    pointer_type,
    target_of,
)
from tcir.passes.emit.limits import ceil_div
from tcir.program.launch import UNWRITTEN
from tcir.target import DEFAULT_TARGET

ALIGNMENT = 16
"""Alignment of the caller's buffers and of workspaces, in bytes."""


@dataclass(frozen=True)
class Shape:
    """Launch sizes of a kernel, its position in the sequence of launches, and its target.

    smem: bytes of shared memory
    unwritten: whether the kernel leaves some elements of its results unchanged
    all_registers: whether it takes the registers that all its loads together need, even if an SM
        then has room for few CTAs. Without this, ptxas moves loads after arithmetic
    """

    grid: tuple[int, int, int]
    threads: int
    target: str = DEFAULT_TARGET.name
    order: int | None = None
    smem: int = 0
    unwritten: bool = False
    all_registers: bool = False


@contextmanager
def simt_kernel(
    module: ir.Module, name: str, buffers: Sequence[int], shape: Shape, location: ir.Location
) -> Iterator[dict[int, ir.Value]]:
    """Builds a kernel in ``gpu.module @kernels``; yields the pointers to its buffers by buffer
    number.

    Inside the context, the insertion point is in the kernel, and new ops get the location
    `location`.
    """
    for axis, (size, limit) in enumerate(zip(shape.grid, GRID, strict=True)):
        if size > limit:
            raise PassError(
                f"expected at most {limit} CTAs along grid {'xyz'[axis]}, got {size} "
                "(launch limit); split the problem",
                location,
            )
    parameter = '{{kind = "pointer", arg = {} : i64}}'
    attributes = {
        "nvvm.kernel": ir.UnitAttr.get(),
        "nvvm.reqntid": ir.DenseI32ArrayAttr.get([shape.threads, 1, 1]),
        "tc.grid": ir.DenseI64ArrayAttr.get(list(shape.grid)),
        "tc.smem_bytes": i64(shape.smem),
        "tc.params": ir.ArrayAttr.get([ir.Attribute.parse(parameter.format(n)) for n in buffers]),
        "tc.target": ir.StringAttr.get(shape.target),
    }
    if shape.all_registers:
        attributes["nvvm.minctasm"] = ir.IntegerAttr.get(integer_type(32), 1)
    if shape.order is not None:
        attributes["tc.order"] = i64(shape.order)
    if shape.unwritten:
        attributes[UNWRITTEN] = ir.UnitAttr.get()
    with ir.InsertionPoint(kernels_block(module)), location:
        aligned = ir.Attribute.parse(f"{{llvm.align = {ALIGNMENT} : i64}}")
        count = len(buffers)
        entry = llvm.func(name, [pointer_type(1)] * count, [aligned] * count, attributes)
    with ir.InsertionPoint(entry), location:
        yield dict(zip(buffers, entry.arguments, strict=True))
        llvm.return_()


@contextmanager
def kernel_of(
    module: ir.Module,
    function: func.FuncOp,
    grid: tuple[int, int, int],
    threads: int,
    location: ir.Location,
    *,
    smem: int = 0,
    unwritten: bool = False,
    all_registers: bool = False,
) -> Iterator[list[ir.Value]]:
    """Builds the kernel of a launch; yields the pointers to the function's arguments, then the
    pointers to its results. The parameters are those of `Shape` and `simt_kernel`."""
    buffers = buffer_numbers(function, len(function.type.inputs) + len(function.type.results))
    where = target_of(module), launch_order(function)
    shape = Shape(grid, threads, *where, smem, unwritten, all_registers)
    with simt_kernel(module, function.name.value, buffers, shape, location) as pointers:
        yield [pointers[number] for number in buffers]


@contextmanager
def units_of(
    module: ir.Module,
    function: func.FuncOp,
    count: int,
    threads: int,
    location: ir.Location,
    *,
    unwritten: bool = False,
) -> Iterator[tuple[ir.Value, list[ir.Value]]]:
    """Builds the kernel of a launch whose threads each compute one of `count` units; yields the
    number of the thread's unit, and the pointers that `kernel_of` yields."""
    grid = (ceil_div(count, threads), 1, 1)
    with kernel_of(module, function, grid, threads, location, unwritten=unwritten) as pointers:
        number = thread_number(threads)
        with only_if(less(number, count)):
            yield number, pointers


def thread_number(threads: int) -> ir.Value:
    """The number of the thread, counted over all CTAs along x. threads: threads of a CTA"""
    return add(mul(block_index(0), threads), thread_index())


def wait_for_previous(kernel: ir.OpView) -> None:
    """Makes the launch of a kernel programmatic (programmatic dependent launch): it begins by
    waiting for the previous launch, and lets the next launch start."""
    kernel.attributes[PROGRAMMATIC] = ir.UnitAttr.get()
    with ir.InsertionPoint.at_block_begin(kernel.regions[0].blocks[0]), kernel.location:
        nvvm.griddepcontrol("wait")
        nvvm.griddepcontrol("launch_dependents")


def constant(value: int, bits: int = 32) -> ir.Value:
    """An integer constant. A value with the top bit set is written as a negative number."""
    signed = value - (1 << bits) if value >> (bits - 1) == 1 else value
    return arith.ConstantOp(
        integer_type(bits), ir.IntegerAttr.get(integer_type(bits), signed)
    ).result


def number(value: float) -> ir.Value:
    """An f32 constant."""
    return arith.ConstantOp(ir.F32Type.get(), ir.FloatAttr.get(ir.F32Type.get(), value)).result


Operand: TypeAlias = "ir.Value | int"
"""A value, or an int to be made a constant of the other operand's type."""


def _both(a: Operand, b: Operand) -> list[ir.Value]:
    width = next(each.type.width for each in (a, b) if not isinstance(each, int))
    return [constant(each, width) if isinstance(each, int) else each for each in (a, b)]


def _binary(op: type[ir.OpView]) -> Callable[[Operand, Operand], ir.Value]:
    return lambda a, b: op(*_both(a, b)).result


add, sub, mul = map(_binary, (arith.AddIOp, arith.SubIOp, arith.MulIOp))
"""a + b, a - b and a · b."""
divide, rest, smaller = map(_binary, (arith.DivUIOp, arith.RemUIOp, arith.MinUIOp))
"""a / b, a mod b and the smaller, of numbers ≥ 0."""
both_bits, either_bits, differing_bits = map(_binary, (arith.AndIOp, arith.OrIOp, arith.XOrIOp))
"""a & b, a | b and a ^ b."""


def bytes_in_word(codes: Sequence[ir.Value]) -> ir.Value:
    """Packs up to four one-byte codes into a word, the first code in the low byte."""
    word, *rest_ = codes
    for n, code in enumerate(rest_, start=1):
        word = either_bits(word, left(code, 8 * n))
    return word


def left(a: Operand, count: int) -> ir.Value:
    """Shifts a left by `count` bits."""
    return arith.ShLIOp(*_both(a, count)).result if count else a


def right(a: Operand, count: int) -> ir.Value:
    """Shifts a right by `count` bits, filling with zeros."""
    return arith.ShRUIOp(*_both(a, count)).result if count else a


@contextmanager
def only_if(condition: ir.Value) -> Iterator[None]:
    """Sets the insertion point into the body of an ``scf.if`` with this condition."""
    with ir.InsertionPoint(scf.IfOp(condition).then_block):
        yield
        scf.YieldOp([])


def less(a: Operand, b: Operand) -> ir.Value:
    """Whether a < b; neither is negative."""
    return arith.CmpIOp(arith.CmpIPredicate.ult, *_both(a, b)).result


def equal(a: Operand, b: Operand) -> ir.Value:
    """a == b."""
    return arith.CmpIOp(arith.CmpIPredicate.eq, *_both(a, b)).result


def wide(a: ir.Value) -> ir.Value:
    """Extends an i32 that is not negative to i64."""
    return arith.ExtUIOp(integer_type(64), a).result


def linear(indices: Sequence[ir.Value], extents: Sequence[int]) -> ir.Value:
    """The row-major element number, an i64, of the element at `indices`. If these are only the
    leading indices, the other indices are 0."""
    number = constant(0, 64)
    for index, extent in zip(indices, extents, strict=False):
        number = add(mul(number, extent), wide(index))
    return number


def as_f32(bits: ir.Value) -> ir.Value:
    """The f32 that has the given bits."""
    return arith.BitcastOp(ir.F32Type.get(), bits).result


def thread_index() -> ir.Value:
    """%tid.x, the thread's index in its CTA."""
    return nvvm.read_ptx_sreg("tid.x")


def block_index(axis: int) -> ir.Value:
    """%ctaid.{x,y,z}."""
    return nvvm.read_ptx_sreg(f"ctaid.{'xyz'[axis]}")


def check(holds: ir.Value, expected: str) -> None:
    """Emits a trap, which ends the kernel with an error, unless `holds` is true. expected: names
    the condition, in a comment of the trap instruction"""
    broken = scf.IfOp(differing_bits(holds, 1))
    words = re.sub(r"[^\w .,:;=<>+*()-]", " ", expected, flags=re.ASCII)
    with ir.InsertionPoint(broken.then_block):
        llvm.inline_asm(None, [], f"trap; // {words}", "", has_side_effects=True)
        scf.YieldOp([])


def at(pointer: ir.Value, offset: ir.Value) -> ir.Value:
    """`pointer` plus a number of bytes, which is an i64, or an i32 for shared memory."""
    return llvm.getelementptr(pointer, offset)


def behind(pointer: ir.Value, offset: int) -> ir.Value:
    """`pointer` plus a constant number of bytes."""
    return at(pointer, constant(offset, 64)) if offset else pointer


def load_words(pointer: ir.Value, count: int) -> list[ir.Value]:
    """Loads `count` i32 from an address that is a multiple of 16, or of 8 if `count` is not a
    multiple of 4."""
    step = 4 if count % 4 == 0 else 2
    kind = ir.VectorType.get([step], integer_type(32))
    words = []
    for first in range(0, count, step):
        vector = llvm.load(kind, behind(pointer, 4 * first), alignment=4 * step)
        words += elements_of(vector)
    return words


def load_words_once(pointer: ir.Value) -> list[ir.Value]:
    """Loads four i32 from an address that is a multiple of 16, past L1 on the non-coherent path.

    Use it only for bytes that no launch of the program writes, and that are read only once (PTX ISA
    9.7.9.9). The op is marked as having side effects, so that no pass moves it before a
    ``griddepcontrol.wait``.
    """
    word = integer_type(32)
    text = "ld.global.nc.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];"
    four = llvm.StructType.get_literal([word] * 4)
    made = llvm.inline_asm(four, [pointer], text, "=r,=r,=r,=r,l", has_side_effects=True).result
    return [llvm.extractvalue(word, made, n) for n in range(4)]


def elements_of(vector: ir.Value) -> list[ir.Value]:
    """The elements of a vector."""
    return [llvm.extractelement(vector, constant(n)) for n in range(vector.type.shape[0])]


def vector_of(elements: Sequence[ir.Value]) -> ir.Value:
    """A vector of these elements."""
    vector = llvm.mlir_poison(ir.VectorType.get([len(elements)], elements[0].type))
    for n, each in enumerate(elements):
        vector = llvm.insertelement(vector, each, constant(n))
    return vector


def load_byte(pointer: ir.Value) -> ir.Value:
    """Loads a byte as an i32, by inline PTX because no register has the size of a byte."""
    return asm(integer_type(32), "ld.global.u8 $0, [$1];", "=r,l", [pointer])


def store_byte(pointer: ir.Value, value: ir.Value) -> None:
    """Stores the low byte of an i32."""
    llvm.inline_asm(
        None, [pointer, value], "st.global.u8 [$0], $1;", "l,r,~{memory}", has_side_effects=True
    )


def load(pointer: ir.Value, kind: ir.Type) -> ir.Value:
    """Loads one aligned element."""
    return llvm.load(kind, pointer)


def store(pointer: ir.Value, value: ir.Value) -> None:
    """Stores one aligned element."""
    llvm.store(value, pointer)


def store_run(pointer: ir.Value, elements: Sequence[ir.Value], size: int | None = None) -> None:
    """Stores two to sixteen bytes of consecutive elements at once, aligned to their size.

    size: bytes of an element in memory; a register that holds a single byte is wider
    """
    kind = elements[0].type
    size = size or kind.width // 8
    each = max(1, min(_WORD // size, len(elements)))
    words = [_word(elements[n : n + each], size) for n in range(0, len(elements), each)]
    if each * size < _WORD:
        store(pointer, arith.TruncIOp(integer_type(8 * each * size), words[0]).result)
        return
    llvm.store(vector_of(words), pointer, alignment=_WORD * len(words))


_WORD = 4


def _word(elements: Sequence[ir.Value], size: int) -> ir.Value:
    """Elements of a word, the first in its low bits."""
    if len(elements) == 2 and isinstance(elements[0].type, ir.FloatType):
        return llvm.bitcast(integer_type(8 * _WORD), vector_of(elements))  # cvt.rn.f16x2.f32
    word: ir.Value | None = None
    for n, each in enumerate(elements):
        bits = each
        if isinstance(each.type, ir.FloatType):
            bits = arith.BitcastOp(integer_type(each.type.width), each).result
        if bits.type.width < 8 * _WORD:
            bits = arith.ExtUIOp(integer_type(8 * _WORD), bits).result
        placed = left(bits, 8 * size * n)
        word = placed if word is None else either_bits(word, placed)
    assert word is not None
    return word


def asm(kind: ir.Type, text: str, constraints: str, operands: Sequence[ir.Value]) -> ir.Value:
    """Emits an instruction without side effects as inline PTX."""
    return llvm.inline_asm(kind, operands, text, constraints).result


def fma(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """Emits a · b + c, rounded once."""
    return llvm.intr_fma(a, b, c)


def shuffle_xor(value: ir.Value, distance: int) -> ir.Value:
    """Emits shfl.bfly: the value of the lane whose number differs from this lane's number in the
    bits of `distance`."""
    every, clamp = constant(0xFFFFFFFF), constant(WARP - 1)
    return nvvm.shfl_sync_bfly(every, value, constant(distance), clamp)


def shuffle_from(value: ir.Value, lane: ir.Value) -> ir.Value:
    """Emits shfl.idx: the value of lane number `lane`."""
    return nvvm.shfl_sync_idx(constant(0xFFFFFFFF), value, lane, constant(WARP - 1))


def permute(a: ir.Value, b: ir.Value, selector: ir.Value) -> ir.Value:
    """Emits prmt: selects four bytes out of two words. Each byte is named by four bits of
    `selector`; if the highest of these is set, the byte is replaced by copies of its sign bit
    (PTX ISA 9.7.9.7).
    """
    return asm(integer_type(32), "prmt.b32 $0, $1, $2, $3;", "=r,r,r,r", [a, b, selector])


def any_lane(condition: ir.Value) -> ir.Value:
    """Emits vote.any: whether the i1 `condition` is set in any lane of the warp."""
    text = (
        "{\n.reg .pred p, q;\nsetp.ne.u32 p, $1, 0;\nvote.sync.any.pred q, p, -1;\n"
        "selp.u32 $0, 1, 0, q;\n}"
    )
    bits = arith.ExtUIOp(integer_type(8 * _WORD), condition).result
    found = llvm.inline_asm(bits.type, [bits], text, "=r,r", has_side_effects=True).result
    return arith.cmpi(arith.CmpIPredicate.ne, found, constant(0))


SHARED_SYMBOL = "partials"
"""The shared memory of kernels for CUDA cores."""


def shared(module: ir.Module) -> ir.Value:
    """A pointer to the kernel's shared memory, aligned to `ALIGNMENT`."""
    block = kernels_block(module)
    names = [op.operation.attributes["sym_name"].value for op in block]
    if SHARED_SYMBOL not in names:
        with ir.InsertionPoint.at_block_begin(block):
            dynamic = ir.Type.parse("!llvm.array<0 x i8>")
            llvm.mlir_global(SHARED_SYMBOL, dynamic, space=3, alignment=ALIGNMENT)
    return llvm.mlir_addressof(pointer_type(3), SHARED_SYMBOL)


def words_of(value: ir.Value) -> list[ir.Value]:
    """The bits of a number in i32 registers: one register, or two for a number of 64 bits."""
    width = value.type.width
    if isinstance(value.type, ir.FloatType):
        value = arith.BitcastOp(integer_type(width), value).result
    if width < 32:
        return [arith.ExtUIOp(integer_type(32), value).result]
    if width == 32:
        return [value]
    return [arith.TruncIOp(integer_type(32), each).result for each in (value, right(value, 32))]


def of_words(words: Sequence[ir.Value], kind: ir.Type) -> ir.Value:
    """The number of type `kind` that has these bits (the inverse of `words_of`)."""
    bits, *high = words
    if high:
        bits = either_bits(wide(bits), left(wide(high[0]), 32))
    if kind.width < 32:
        bits = arith.TruncIOp(integer_type(kind.width), bits).result
    return arith.BitcastOp(kind, bits).result if isinstance(kind, ir.FloatType) else bits


def from_lane(value: ir.Value, distance: int) -> ir.Value:
    """The value of the lane at this distance, like `shuffle_xor`, for a number of any width."""
    words = [shuffle_xor(word, distance) for word in words_of(value)]
    return of_words(words, value.type)


def sum_of_lanes(value: ir.Value) -> ir.Value:
    """The sum over a warp, which every lane receives. It is added in a fixed order, by shuffles
    from distance 16 down to 1."""
    for distance in (16, 8, 4, 2, 1):
        value = arith.AddFOp(value, shuffle_xor(value, distance)).result
    return value
