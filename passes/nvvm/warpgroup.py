"""Warpgroups: shares of registers; wgmma and its waits, as inline assembly on tied accumulators."""

from __future__ import annotations

from tcir._mlir import arith, ir, llvm, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integers, unsigned_operands
from tcir.dialect.fragments import PTX_TYPE
from tcir.dialect.limits import MMA_K_BYTES, WARP, WARPGROUP, WGMMA_M, launch_registers

from .compute import operand_tile, slice_descriptor
from .converter import Converter, Fragment, SmemTile, lower, require_role
from .structure import is_equal, only_if


@lower(tc.WgmmaOp)
def convert_wgmma(converter: Converter, op: tc.WgmmaOp) -> None:
    """One text: ``wgmma.fence``, an instruction for each K slice, ``wgmma.commit_group``.

    LLVM has no intrinsic for the product; `nvvm.wgmma.mma_async` becomes inline assembly, too.
    """
    _convert(converter, op, [(op.a, op.b, 0)])


@lower(tc.WgmmaTapsOp)
def convert_wgmma_taps(converter: Converter, op: tc.WgmmaTapsOp) -> None:
    """The same for each pair of tiles, of A from its row on."""
    _convert(converter, op, list(zip(op.a, op.b, integers(op, "rows"), strict=True)))


def _convert(
    converter: Converter,
    op: tc.WgmmaOp | tc.WgmmaTapsOp,
    pairs: list[tuple[ir.Value, ir.Value, int]],
) -> None:
    """One group of the products of `pairs`: tiles of A and B, and the first row of A."""
    require_role(converter, op)
    sums = converter.record(op.c, Fragment)
    descriptors = []
    for first, second, row in pairs:
        a, b = converter.record(first, SmemTile), converter.record(second, SmemTile)
        group = _warpgroup_row(converter, a, op.c.type.shape[0])
        for number in range(a.type.shape[1] * tc.element_bytes(a.type.element) // MMA_K_BYTES):
            rows = slice_descriptor(converter, a, number, row)
            rows = rows if group is None else arith.AddIOp(rows, group).result
            descriptors += [rows, slice_descriptor(converter, b, number)]
    types = pairs[0][0].type, pairs[0][1].type
    text, constraints = _assembly(op, *types, len(sums.registers), len(descriptors))
    registers = _tied(list(sums.registers), text, constraints, descriptors)
    converter.values[op.d] = Fragment(op.d.type, tuple(registers))


@lower(tc.WgmmaWaitOp)
def convert_wgmma_wait(converter: Converter, op: tc.WgmmaWaitOp) -> None:
    """``wgmma.wait_group`` that the accumulators pass through, so that no use precedes it."""
    require_role(converter, op)
    sums = converter.record(op.d, Fragment)
    letter = _letter(op.d.type)
    count = len(sums.registers)
    constraints = [f"={letter}"] * count + [str(number) for number in range(count)]
    text = f"wgmma.wait_group.sync.aligned {integer(op, 'pending')};"
    registers = _tied(list(sums.registers), text, ",".join(constraints), [])
    converter.values[op.e] = Fragment(op.e.type, tuple(registers))


def _warpgroup_row(converter: Converter, a: SmemTile, rows: int) -> ir.Value | None:
    """What the descriptor of the warpgroup's first row of A is further than that of the first of
    all `rows`."""
    if rows == WGMMA_M:
        return None
    static = operand_tile(a.type)
    by_columns = WGMMA_M * static.element_bytes * static.k
    step = (WGMMA_M * static.span if static.major == "K" else by_columns) >> 4
    if ("warpgroup", step) not in converter.at_entry:
        four, units = converter.constant(WARPGROUP // WARP), converter.constant(step, 64)
        with ir.InsertionPoint.after(converter.lane.owner):
            number = arith.DivUIOp(converter.warp, four).result
            wide = arith.ExtUIOp(ir.IntegerType.get_signless(64), number).result
            converter.at_entry["warpgroup", step] = arith.MulIOp(wide, units).result
    return converter.at_entry["warpgroup", step]


def _tied(
    registers: list[ir.Value], text: str, constraints: str, operands: list[ir.Value]
) -> list[ir.Value]:
    """`registers` after the text, whose outputs they are as well as its inputs."""
    element = registers[0].type
    result = llvm.StructType.get_literal([element] * len(registers))
    made = llvm.inline_asm(
        result, [*registers, *operands], text, constraints, has_side_effects=True
    ).result
    return [llvm.extractvalue(element, made, i) for i in range(len(registers))]


def _letter(kind: tc.FragmentType) -> str:
    return "r" if str(kind.element) == "i32" else "f"


def _assembly(
    op: tc.WgmmaOp | tc.WgmmaTapsOp, a: tc.SmemType, b: tc.SmemType, count: int, descriptors: int
) -> tuple[str, str]:
    """The text and its constraints: outputs, the same as inputs, then the descriptors."""
    bytes_ = tc.element_bytes(a.element)
    is_integer = str(op.c.type.element) == "i32"
    kinds = ".".join(
        "u8" if plain else PTX_TYPE[str(each.element)]
        for each, plain in zip((a, b), unsigned_operands(op), strict=True)
    )
    shape = f"m{WGMMA_M}n{b.shape[0]}k{MMA_K_BYTES // bytes_}"
    sums = ", ".join(f"${number}" for number in range(count))
    signs = "" if is_integer else ", 1, 1"
    if bytes_ == 2:
        signs += "".join(f", {int(each.major == 'MN')}" for each in (a, b))
    name = f"wgmma.mma_async.sync.aligned.{shape}.{'s32' if is_integer else 'f32'}.{kinds}"
    products = [
        f"{name} {{{sums}}}, ${first}, ${first + 1}, p{signs};"
        for first in range(2 * count, 2 * count + descriptors, 2)
    ]
    lines = [
        "{", ".reg .pred p;", "setp.eq.u32 p, 0, 0;", "wgmma.fence.sync.aligned;", *products,
        "wgmma.commit_group.sync.aligned;", "}",
    ]  # fmt: skip
    letter = _letter(op.c.type)
    constraints = [f"={letter}"] * count + [str(i) for i in range(count)] + ["l"] * descriptors
    return "\n".join(lines), ",".join(constraints)


@lower(tc.WarpgroupRegistersOp)
def convert_warpgroup_registers(converter: Converter, op: tc.WarpgroupRegistersOp) -> None:
    """A branch on the warpgroup for each share that differs from the launch's."""
    shares = integers(op, "registers")
    launched = launch_registers(WARPGROUP * len(shares))
    four = converter.constant(WARPGROUP // WARP)
    warpgroup = arith.DivUIOp(converter.warp, four).result
    for number, count in enumerate(shares):
        if count == launched:
            continue
        with only_if(is_equal(converter, warpgroup, number)):
            nvvm.setmaxregister("increase" if count > launched else "decrease", count)
