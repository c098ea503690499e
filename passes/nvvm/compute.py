"""Lowering of the tensor-core ops, and of the copy that fills their A operand and uses the same
descriptors."""

from __future__ import annotations

from tcir._mlir import arith, ir, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integers
from tcir.dialect.cta_pair import columns_of, cta_group_of
from tcir.dialect.limits import SLICE_COLUMNS
from tcir.dialect.ops.compute import collector_of, first_row, kind_of, scale_of
from tcir.dialect.ops.mma_ws import buffer_of

from .converter import Converter, SmemTile, TmemTile, lower
from .descriptors import OperandTile, instruction_descriptor
from .structure import tmem_pointer


def operand_tile(tile: tc.SmemType) -> OperandTile:
    """The facts of a tile that follow from its type."""
    mn, k = tile.shape
    return OperandTile(mn, k, tc.element_bytes(tile.element), tile.major, tile.swizzle, tile.span)


def slice_descriptor(converter: Converter, tile: SmemTile, index: int, row: int = 0) -> ir.Value:
    """The i64 matrix descriptor of K slice `index` of `tile`, from its row `row` on.

    The slice is inside the tile, so adding its offset causes no carry, as explained in
    `tile_descriptor`.
    """
    static = operand_tile(tile.type)
    first = tile_descriptor(converter, tile)
    offset = static.slice_offset(index) + row * static.span >> 4
    return arith.AddIOp(first, converter.constant(offset, 64)).result if offset else first


def tile_descriptor(converter: Converter, tile: SmemTile) -> ir.Value:
    """The i64 matrix descriptor of the start of `tile`, built once per block.

    It is the sum of a constant, the start of the shared window, and the position of the slot in its
    ring, in units of 16 bytes. The sum stays inside the window (at most 228 KB < 2^18), so it never
    carries out of the 14 bits of the address field. The start of the window is computed once for
    the tiles of all operands.
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


B_SLICES = 2
"""Slices of 32 bytes of B that a sparse instruction reads."""


@lower(tc.MmaOp)
def convert_mma(converter: Converter, op: tc.MmaOp) -> None:
    """Lowers to ``tcgen05.mma``, with A in tensor memory or shared memory."""
    _multiply(converter, op, op.d.type.shape[0])


@lower(tc.MmaSparseOp)
def convert_mma_sparse(converter: Converter, op: tc.MmaSparseOp) -> None:
    """Lowers to ``tcgen05.mma.sp.cta_group::1``, with A in tensor memory or shared memory."""
    _multiply(converter, op, op.d.type.shape[0], integer(op, "selector"))


@lower(tc.MmaWsOp)
def convert_mma_ws(converter: Converter, op: tc.MmaWsOp) -> None:
    """Lowers to ``tcgen05.mma.ws.cta_group::1``, with A in tensor memory or shared memory."""
    _multiply(converter, op, op.a.type.shape[0])


@lower(tc.MmaWsSparseOp)
def convert_mma_ws_sparse(converter: Converter, op: tc.MmaWsSparseOp) -> None:
    """Lowers to ``tcgen05.mma.ws.sp.cta_group::1``, with A in tensor memory or shared memory."""
    _multiply(converter, op, op.a.type.shape[0], integer(op, "selector"))


def _multiply(converter: Converter, op: ir.OpView, m: int, selector: int | None = None) -> None:
    """m: rows of A in a CTA; selector: that of the metadata of a sparse A."""
    d, b = converter.record(op.d, TmemTile), converter.record(op.b, SmemTile)
    row = first_row(op) if isinstance(op, tc.MmaOp) else 0
    width = 1 if selector is None else B_SLICES
    operands = (
        kind_of(op),
        tmem_pointer(converter.tmem_columns(d)),
        (
            matrix_a(converter, converter.value(op.a), integer(op, "a_slice"), row),
            slice_descriptor(converter, b, width * integer(op, "b_slice")),
        ),
        converter.constant(descriptor_of(op, m, selector)),
        converter.ssa(op.accumulate),
    )
    scale = scale_of(op)
    scaled = None if scale is None else converter.constant(scale, 64)
    metadata = None if selector is None else metadata_of(converter, op)
    if isinstance(op, tc.MmaWsOp | tc.MmaWsSparseOp):
        buffer, collector = buffer_of(op), collector_of(op)
        nvvm.tcgen05.mma_ws(*operands, buffer=buffer, collector=collector, metadata=metadata)
        return
    nvvm.tcgen05.mma(
        *operands,
        nvvm.tcgen05.MmaForm(
            a_shift=isinstance(op, tc.MmaOp) and bool(integer(op, "ashift")),
            disable_output_lane=d.disabled,
            scale_input_d=scaled,
            collector=collector_of(op),
            metadata=metadata,
            cta_group=cta_group_of(op),
        ),
    )


def metadata_of(converter: Converter, op: ir.OpView) -> ir.Value:
    """The address of the metadata of a sparse A."""
    metadata = converter.record(op.metadata, TmemTile)
    return tmem_pointer(converter.tmem_columns(metadata, integer(op, "metadata_column")))


def matrix_a(converter: Converter, a: SmemTile | TmemTile, index: int, row: int = 0) -> ir.Value:
    """K slice `index` of A as an operand of the mma: the tensor-memory address of its columns, or a
    shared-memory descriptor."""
    if isinstance(a, TmemTile):
        return tmem_pointer(converter.tmem_columns(a, SLICE_COLUMNS * index))
    return slice_descriptor(converter, a, index, row)


def descriptor_of(op: ir.OpView, m: int, selector: int | None = None) -> int:
    """The instruction descriptor of an mma without block scales. m: number of A's rows in a CTA"""
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


@lower(tc.CpOp)
def convert_cp(converter: Converter, op: tc.CpOp) -> None:
    """Lowers to ``tcgen05.cp.128x256b``."""
    source = converter.record(op.source, SmemTile)
    target = converter.record(op.target, TmemTile)
    index = integer(op, "slice")
    nvvm.tcgen05.cp(
        "128x256b",
        tmem_pointer(converter.tmem_columns(target, SLICE_COLUMNS * index)),
        slice_descriptor(converter, source, index),
        cta_group=cta_group_of(op),
    )
