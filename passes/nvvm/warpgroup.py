"""Lowering of warpgroup ops: the redistribution of registers, and wgmma and its waits, as inline
assembly whose accumulators are tied operands."""

from __future__ import annotations

from itertools import groupby, takewhile
from typing import TypeAlias

from tcir._mlir import arith, ir, llvm, nvvm, scf
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integers, unsigned_operands
from tcir.dialect.fragments import PTX_TYPE, share
from tcir.dialect.limits import MMA_K_BYTES, WARP, WARPGROUP, WGMMA_M, launch_registers
from tcir.errors import PassError

from .compute import operand_tile, slice_descriptor
from .converter import Converter, Fragment, SmemTile, lower
from .structure import convert_role


@lower(tc.WgmmaOp)
def convert_wgmma(converter: Converter, op: tc.WgmmaOp) -> None:
    """Emits one piece of inline assembly: ``wgmma.fence``, an instruction for each K slice, and
    ``wgmma.commit_group``.

    LLVM has no intrinsic for the product; upstream's `nvvm.wgmma.mma_async` also becomes inline
    assembly.
    """
    _convert(converter, op, [(op.a, op.b, 0)])


@lower(tc.WgmmaTapsOp)
def convert_wgmma_taps(converter: Converter, op: tc.WgmmaTapsOp) -> None:
    """Emits the products of each pair of tiles as `convert_wgmma` does. Each tile of A is read from
    the row on that the op gives for it."""
    _convert(converter, op, list(zip(op.a, op.b, integers(op, "rows"), strict=True)))


@lower(tc.WgmmaProductOp)
def convert_wgmma_product(converter: Converter, op: tc.WgmmaProductOp) -> None:
    """Emits a product as `convert_wgmma` does, but without an accumulator: the scale-d of the first
    instruction is false."""
    _convert(converter, op, [(op.a, op.b, 0)])


A_WORDS = 4
"""Registers of A of an instruction: four bytes of elements in each (PTX ISA 9.7.15.5.1.1)."""
FALSE = (".reg .pred q;", "setp.ne.u32 q, 0, 0;")
"""The scale-d of an instruction that adds to nothing."""
_Wgmma: TypeAlias = tc.WgmmaOp | tc.WgmmaTapsOp | tc.WgmmaProductOp


def _convert(converter: Converter, op: _Wgmma, pairs: list[tuple[ir.Value, ir.Value, int]]) -> None:
    """One group of the products of `pairs`: tiles of A and B, and the first row of A."""
    kind = op.d.type
    part = share(kind.atom, kind.operand, kind.shape, converter.warps)
    count = len(part.atoms()) * part.registers
    sums: list[ir.Value] = []
    if not isinstance(op, tc.WgmmaProductOp):
        sums = list(converter.record(op.c, Fragment).registers)
    descriptors = []
    for first, second, row in pairs:
        a, b = converter.record(first, SmemTile), converter.record(second, SmemTile)
        group = _warpgroup_row(converter, a, kind.shape[0])
        for number in range(a.type.shape[1] * tc.element_bytes(a.type.element) // MMA_K_BYTES):
            rows = slice_descriptor(converter, a, number, row)
            rows = rows if group is None else arith.AddIOp(rows, group).result
            descriptors += [rows, slice_descriptor(converter, b, number)]
    types = pairs[0][0].type, pairs[0][1].type
    text, constraints = _assembly(op, *types, count, len(descriptors))
    registers = _outputs([kind.element] * count, [*sums, *descriptors], text, constraints)
    converter.values[op.d] = Fragment(kind, tuple(registers))


@lower(tc.WgmmaFragmentOp, tc.WgmmaFragmentProductOp)
def convert_wgmma_fragment(
    converter: Converter, op: tc.WgmmaFragmentOp | tc.WgmmaFragmentProductOp
) -> None:
    """Emits a product as `convert_wgmma` and `convert_wgmma_product` do, but with A in registers:
    for each instruction, which covers 32 bytes of each row, a thread holds four."""
    kind = op.d.type
    part = share(kind.atom, kind.operand, kind.shape, converter.warps)
    count = len(part.atoms()) * part.registers
    accumulates = isinstance(op, tc.WgmmaFragmentOp)
    a = converter.record(op.a, Fragment).registers
    sums = converter.record(op.c, Fragment).registers if accumulates else ()
    b = converter.record(op.b, SmemTile)
    bytes_ = tc.element_bytes(op.b.type.element)
    number = op.a.type.shape[1] * bytes_ // MMA_K_BYTES
    descriptors = [slice_descriptor(converter, b, index) for index in range(number)]
    kinds = ".".join(PTX_TYPE[str(each.type.element)] for each in (op.a, op.b))
    shape = f"m{WGMMA_M}n{op.b.type.shape[0]}k{MMA_K_BYTES // bytes_}"
    name = f"wgmma.mma_async.sync.aligned.{shape}.f32.{kinds}"
    into = ", ".join(f"${each}" for each in range(count))
    first = count + len(sums)
    behind = first + len(a)
    scales = ["p" if accumulates else "q", *["p"] * (number - 1)]
    transposed = f", {int(b.type.major == 'MN')}" if bytes_ == 2 else ""
    lines = [
        "{", ".reg .pred p;", "setp.eq.u32 p, 0, 0;", *([] if accumulates else FALSE),
        "wgmma.fence.sync.aligned;",
        *(
            f"{name} {{{into}}}, "
            f"{{{', '.join(f'${first + A_WORDS * each + word}' for word in range(A_WORDS))}}}, "
            f"${behind + each}, {scale}, 1, 1{transposed};"
            for each, scale in enumerate(scales)
        ),
        "wgmma.commit_group.sync.aligned;", "}",
    ]  # fmt: skip
    constraints = ["=f"] * count + [str(each) for each in range(len(sums))]
    constraints += ["r"] * len(a) + ["l"] * number
    registers = _outputs(
        [kind.element] * count, [*sums, *a, *descriptors], "\n".join(lines), ",".join(constraints)
    )
    converter.values[op.d] = Fragment(kind, tuple(registers))


@lower(tc.WgmmaWaitOp)
def convert_wgmma_wait(converter: Converter, op: tc.WgmmaWaitOp) -> None:
    """Emits ``wgmma.wait_group``, with the accumulators as operands and results, so that no use can
    be moved before the wait."""
    sums = converter.record(op.d, Fragment)
    letter = _letter(op.d.type)
    count = len(sums.registers)
    constraints = [f"={letter}"] * count + [str(number) for number in range(count)]
    text = f"wgmma.wait_group.sync.aligned {integer(op, 'pending')};"
    types = [each.type for each in sums.registers]
    registers = _outputs(types, list(sums.registers), text, ",".join(constraints))
    converter.values[op.e] = Fragment(op.e.type, tuple(registers))


def _warpgroup_row(converter: Converter, a: SmemTile, rows: int) -> ir.Value | None:
    """Distance, in the descriptor, of the warpgroup's first row of A from the first of all
    `rows`."""
    if rows == WGMMA_M:
        return None
    static = operand_tile(a.type)
    by_columns = WGMMA_M * static.element_bytes * static.k
    step = (WGMMA_M * static.span if static.major == "K" else by_columns) >> 4
    if ("warpgroup", step) not in converter.at_entry:
        # Multiplied in 32 bits: ptxas 13.0 dies with SIGSEGV where the sum of a mul.wide and an
        # address is added to several constants of 64 bits, as LLVM reorders the descriptors.
        four, units = converter.constant(WARPGROUP // WARP), converter.constant(step)
        with ir.InsertionPoint.after(converter.lane.owner):
            number = arith.DivUIOp(converter.warp, four).result
            rows = arith.MulIOp(number, units).result
            wide = arith.ExtUIOp(ir.IntegerType.get_signless(64), rows).result
            converter.at_entry["warpgroup", step] = wide
    return converter.at_entry["warpgroup", step]


def _outputs(
    types: list[ir.Type], operands: list[ir.Value], text: str, constraints: str
) -> list[ir.Value]:
    """Registers of these types that the assembly writes."""
    result = llvm.StructType.get_literal(types)
    made = llvm.inline_asm(result, operands, text, constraints, has_side_effects=True).result
    return [llvm.extractvalue(kind, made, i) for i, kind in enumerate(types)]


def _letter(kind: tc.FragmentType) -> str:
    return "r" if str(kind.element) == "i32" else "f"


def _assembly(
    op: _Wgmma, a: tc.SmemType, b: tc.SmemType, count: int, descriptors: int
) -> tuple[str, str]:
    """The assembly text and its constraints: outputs, the same registers as inputs if it
    accumulates, then the descriptors."""
    accumulates = not isinstance(op, tc.WgmmaProductOp)
    bytes_ = tc.element_bytes(a.element)
    is_integer = str(op.d.type.element) == "i32"
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
    start = 2 * count if accumulates else count
    scales = ["p" if accumulates else "q", *["p"] * (descriptors // 2 - 1)]
    products = [
        f"{name} {{{sums}}}, ${first}, ${first + 1}, {scale}{signs};"
        for first, scale in zip(range(start, start + descriptors, 2), scales, strict=True)
    ]
    lines = [
        "{", ".reg .pred p;", "setp.eq.u32 p, 0, 0;", *([] if accumulates else FALSE),
        "wgmma.fence.sync.aligned;",
        *products, "wgmma.commit_group.sync.aligned;", "}",
    ]  # fmt: skip
    letter = _letter(op.d.type)
    tied = [str(i) for i in range(count)] if accumulates else []
    constraints = [f"={letter}"] * count + tied + ["l"] * descriptors
    return "\n".join(lines), ",".join(constraints)


@lower(tc.WarpgroupRegistersOp)
def convert_warpgroup_registers(converter: Converter, op: tc.WarpgroupRegistersOp) -> None:
    """Emits one branch for all warpgroups that get the same number of registers; the branch
    contains their roles. ptxas ignores setmaxnreg if code that needs more registers is reachable
    from it (C7507)."""
    shares = integers(op, "registers")
    groups = [(share, len(list(of))) for share, of in groupby(shares)]
    behind = list(op.operation.block.operations)
    behind = behind[behind.index(op) + 1 :]
    roles = list(takewhile(lambda each: isinstance(each, tc.RoleOp), behind))
    _share_out(converter, groups, 0, launch_registers(WARPGROUP * len(shares)), roles)
    converter.placed = roles


def _share_out(
    converter: Converter,
    groups: list[tuple[int, int]],
    first: int,
    launched: int,
    roles: list[tc.RoleOp],
) -> None:
    """Branches for `groups`, each a share and a number of warpgroups, from warp `first` on."""
    (share, count), *rest = groups
    end = first + count * (WARPGROUP // WARP)

    def place() -> None:
        if share != launched:
            nvvm.setmaxregister("increase" if share > launched else "decrease", share)
        for role in roles:
            warps = integers(role, "warps")
            if first <= warps[0] < end:
                if warps[-1] >= end:
                    raise PassError(
                        f"expected roles of warpgroups with one share of registers, got {warps}"
                    )
                convert_role(converter, role)

    if not rest:
        place()
        return
    mine = arith.CmpIOp(arith.CmpIPredicate.ult, converter.warp, converter.constant(end)).result
    branch = scf.IfOp(mine, has_else=True)
    with ir.InsertionPoint(branch.then_block):
        place()
        scf.YieldOp([])
    with ir.InsertionPoint(branch.else_block):
        _share_out(converter, rest, end, launched, roles)
        scf.YieldOp([])
