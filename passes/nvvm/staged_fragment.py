"""Lowering of stores of fragments to shared memory, from where TMA stores them."""

from __future__ import annotations

from collections.abc import Iterator

from tcir._mlir import arith, ir, llvm, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integers
from tcir.dialect.fragments import share
from tcir.dialect.warp_types import WALK
from tcir.passes.emit import simt
from tcir.passes.emit.gpu_module import pointer_type

from .converter import (
    Converter,
    Fragment,
    Ring,
    SmemTile,
    TensorMap,
    lower,
    require_role,
)
from .warp_store import (
    ATOM,
    PAIR,
    QUAD,
    ROW_STEP,
    UNIT,
    PixelWalk,
    packed,
    places_of,
    two_bytes,
)

_MATRICES = 4
"""Most matrices of 8 x 8 numbers of 16 bits that a ``stmatrix`` stores (PTX ISA 9.7.14.5.16)."""


@lower(tc.StoreFragmentStagedOp)
def convert_store_fragment_staged(converter: Converter, op: tc.StoreFragmentStagedOp) -> None:
    """Emits for each tile of columns ``cp.async.bulk.wait_group.read``, ``stmatrix`` or
    ``st.shared`` of pairs, ``fence.proxy.async``, and a ``cp.async.bulk.tensor`` that one elected
    thread executes."""
    require_role(converter, op)
    fragment = converter.record(op.fragment, Fragment)
    ring, tile = converter.record(op.ring, Ring), op.tile
    tensor_map = converter.record(op.map, TensorMap).pointer
    assert isinstance(ring.first, SmemTile)
    address, width, count = ring.first.address, tile.shape[1], op.ring.type.count
    rows = share(fragment.type.atom, "C", fragment.type.shape, converter.warps).rows
    above = arith.MulIOp(converter.warp, converter.constant(rows)).result
    *outer, row, column = (converter.ssa(index) for index in op.indices)
    rows_at = [arith.AddIOp(row, above).result]
    if WALK in op.attributes:
        y, x = integers(op, WALK)
        rows_at = PixelWalk(converter, rows_at[0], y, x).pixel(0)[::-1]
    columns = _by_column(converter, fragment)
    for number in range(fragment.type.shape[1] // width):
        slot = (integer(op, "slot") + number) % count
        start = address.plus(slot * ring.stride)
        base = converter.add(start.base, start.offset)
        own = arith.AddIOp(base, arith.MulIOp(above, converter.constant(tile.span)).result).result
        with simt.only_if(nvvm.elect_sync()):
            nvvm.cp_async_bulk_wait_group(count - 1, read=True)
        nvvm.bar_warp_sync(converter.constant(-1))
        held = [columns[number * width + n] for n in range(0, width, ATOM)]
        _stage(converter, own, tile, held)
        nvvm.fence_proxy("async.shared", "cta")
        nvvm.bar_warp_sync(converter.constant(-1))
        with simt.only_if(nvvm.elect_sync()):
            place = [converter.add(column, number * width), *rows_at, *outer[::-1]]
            source = llvm.inttoptr(pointer_type(3), own)
            nvvm.cp_async_bulk_tensor_global_shared_cta(tensor_map, source, place, mode="tile")
            nvvm.cp_async_bulk_commit_group()


def _by_column(converter: Converter, fragment: Fragment) -> dict[int, list[list[ir.Value]]]:
    """The pairs of numbers of a thread in each atom, upper row first, by the atom's column."""
    found: dict[int, dict[int, list[ir.Value]]] = {}
    places = places_of(fragment.type, converter.warps)
    for (down, right), number in zip(places, fragment.numbers, strict=True):
        atom = found.setdefault(right // ATOM * ATOM, {})
        atom.setdefault(down, []).append(number)
    return {column: [atom[0], atom[ROW_STEP]] for column, atom in found.items()}


def _stage(
    converter: Converter, own: ir.Value, tile: tc.SmemType, atoms: list[list[list[ir.Value]]]
) -> None:
    """Writes a warp's rows of a tile, which begin at address `own`.

    Bits 4 and up of a byte in its row are XORed with bits 7 and up of the row's address (PTX ISA
    9.7.16.10.6), so that no two of eight rows of a matrix are in the same banks.
    """
    bytes_ = tc.element_bytes(tile.element)
    if bytes_ != PAIR:
        for place, pair, further in _pairs(converter, own, tile, atoms):
            pointer = llvm.inttoptr(pointer_type(3), converter.add(place, further))
            llvm.store(_together(pair, bytes_), pointer, alignment=PAIR * bytes_)
        return
    per = min(_MATRICES // PAIR, len(atoms))
    address, phase = _line(converter, own, tile, simt.both_bits(converter.lane, 2 * ROW_STEP - 1))
    unit = simt.left(simt.right(converter.lane, 4), 4)  # lanes 16 and up: the atom to the right
    for first in range(0, len(atoms), per):
        words = [packed(pair, tile.element) for atom in atoms[first : first + per] for pair in atom]
        inside = arith.XOrIOp(converter.add(unit, first * UNIT), phase).result
        _stmatrix(arith.AddIOp(address, inside).result, words)


def _pairs(
    converter: Converter, own: ir.Value, tile: tc.SmemType, atoms: list[list[list[ir.Value]]]
) -> Iterator[tuple[ir.Value, list[ir.Value], int]]:
    """Address, numbers, and further bytes of each pair of numbers."""
    bytes_ = tc.element_bytes(tile.element)
    address, phase = _line(converter, own, tile, simt.right(converter.lane, 2))
    own_pair = simt.both_bits(converter.lane, QUAD - 1)
    byte = arith.MulIOp(own_pair, converter.constant(PAIR * bytes_)).result
    for number, atom in enumerate(atoms):
        inside = arith.XOrIOp(converter.add(byte, number * ATOM * bytes_), phase).result
        place = arith.AddIOp(address, inside).result
        for half, pair in enumerate(atom):
            yield place, pair, half * ROW_STEP * tile.span


def _together(pair: list[ir.Value], bytes_: int) -> ir.Value:
    """Two numbers as they are next to each other in memory; those of a byte are in a word each."""
    if bytes_ == 1:
        return arith.trunci(ir.IntegerType.get_signless(16), two_bytes(*pair))
    return simt.vector_of(pair)


def _line(
    converter: Converter, own: ir.Value, tile: tc.SmemType, row: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """Address of a row, and the bits that its bytes are XORed with."""
    line = arith.MulIOp(row, converter.constant(tile.span)).result
    address = arith.AddIOp(own, line).result
    return address, simt.both_bits(simt.right(address, 3), (tile.span - 1) & -UNIT)


def _stmatrix(address: ir.Value, words: list[ir.Value]) -> None:
    """Lane 8i + j names row j of matrix i; a lane has two numbers of a row of each (PTX ISA
    9.7.14.5.16)."""
    count = len(words)
    names = ", ".join(f"${1 + n}" for n in range(count))
    llvm.inline_asm(
        None,
        [address, *words],
        f"stmatrix.sync.aligned.m8n8.x{count}.shared.b16 [$0], {{{names}}};",
        ",".join(["r"] * (count + 1) + ["~{memory}"]),
        has_side_effects=True,
    )
