"""Memory and barriers."""

from collections.abc import Sequence
from typing import Any

from tcir._mlir import ext, ir
from tcir.dialect.attributes import constant_of, defining, integer, is_integer, optional_integer
from tcir.dialect.limits import (
    MBARRIER_ARRIVALS,
    MBARRIER_BYTES,
    SMEM_BYTES,
    SMEM_TILE_ALIGNMENT,
    TMEM_ALLOCATION,
)
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, same_rules, verify
from tcir.dialect.types import (
    MbarrierType,
    RingType,
    SmemType,
    TmemBaseType,
    TmemType,
    one_of,
    shared_bytes,
    tensor_columns,
)
from tcir.dialect.warp_types import StagedType


class SmemTileOp(Op, name="smem_tile", in_shared=SMEM_TILE_ALIGNMENT):
    """A shared-memory tile, or a ring of them.

    Before ``plan-memory`` it has no address, and every execution of the op yields a new, undefined
    tile; afterwards its address is the attribute ``offset`` (bytes, multiple of 1024), and slot i
    of a ring is at ``offset + i * bytes of one tile``.
    """

    example = """
    func.func @example() {
      %ring = "tc.smem_tile"() {offset = 1024 : i64}
          : () -> !tc.ring<4 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">>
      return
    }
    """

    tile: ext.Result[Any]  # SmemType or RingType of it

    @property
    def nbytes(self) -> int:
        """Bytes of the tile, or of all slots."""
        return shared_bytes(self.tile.type)


SHARES = "shares"
"""Attribute of tiles in tensor memory with columns in common."""


class TmemTileOp(Op, name="tmem_tile"):
    """A tensor-memory tile, or a ring of them.

    Before ``plan-memory`` it has no operand and no address. Afterwards it occupies consecutive
    columns of the allocation ``base``, from attribute ``column`` on; the slots of a ring follow one
    another. Tiles with the same number ``shares`` overlap: each later tile occupies the last
    columns of the first. A program may write such a tile only when the tiles that it overlaps are
    no longer needed.
    """

    example = """
    func.func @example() {
      %base = "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base
      %d = "tc.tmem_tile"(%base) {column = 0 : i64, operandSegmentSizes = array<i32: 1>}
          : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 64>, f32>
      return
    }
    """

    tile: ext.Result[Any]  # TmemType or RingType of it
    base: ext.Operand[TmemBaseType] | None = None


def first_columns(tiles: Sequence[TmemTileOp]) -> tuple[list[int], int]:
    """First column of each tile, and the total number of columns. Tiles are adjacent, except that
    a tile may share the last columns of an earlier tile (``shares``)."""
    places: list[int] = []
    ends: dict[int, int] = {}
    top = 0
    for tile in tiles:
        size, number = tensor_columns(tile.tile.type), optional_integer(tile, SHARES)
        if number in ends:
            places.append(ends[number] - size)
            continue
        places.append(top)
        top += size
        if number is not None:
            ends[number] = top
    return places, top


class TmemAllocOp(Op, name="tmem_alloc", issued_by="cta"):
    """``tcgen05.alloc``: allocates ``columns`` whole columns, a power of two from 32 to 512.

    Once memory is planned, the attribute ``address_slot`` is the shared-memory byte offset to which
    the address is written, and ``warp`` is the number of the warp that allocates (PTX ISA
    9.7.16.7). With ``cta_group = 2`` both CTAs of a pair get the same columns; the threads of both
    CTAs synchronise before the op, because the op acts on the other CTA of the pair, which must
    have started.
    """

    example = """
    func.func @example() {
      %base = "tc.tmem_alloc"() {columns = 128 : i64, address_slot = 0 : i64, warp = 5 : i64}
          : () -> !tc.tmem_base
      return
    }
    """

    columns: ir.IntegerAttr
    base: ext.Result[TmemBaseType] = ext.result(default_factory=TmemBaseType.get)


class TmemRelinquishOp(Op, name="tmem_relinquish", issued_by="cta"):
    """``tcgen05.relinquish_alloc_permit``: this CTA gives up its right to allocate tensor memory
    (PTX ISA 9.7.16.7)."""

    example = """
    func.func @example() {
      "tc.tmem_relinquish"() : () -> ()
      return
    }
    """


class TmemDeallocOp(Op, name="tmem_dealloc", issued_by="cta"):
    """``tcgen05.dealloc``: frees a whole allocation, which is required before the kernel exits
    (PTX ISA 9.7.16.7)."""

    example = """
    func.func @example() {
      %base = "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base
      "tc.tmem_dealloc"(%base) {columns = 128 : i64} : (!tc.tmem_base) -> ()
      return
    }
    """

    base: ext.Operand[TmemBaseType]
    columns: ir.IntegerAttr


class MbarrierInitOp(
    Op, name="mbarrier_init", issued_by="cta", async_only=True, in_shared=MBARRIER_BYTES
):
    """One mbarrier or a ring of them, each expecting ``arrivals`` arrivals a phase.

    Once memory is planned, the attribute ``offset`` is the address in bytes; each slot takes 8
    bytes. The initialisation is part of the op; the fence and CTA barrier that publish it are
    separate ops (PTX ISA 9.7.13.15).
    """

    example = """
    func.func @example() {
      %full = "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 8 : i64}
          : () -> !tc.ring<4 : i64, !tc.mbarrier>
      return
    }
    """

    arrivals: ir.IntegerAttr
    bar: ext.Result[Any]  # MbarrierType or RingType of it

    @property
    def nbytes(self) -> int:
        """Bytes of the barrier, or of all slots."""
        return shared_bytes(self.bar.type)


class SlotOp(Op, name="slot", pure=True):
    """Slot ``index`` of a ring; ``index`` must be in ``[0, count)`` and does not wrap around."""

    example = """
    func.func @example(%full: !tc.ring<4 : i64, !tc.mbarrier>, %i: index) {
      %bar = "tc.slot"(%full, %i) : (!tc.ring<4 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      return
    }
    """
    form = "{ring}[{index}]"

    ring: ext.Operand[RingType]
    index: ext.Operand[ir.IndexType]
    slot: ext.Result[Any]


@verify(
    SmemTileOp,
    "result",
    "tc",
    "the result must be !tc.smem, !tc.staged or a !tc.ring of one, got {got}",
    bad={'!tc.ring<4 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">>': "!tc.mbarrier"},
)
def _(op: SmemTileOp) -> Broken:
    fits = isinstance(one_of(op.tile.type), SmemType | StagedType)
    return None if fits else {"got": op.tile.type}


@verify(
    SmemTileOp,
    "offset-alignment",
    "PTX ISA 9.7.16.4.1",
    "offset must be an integer multiple of {alignment}, got {got}: the swizzle acts on absolute "
    "address bits, and its pattern repeats every {alignment} bytes",
    bad={"offset = 1024": "offset = 512"},
)
def _(op: SmemTileOp) -> Broken:
    if (
        is_integer(op, "offset")
        and (optional_integer(op, "offset") or 0) % SMEM_TILE_ALIGNMENT == 0
    ):
        return None
    return {"alignment": SMEM_TILE_ALIGNMENT, "got": op.attributes["offset"]}


@verify(
    SmemTileOp,
    "offset-range",
    "CUDA C++ Programming Guide, technical specifications",
    "the tile must lie in [0, {most}) of shared memory, got bytes [{begin}, {end}): a CTA has at "
    "most 227 KB; use fewer stages or smaller tiles",
    bad={"offset = 1024": "offset = 196608"},
    good={"offset = 1024": "offset = 166912"},
)
def _(op: SmemTileOp) -> Broken:
    begin = optional_integer(op, "offset") or 0
    end = begin + op.nbytes
    return None if begin >= 0 and end <= SMEM_BYTES else _outside(begin, end)


def _outside(begin: int, end: int) -> Broken:
    return {"most": SMEM_BYTES, "begin": begin, "end": end}


@verify(
    TmemTileOp,
    "result",
    "tc",
    "the result must be !tc.tmem or a !tc.ring of it, got {got}",
    bad={"!tc.tmem": "!tc.smem", "f32": 'f16, "K", "128B"'},
)
def _(op: TmemTileOp) -> Broken:
    return None if isinstance(one_of(op.tile.type), TmemType) else {"got": op.tile.type}


@verify(
    TmemTileOp,
    "place",
    "tc",
    "expected both an allocation (operand base) and an integer attribute column, or neither, got "
    "{got}",
    bad={
        '"tc.tmem_tile"(%base': '"tc.tmem_tile"(',
        "operandSegmentSizes = array<i32: 1>": "operandSegmentSizes = array<i32: 0>",
        "!tc.tmem_base)": ")",
    },
)
def _(op: TmemTileOp) -> Broken:
    if (op.base is not None) == ("column" in op.attributes) and is_integer(op, "column"):
        return None
    base = "base" if op.base is not None else "no base"
    column = f"column = {op.attributes['column']}" if "column" in op.attributes else "no column"
    return {"got": f"{base} and {column}"}


@verify(
    TmemTileOp,
    "base",
    "PTX ISA 9.7.16.7",
    "base must be the result of a tc.tmem_alloc of the same function, got {got}",
    bad={
        "@example(": "@example(%base: !tc.tmem_base",
        '%base = "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base': "",
    },
)
def _(op: TmemTileOp) -> Broken:
    if op.base is None or defining(op.base, TmemAllocOp) is not None:
        return None
    return {"got": op.base}


@verify(
    TmemTileOp,
    "columns",
    "PTX ISA 9.7.16.7",
    "the tile must lie within its allocation of {columns} columns, got columns [{begin}, {end}); "
    "allocate more or use fewer slots",
    bad={"column = 0": "column = 65"},
    good={"column = 0": "column = 64"},
)
def _(op: TmemTileOp) -> Broken:
    if op.base is None:
        return None
    columns = integer(defining(op.base, TmemAllocOp), "columns")
    begin = integer(op, "column")
    end = begin + tensor_columns(op.tile.type)
    if begin >= 0 and end <= columns:
        return None
    return {"columns": columns, "begin": begin, "end": end}


@verify(
    TmemAllocOp,
    "columns",
    "PTX ISA 9.7.16.7",
    "columns must be {legal}, got {got}: tcgen05.alloc takes powers of two; nearest legal: "
    "{nearest}",
    bad={"columns = 128": "columns = 96"},
    good={"columns = 128": "columns = 512"},
)
def _(op: TmemAllocOp) -> Broken:
    got = integer(op, "columns")
    if got in TMEM_ALLOCATION:
        return None
    return {"legal": TMEM_ALLOCATION, "got": got, "nearest": TMEM_ALLOCATION.nearest(got)}


@verify(
    TmemAllocOp,
    "address-slot",
    "PTX ISA 9.7.16.7",
    "address_slot must be a multiple of 4 in [0, {most}), got {got}: the address is written to "
    "that word of shared memory",
    bad={"address_slot = 0": "address_slot = 232446"},
    good={"address_slot = 0": "address_slot = 232444"},
)
def _(op: TmemAllocOp) -> Broken:
    legal = range(0, SMEM_BYTES, 4)
    if is_integer(op, "address_slot") and (optional_integer(op, "address_slot") or 0) in legal:
        return None
    return {"most": SMEM_BYTES, "got": op.attributes["address_slot"]}


@verify(
    TmemAllocOp,
    "warp",
    "PTX ISA 9.7.16.5, table 46",
    "warp must be an integer in [0, 31], got {got}: one whole warp of the CTA allocates",
    bad={"warp = 5": "warp = 32"},
    good={"warp = 5": "warp = 31"},
)
def _(op: TmemAllocOp) -> Broken:
    if is_integer(op, "warp") and (optional_integer(op, "warp") or 0) in range(32):
        return None
    return {"got": op.attributes["warp"]}


same_rules(
    TmemDeallocOp,
    TmemTileOp,
    {
        "base": {
            "@example(": "@example(%base: !tc.tmem_base",
            '%base = "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base': "",
        },
    },
)


@verify(
    TmemDeallocOp,
    "columns",
    "PTX ISA 9.7.16.7",
    "columns must equal those of the allocation ({want}), got {got}: an allocation is freed whole",
    bad={"%base) {columns = 128": "%base) {columns = 32"},
    good={
        '"tc.tmem_alloc"() {columns = 128': '"tc.tmem_alloc"() {columns = 64',
        "%base) {columns = 128": "%base) {columns = 64",
    },
)
def _(op: TmemDeallocOp) -> Broken:
    want, got = integer(defining(op.base, TmemAllocOp), "columns"), integer(op, "columns")
    return None if got == want else {"want": want, "got": got}


@verify(
    MbarrierInitOp,
    "result",
    "tc",
    "the result must be !tc.mbarrier or a !tc.ring of it, got {got}",
    bad={"!tc.ring<4 : i64, !tc.mbarrier>": "!tc.tensor_map"},
)
def _(op: MbarrierInitOp) -> Broken:
    return None if isinstance(one_of(op.bar.type), MbarrierType) else {"got": op.bar.type}


@verify(
    MbarrierInitOp,
    "arrivals",
    "PTX ISA 9.7.13.15",
    "arrivals must be {legal}, got {got}: the object counts them in 20 bits; nearest legal: "
    "{nearest}",
    bad={"arrivals = 1": "arrivals = 0"},
    good={"arrivals = 1": "arrivals = 1048575"},
)
def _(op: MbarrierInitOp) -> Broken:
    legal, got = MBARRIER_ARRIVALS, integer(op, "arrivals")
    return None if got in legal else {"legal": legal, "got": got, "nearest": legal.nearest(got)}


@verify(
    MbarrierInitOp,
    "offset",
    "PTX ISA 9.7.13.15",
    "offset must be an integer multiple of 8 with the barriers in [0, {most}) of shared memory, "
    "got {got}",
    bad={"offset = 8": "offset = 232424"},
    good={"offset = 8": "offset = 232416"},
)
def _(op: MbarrierInitOp) -> Broken:
    if "offset" not in op.attributes:
        return None
    size = op.nbytes
    legal = range(0, SMEM_BYTES - size + 1, MBARRIER_BYTES)
    if is_integer(op, "offset") and integer(op, "offset") in legal:
        return None
    return {"most": SMEM_BYTES, "got": op.attributes["offset"]}


@verify(
    SlotOp,
    "type",
    "tc",
    "the result must be of the ring's slot type {want}, got {got}",
    bad={"index) -> !tc.mbarrier": "index) -> !tc.tensor_map"},
)
def _(op: SlotOp) -> Broken:
    want, got = op.ring.type.of, op.slot.type
    return None if want == got else {"want": want, "got": got}


@verify(
    SlotOp,
    "index",
    "tc",
    "index must be in [0, {count}), got {got}: a slot is taken modulo nothing; take it modulo the "
    "count before",
    bad={", %i: index) {": ") { %i = arith.constant 4 : index"},
    good={", %i: index) {": ") { %i = arith.constant 3 : index"},
)
def _(op: SlotOp) -> Broken:
    count, got = op.ring.type.count, constant_of(op.index)
    return None if got is None or 0 <= got < count else {"count": count, "got": got}
