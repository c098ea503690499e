"""Kernels for CUDA cores, built at the thread level: their shell, memory accesses, arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tcir._mlir import arith, func, ir, llvm, nvvm
from tcir.dialect.limits import GRID
from tcir.passes.build.emit import integer as integer_of
from tcir.passes.build.emit import integers
from tcir.passes.build.gpu_module import kernels_block
from tcir.passes.build.refusal import refuse
from tcir.target import DEFAULT_TARGET

WARP = 32
ALIGNMENT = 16
"""Of the caller's buffers, and of workspaces."""


@dataclass(frozen=True)
class Shape:
    """Launch sizes of a kernel, its place in the sequence of launches, and its target."""

    grid: tuple[int, int, int]
    threads: int
    target: str = DEFAULT_TARGET.name
    order: int | None = None


def place_of(function: func.FuncOp) -> tuple[list[int], int | None]:
    """Numbers of the buffers of a function of one input and one result, and its place in the order
    of launches; None where it is the only one."""
    known = function.attributes
    buffers = integers(known["tc.args"]) if "tc.args" in known else [0, 1]
    return buffers, integer_of(known["tc.order"]) if "tc.order" in known else None


@contextmanager
def simt_kernel(
    module: ir.Module, name: str, buffers: Sequence[int], shape: Shape, source: Any
) -> Iterator[dict[int, Any]]:
    """A kernel in ``gpu.module @kernels``; yields the pointer of each buffer by its number.

    Inside, the insertion point is in the kernel and the location is that of `source`.
    """
    for axis, (size, limit) in enumerate(zip(shape.grid, GRID, strict=True)):
        if size > limit:
            raise refuse(
                source, f"expected at most {limit} CTAs along grid {'xyz'[axis]}, got {size} "
                "(launch limit); split the problem",
            )  # fmt: skip
    parameter = '{{kind = "pointer", arg = {} : i64}}'
    attributes = {
        "nvvm.kernel": ir.UnitAttr.get(),
        "nvvm.reqntid": ir.DenseI32ArrayAttr.get([shape.threads, 1, 1]),
        "tc.grid": ir.DenseI64ArrayAttr.get(list(shape.grid)),
        "tc.smem_bytes": i64_attribute(0),
        "tc.params": ir.ArrayAttr.get([ir.Attribute.parse(parameter.format(n)) for n in buffers]),
        "tc.target": ir.StringAttr.get(shape.target),
    }
    if shape.order is not None:
        attributes["tc.order"] = i64_attribute(shape.order)
    types = ", ".join(["!llvm.ptr<1>"] * len(buffers))
    with ir.InsertionPoint(kernels_block(module)), source.location:
        aligned = ir.Attribute.parse(f"{{llvm.align = {ALIGNMENT} : i64}}")
        function = llvm.LLVMFuncOp(
            name,
            ir.TypeAttr.parse(f"!llvm.func<void ({types})>"),
            arg_attrs=ir.ArrayAttr.get([aligned] * len(buffers)),
        )
        for key, value in attributes.items():
            function.operation.attributes[key] = value
        entry = function.operation.regions[0].blocks.append(
            *[global_pointer()] * len(buffers), arg_locs=[source.location] * len(buffers)
        )
    with ir.InsertionPoint(entry), source.location:
        yield dict(zip(buffers, entry.arguments, strict=True))
        llvm.ReturnOp()


def target_of(module: ir.Module) -> str:
    """What `module` is compiled for."""
    attributes = module.operation.attributes
    if "tc.target" in attributes:
        return ir.StringAttr(attributes["tc.target"]).value
    return DEFAULT_TARGET.name


def i64_attribute(value: int) -> ir.Attribute:
    """A 64-bit integer attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def global_pointer() -> ir.Type:
    """The type of pointers to global memory."""
    return ir.Type.parse("!llvm.ptr<1>")


def integer(bits: int) -> ir.Type:
    """iN."""
    return ir.IntegerType.get_signless(bits)


def constant(value: int, bits: int = 32) -> Any:
    """An integer constant; one with the top bit set is written as a negative number."""
    signed = value - (1 << bits) if value >> (bits - 1) == 1 else value
    return arith.ConstantOp(integer(bits), ir.IntegerAttr.get(integer(bits), signed)).result


def number(value: float) -> Any:
    """An f32 constant."""
    return arith.ConstantOp(ir.F32Type.get(), ir.FloatAttr.get(ir.F32Type.get(), value)).result


Operand = Any
"""A value, or an int that becomes a constant of the other operand's type."""


def _both(a: Operand, b: Operand) -> tuple[Any, Any]:
    if isinstance(a, int):
        return constant(a, b.type.width), b
    return a, constant(b, a.type.width) if isinstance(b, int) else b


def add(a: Operand, b: Operand) -> Any:
    """a + b."""
    return arith.AddIOp(*_both(a, b)).result


def mul(a: Operand, b: Operand) -> Any:
    """a · b."""
    return arith.MulIOp(*_both(a, b)).result


def divide(a: Operand, b: int) -> Any:
    """a / b of numbers ≥ 0."""
    return arith.DivUIOp(*_both(a, b)).result


def rest(a: Operand, b: int) -> Any:
    """a mod b of numbers ≥ 0."""
    return arith.RemUIOp(*_both(a, b)).result


def both_bits(a: Operand, b: Operand) -> Any:
    """a & b."""
    return arith.AndIOp(*_both(a, b)).result


def either_bits(a: Operand, b: Operand) -> Any:
    """a | b."""
    return arith.OrIOp(*_both(a, b)).result


def differing_bits(a: Operand, b: Operand) -> Any:
    """a ^ b."""
    return arith.XOrIOp(*_both(a, b)).result


def left(a: Operand, count: int) -> Any:
    """a << count."""
    return arith.ShLIOp(*_both(a, count)).result if count else a


def right(a: Operand, count: int) -> Any:
    """a >> count, zeros coming in."""
    return arith.ShRUIOp(*_both(a, count)).result if count else a


def less(a: Operand, b: Operand) -> Any:
    """a < b of numbers ≥ 0."""
    return arith.CmpIOp(arith.CmpIPredicate.ult, *_both(a, b)).result


def equal(a: Operand, b: Operand) -> Any:
    """a == b."""
    return arith.CmpIOp(arith.CmpIPredicate.eq, *_both(a, b)).result


def smaller(a: Operand, b: Operand) -> Any:
    """The smaller of numbers ≥ 0."""
    return arith.MinUIOp(*_both(a, b)).result


def wide(a: Any) -> Any:
    """An i32 ≥ 0 as i64."""
    return arith.ExtUIOp(integer(64), a).result


def as_f32(bits: Any) -> Any:
    """The f32 with these bits."""
    return arith.BitcastOp(ir.F32Type.get(), bits).result


def thread_index() -> Any:
    """%tid.x."""
    return nvvm.ThreadIdXOp(results=[integer(32)]).result


def block_index(axis: int) -> Any:
    """%ctaid.{x,y,z}."""
    read = (nvvm.BlockIdXOp, nvvm.BlockIdYOp, nvvm.BlockIdZOp)[axis]
    return read(results=[integer(32)]).result


def at(pointer: Any, offset: Any) -> Any:
    """`pointer` plus an i64 number of bytes."""
    byte, flags = integer(8), ir.Attribute.parse("0 : i32")
    return llvm.GEPOp(global_pointer(), pointer, [offset], [-(2**31)], byte, flags).result


def behind(pointer: Any, offset: int) -> Any:
    """`pointer` plus a known number of bytes."""
    return at(pointer, constant(offset, 64)) if offset else pointer


def load_words(pointer: Any, count: int) -> list[Any]:
    """`count` i32 from an address that is a multiple of 16, or of 8 where `count` is not of 4."""
    step = 4 if count % 4 == 0 else 2
    kind = ir.VectorType.get([step], integer(32))
    words = []
    for first in range(0, count, step):
        vector = llvm.LoadOp(kind, behind(pointer, 4 * first), alignment=4 * step).res
        words += [llvm.ExtractElementOp(vector, constant(n)).result for n in range(step)]
    return words


def load_byte(pointer: Any) -> Any:
    """A byte, as i32. (A byte has no register of its own, hence PTX.)"""
    return asm(integer(32), "ld.global.u8 $0, [$1];", "=r,l", [pointer])


def store_byte(pointer: Any, value: Any) -> None:
    """The low byte of an i32."""
    llvm.InlineAsmOp(
        None, [pointer, value], "st.global.u8 [$0], $1;", "l,r,~{memory}", has_side_effects=True
    )


def load(pointer: Any, kind: Any) -> Any:
    """One aligned number."""
    return llvm.LoadOp(kind, pointer).res


def store(pointer: Any, value: Any) -> None:
    """One aligned number."""
    llvm.StoreOp(value, pointer)


def asm(kind: Any, text: str, constraints: str, operands: Sequence[Any]) -> Any:
    """An instruction without side effects."""
    return llvm.InlineAsmOp(kind, list(operands), text, constraints).res


def fma(a: Any, b: Any, c: Any) -> Any:
    """a · b + c, rounded once."""
    return llvm.FMAOp(a, b, c).res


def shuffle_xor(value: Any, distance: int) -> Any:
    """The value of the lane whose number differs in the bits of `distance`; of all lanes."""
    return nvvm.ShflOp(
        constant(0xFFFFFFFF), value, constant(distance), constant(WARP - 1), nvvm.ShflKind.bfly,
        results=[value.type],
    ).res  # fmt: skip


def sum_of_lanes(value: Any) -> Any:
    """The sum over a warp in every lane, always in the same order: halves, quarters, …"""
    for distance in (16, 8, 4, 2, 1):
        value = arith.AddFOp(value, shuffle_xor(value, distance)).result
    return value
