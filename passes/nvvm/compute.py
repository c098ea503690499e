"""Tensor-core ops, and the copy that feeds them, which shares their descriptors."""

from __future__ import annotations

from tcir._mlir import arith, ir, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integers
from tcir.dialect.cta_pair import columns_of, cta_group_of
from tcir.dialect.limits import SLICE_COLUMNS, TMEM_LANES
from tcir.dialect.ops.compute import collector_of, first_row, kind_of, scale_of
from tcir.errors import PassError

from .converter import Converter, SmemTile, TmemTile, lower, require_role
from .descriptors import ELEMENT_CODE, OperandTile, instruction_descriptor
from .structure import tmem_pointer


def operand_tile(tile: tc.SmemType) -> OperandTile:
    """The static facts of a tile type."""
    mn, k = tile.shape
    return OperandTile(mn, k, tc.element_bytes(tile.element), tile.major, tile.swizzle, tile.span)


def slice_descriptor(converter: Converter, tile: SmemTile, index: int, row: int = 0) -> ir.Value:
    """The i64 matrix descriptor of K slice `index` of `tile`, from its row `row` on.

    The slice lies inside the tile, so there is no carry, as in `tile_descriptor`.
    """
    static = operand_tile(tile.type)
    first = tile_descriptor(converter, tile)
    offset = static.slice_offset(index) + row * static.span >> 4
    return arith.AddIOp(first, converter.constant(offset, 64)).result if offset else first


def tile_descriptor(converter: Converter, tile: SmemTile) -> ir.Value:
    """The i64 matrix descriptor of the start of `tile`, made once per block.

    A constant plus the start of the shared window plus the slot's place in its ring, in units of 16
    bytes. The sum stays inside the window (at most 228 KB < 2^18), so it never carries out of 14
    bits; tiles of all operands have the window's start in common.
    """
    block = ir.InsertionPoint.current.block
    for where, made in tile.descriptors:
        if where == block:
            return made
    window = arith.ShRUIOp(converter.smem, converter.constant(4)).result
    units = arith.AndIOp(window, converter.constant(0x3FFF)).result
    if tile.slot is not None:
        step = arith.MulIOp(tile.slot, converter.constant(tile.stride >> 4)).result
        units = arith.AddIOp(units, step).result
    wide = arith.ExtUIOp(ir.IntegerType.get_signless(64), units).result
    static = operand_tile(tile.type)
    constant = static.wgmma_bits() if converter.of_warps else static.constant_bits()
    bits = constant + (tile.address.offset >> 4)
    signed = bits - (1 << 64) if bits >> 63 else bits
    made = arith.AddIOp(wide, converter.constant(signed, 64)).result
    tile.descriptors.append((block, made))
    return made


@lower(tc.MmaOp)
def convert_mma(converter: Converter, op: tc.MmaOp) -> None:
    """``tcgen05.mma``, with A in tensor memory or shared memory."""
    require_role(converter, op)
    d = converter.record(op.d, TmemTile)
    b = converter.record(op.b, SmemTile)
    a = converter.value(op.a)
    ashift = bool(integer(op, "ashift"))
    a_slice, b_slice = integer(op, "a_slice"), integer(op, "b_slice")
    for operand in (a, b):
        if str(operand.type.element) not in ELEMENT_CODE:
            raise PassError(
                f"expected operands of {' or '.join(ELEMENT_CODE)}, got {operand.type.element}"
            )
    lanes, n = d.type.shape
    if lanes != TMEM_LANES or n % 16 or not 16 <= n <= 256:
        raise PassError(
            f"expected an accumulator of 128 lanes and 16 to 256 columns in steps of 16, got "
            f"{lanes} x {n} (PTX ISA 9.7.16.2)"
        )
    if ashift and not isinstance(a, TmemTile):
        raise PassError("expected A in tensor memory with ashift, got it in shared memory")
    nvvm.tcgen05.mma(
        kind_of(op),
        tmem_pointer(converter.tmem_columns(d)),
        (matrix_a(converter, a, a_slice, first_row(op)), slice_descriptor(converter, b, b_slice)),
        converter.constant(descriptor_of(op, lanes)),
        converter.ssa(op.accumulate),
        nvvm.tcgen05.MmaForm(
            a_shift=ashift,
            disable_output_lane=d.disabled,
            scale_input_d=scale_operand(converter, op),
            collector=collector_of(op),
            cta_group=cta_group_of(op),
        ),
    )


def matrix_a(converter: Converter, a: SmemTile | TmemTile, index: int, row: int = 0) -> ir.Value:
    """K slice `index` of A: the address of its columns, or a descriptor."""
    if isinstance(a, TmemTile):
        return tmem_pointer(converter.tmem_columns(a, SLICE_COLUMNS * index))
    return slice_descriptor(converter, a, index, row)


def descriptor_of(op: ir.OpView, m: int, selector: int | None = None) -> int:
    """The instruction descriptor of an mma without block scales; `m`: rows of A in a CTA."""
    a, b = op.a.type, op.b.type
    elements = [str(a.element), str(b.element)]
    if "unsigned" in op.attributes:
        elements = ["u8" if plain else "i8" for plain in integers(op, "unsigned")]
    return instruction_descriptor(
        m=m * cta_group_of(op),
        n=columns_of(op),
        d=str(op.d.type.element),
        a=elements[0],
        b=elements[1],
        a_major=a.major if isinstance(a, tc.SmemType) else "K",
        b_major=b.major,
        selector=selector,
    )


def scale_operand(converter: Converter, op: ir.OpView) -> ir.Value | None:
    """The constant ``scale-input-d`` of an mma; None if it has none."""
    scale = scale_of(op)
    return None if scale is None else converter.constant(scale, 64)


@lower(tc.CpOp)
def convert_cp(converter: Converter, op: tc.CpOp) -> None:
    """``tcgen05.cp.128x256b``."""
    require_role(converter, op)
    source = converter.record(op.source, SmemTile)
    target = converter.record(op.target, TmemTile)
    index = integer(op, "slice")
    if source.type.major != "K":
        raise PassError("expected a K-major source: tcgen05.cp copies rows (PTX ISA 9.7.16.9)")
    nvvm.tcgen05.cp(
        "128x256b",
        tmem_pointer(converter.tmem_columns(target, SLICE_COLUMNS * index)),
        slice_descriptor(converter, source, index),
        cta_group=cta_group_of(op),
    )
