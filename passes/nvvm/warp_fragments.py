"""Lowering of ops on fragments: ldmatrix or plain loads, and mma.sync."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tcir._mlir import arith, ir, llvm, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import defining, integer, string, unsigned_operands
from tcir.dialect.fragments import (
    MATRIX_ROWS,
    PTX_TYPE,
    WORD_BYTES,
    CoreMatrix,
    WarpShare,
    elements,
    matrices,
    share,
    warp_origin,
)
from tcir.dialect.limits import WARP
from tcir.errors import PassError
from tcir.layout.atoms import mma_atom
from tcir.passes.emit.mma_sync import mma_sync

from .converter import (
    Converter,
    Fragment,
    SmemTile,
    StagedTile,
    fragment_registers,
    i32,
    lower,
    results_in_word,
)
from .linear import LinearMap, ThreadOffset
from .warp_copy import shared_pointer

MOST_MATRICES = 4


@lower(tc.ZeroFragmentOp)
def convert_zero(converter: Converter, op: tc.ZeroFragmentOp) -> None:
    """Lowers to registers of zeros."""
    kind = op.fragment.type
    element = kind.element
    integer = str(element) == "i32"
    if str(element).startswith("f8"):  # codes
        element, integer = i32(), True
    zero = ir.IntegerAttr.get(element, 0) if integer else ir.FloatAttr.get(element, 0)
    value = arith.ConstantOp(element, zero).result
    count = fragment_registers(converter.warps, kind)
    scales = str(element) == "f8E8M0FNU"
    converter.values[op.fragment] = Fragment(
        kind, (value,) * (count // results_in_word(kind) if scales else count), packed=scales
    )


@lower(tc.AddFragmentOp)
def convert_add(converter: Converter, op: tc.AddFragmentOp) -> None:
    """Emits ``add.f32`` of every register as one piece of inline assembly, so that the additions
    are not moved: between the next product and its wait, the registers of both partial sums would
    be occupied at once."""
    a, b = converter.record(op.a, Fragment), converter.record(op.b, Fragment)
    count, kind = len(a.registers), op.c.type.element
    if defining(op.a, tc.ZeroFragmentOp):
        pairs = zip(a.registers, b.registers, strict=True)
        sums = tuple(arith.AddFOp(each, zero).result for zero, each in pairs)
        converter.values[op.c] = Fragment(op.c.type, sums)
        return
    text = "\n".join(f"add.rn.f32 ${n}, ${n}, ${2 * count + n};" for n in range(count))
    constraints = ",".join(["=f"] * count + [str(n) for n in range(count)] + ["f"] * count)
    made = llvm.inline_asm(
        llvm.StructType.get_literal([kind] * count),
        [*a.registers, *b.registers],
        text,
        constraints,
        has_side_effects=True,
    ).result
    sums = tuple(llvm.extractvalue(kind, made, n) for n in range(count))
    converter.values[op.c] = Fragment(op.c.type, sums)


@lower(tc.LoadFragmentOp)
def convert_load(converter: Converter, op: tc.LoadFragmentOp) -> None:
    """Emits ``ldmatrix.x4``, which loads one matrix per register, or 32-bit loads."""
    kind = op.fragment.type
    tile = _tile(converter, op)
    part = share(kind.atom, kind.operand, kind.shape, converter.warps)
    load = _by_loads if string(op, "via") == "loads" else _by_ldmatrix
    registers = load(converter, op, tile, kind, part)
    converter.values[op.fragment] = Fragment(kind, tuple(registers))


def _tile(converter: Converter, op: tc.LoadFragmentOp) -> StagedTile | SmemTile:
    """A tile filled by threads or by TMA."""
    if isinstance(op.tile.type, tc.SmemType):
        return converter.record(op.tile, SmemTile)
    return converter.record(op.tile, StagedTile)


def _by_ldmatrix(
    converter: Converter,
    op: tc.LoadFragmentOp,
    tile: StagedTile | SmemTile,
    kind: tc.FragmentType,
    part: WarpShare,
) -> list[ir.Value]:
    of_atom = matrices(kind.atom, kind.operand)
    assert of_atom is not None
    first = integer(op, "k")
    every = [
        CoreMatrix(row + matrix.mn, first + column + matrix.k)
        for row, column in part.atoms()
        for matrix in of_atom
    ]
    trans = string(op, "via") == "ldmatrix.trans"
    registers: list[ir.Value] = []
    while len(registers) < len(every):
        left = len(every) - len(registers)
        count = MOST_MATRICES if left >= MOST_MATRICES else 2 if left >= 2 else 1
        group = every[len(registers) : len(registers) + count]
        registers += _ldmatrix(converter, tile, kind, part, group, trans)
    return registers


def _ldmatrix(
    converter: Converter,
    tile: StagedTile | SmemTile,
    kind: tc.FragmentType,
    part: WarpShare,
    group: list[CoreMatrix],
    trans: bool,
) -> list[ir.Value]:
    """Lane 8i + j names row j of matrix i (PTX ISA 9.7.14.5.15)."""
    start = group[0]

    def offset(thread: int, mn: int, k: int) -> int:
        warp, lane = divmod(thread, WARP)
        matrix, row = group[lane // MATRIX_ROWS % len(group)], lane % MATRIX_ROWS
        mn += warp_origin(kind.operand, part, converter.warps, warp)[0] + matrix.mn - start.mn
        k += matrix.k - start.k
        byte: int = tile.type.offset(mn, k + row) if trans else tile.type.offset(mn + row, k)
        return byte

    rows = tuple((matrix.mn - start.mn, matrix.k - start.k) for matrix in group)
    key = (str(tile.type), str(kind), rows, trans)
    place = _place(converter, offset, tile.type.offset(start.mn, start.k), start, key)
    pointer = shared_pointer(tile, *place.emit(converter))
    count = len(group)
    word = i32()
    result = word if count == 1 else llvm.StructType.get_literal([word] * count)
    loaded = nvvm.ldmatrix(result, pointer, count, "col" if trans else "row")
    if count == 1:
        return [loaded]
    return [llvm.extractvalue(word, loaded, i) for i in range(count)]


def _place(
    converter: Converter,
    offset: Callable[[int, int, int], int],
    constant: int,
    start: CoreMatrix,
    key: Any,
) -> ThreadOffset:
    """The address as a number of the thread XOR a constant; PassError if it is not linear.

    `key` names the function ``offset(·, 0, 0)``. A sum of coordinates is their XOR when no bit is
    in both; the thread with all bits set has every bit that any thread has.
    """
    if key not in converter.linears:
        converter.linears[key] = LinearMap.of(lambda t: offset(t, 0, 0), converter.threads)
    linear: LinearMap = converter.linears[key]
    for thread in (converter.threads - 1, *(1 << b for b in range(len(linear.columns)))):
        if offset(thread, start.mn, start.k) != linear(thread) ^ constant:
            raise PassError(
                f"expected rows at the thread's place XOR {constant}, got another address for "
                f"thread {thread}: extents are no powers of two"
            )
    return ThreadOffset(linear, constant)


def _by_loads(
    converter: Converter,
    op: tc.LoadFragmentOp,
    tile: StagedTile | SmemTile,
    kind: tc.FragmentType,
    part: WarpShare,
) -> list[ir.Value]:
    """Extracts each element from the 32-bit word that holds it, for tiles that ldmatrix cannot
    load."""
    first = integer(op, "k")
    held = elements(kind.atom, kind.operand)
    return [
        _word(converter, tile, kind, part, lanes, CoreMatrix(row, first + column))
        for row, column in part.atoms()
        for lanes in held
    ]


def _word(
    converter: Converter,
    tile: StagedTile | SmemTile,
    kind: tc.FragmentType,
    part: WarpShare,
    lanes: tuple[tuple[tuple[int, int], ...], ...],
    start: CoreMatrix,
) -> ir.Value:
    """The register that holds ``lanes[lane]`` of an atom, lowest bits first."""
    bits = 8 * tc.element_bytes(tile.type.element)
    value: ir.Value | None = None
    for i, (row_0, column_0) in enumerate(lanes[0]):
        first = CoreMatrix(start.mn + row_0, start.k + column_0)
        constant = tile.type.offset(first.mn, first.k)

        def offset(thread: int, mn: int, k: int, i: int = i) -> int:
            warp, lane = divmod(thread, WARP)
            (row, column), (row_0, column_0) = lanes[lane][i], lanes[0][i]
            mn += warp_origin(kind.operand, part, converter.warps, warp)[0] + row - row_0
            byte: int = tile.type.offset(mn, k + column - column_0)
            return byte

        lane_0 = tuple((lane[i][0] - row_0, lane[i][1] - column_0) for lane in lanes)
        key = (str(tile.type), str(kind), lane_0)
        whole = _place(converter, offset, constant, first, key)
        words = LinearMap(tuple(c - c % WORD_BYTES for c in whole.linear.columns))
        inside = LinearMap(tuple(8 * (c % WORD_BYTES) for c in whole.linear.columns))
        byte = constant % WORD_BYTES
        pointer = shared_pointer(tile, *ThreadOffset(words, constant - byte).emit(converter))
        word = llvm.load(i32(), pointer, alignment=WORD_BYTES)
        if bits < 32:
            shift = inside.emit(converter)
            if byte:
                shift = arith.XOrIOp(shift, converter.constant(8 * byte)).result
            word = arith.ShRUIOp(word, shift).result
            word = arith.AndIOp(word, converter.constant((1 << bits) - 1)).result
            word = arith.ShLIOp(word, converter.constant(i * bits)).result if i else word
        value = word if value is None else arith.OrIOp(value, word).result
    assert value is not None
    return value


@lower(tc.MmaSyncOp)
def convert_mma(converter: Converter, op: tc.MmaSyncOp) -> None:
    """Emits ``mma.sync`` as inline assembly, because nvvm.mma.sync does not support e4m3 and
    e5m2."""
    a, b, c = (converter.record(v, Fragment) for v in (op.a, op.b, op.c))
    plain = unsigned_operands(op)
    types = (_ptx_type(a, plain[0]), _ptx_type(b, plain[1]))
    counts = [
        share(f.type.atom, f.type.operand, f.type.shape, converter.warps).registers
        for f in (a, b, c)
    ]
    rows, columns = (len(f.registers) // count for f, count in ((a, counts[0]), (b, counts[1])))
    totals = list(c.registers)
    for row in range(rows):
        # There and back: the next row begins with the part of B that this one ended with.
        for column in range(columns) if row % 2 == 0 else reversed(range(columns)):
            at = (row * columns + column) * counts[2]
            totals[at : at + counts[2]] = mma_sync(
                mma_atom(c.type.atom).shape,
                types,
                a.registers[row * counts[0] : (row + 1) * counts[0]],
                b.registers[column * counts[1] : (column + 1) * counts[1]],
                totals[at : at + counts[2]],
            )
    converter.values[op.d] = Fragment(op.d.type, tuple(totals))


def _ptx_type(factor: Fragment, unsigned: int) -> str:
    return "u8" if unsigned else PTX_TYPE[str(factor.type.element)]
