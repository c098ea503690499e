"""Shift and halo.

Ops that shift a tile of A in tensor memory by one lane, and the copy of the halo, the lanes that a
shift leaves without a new row.
"""

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integer
from tcir.dialect.limits import (
    MMA_K_BYTES,
    QUARTER_LANES,
    SLICE_COLUMNS,
    SWIZZLE_ATOM_ROWS,
    TMEM_LANES,
)
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, verify
from tcir.dialect.types import SmemType, TmemType, element_bytes


class ShiftOp(Op, name="shift", issued_by="thread", role="mma", completed_by="tc.commit"):
    """``tcgen05.shift.down``: the 8 columns of ``slice`` move one lane down in one sub-partition.

    ``tile[i] = tile[i+1]`` in sub-partition ``quarter``, except for its last lane, which keeps its
    value (PTX ISA 9.7.16.9). That one instruction moves one sub-partition, and not all, is an
    assumption (``shift_quarters``). One thread issues the op; it completes asynchronously. With
    ``cta_group = 2`` the op moves these columns in both CTAs of a pair.
    """

    example = """
    func.func @example(%a: !tc.tmem<array<i64: 128, 64>, f16>) {
      "tc.shift"(%a) {slice = 3 : i64, quarter = 0 : i64}
          : (!tc.tmem<array<i64: 128, 64>, f16>) -> ()
      return
    }
    """

    tile: ext.Operand[TmemType]
    slice: ir.IntegerAttr
    quarter: ir.IntegerAttr


class RefreshOp(
    Op,
    name="refresh",
    issued_by="thread",
    role="mma",
    reads_shared=("source",),
    completed_by="tc.commit",
):
    """``tcgen05.cp.4x256b``: copies a row of 32 bytes into the last lane of every sub-partition.

    Copies elements ``[slice * 32 bytes, ...)`` of K of rows ``row`` to ``row + 3`` of ``source`` to
    the 8 columns of slice ``slice`` of lanes 31, 63, 95, 127 of ``target`` (PTX ISA 9.7.16.9; which
    rows and lane are assumptions, ``cp4x256b_rows`` and ``cp4x256b_lane``).
    One thread issues the op; it completes asynchronously. It is ordered after an earlier
    ``tc.shift``, but not after the ``.ashift`` of an earlier mma.

    With ``cta_group = 2`` each CTA of the pair copies from its own ``source`` to its own
    ``target``.
    """

    example = """
    !halo = !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
    !a = !tc.tmem<array<i64: 128, 64>, f16>
    func.func @example(%halo: !halo, %a: !a) {
      "tc.refresh"(%halo, %a) {slice = 3 : i64, row = 8 : i64} : (!halo, !a) -> ()
      return
    }
    """

    source: ext.Operand[SmemType]
    target: ext.Operand[TmemType]
    slice: ir.IntegerAttr
    row: ir.IntegerAttr


@verify(
    ShiftOp,
    "slice",
    "PTX ISA 9.7.16.9",
    "slice must be in [0, {slices}), got {got}: the tile has {columns} columns, and one shift "
    "moves 8 of them",
    bad={"slice = 3": "slice = 4"},
)
def _(op: ShiftOp) -> Broken:
    got, columns = integer(op, "slice"), op.tile.type.columns
    slices = columns // SLICE_COLUMNS
    return None if 0 <= got < slices else {"slices": slices, "got": got, "columns": columns}


@verify(
    ShiftOp,
    "quarter",
    "PTX ISA 9.7.16.9",
    "quarter must be in [0, 4), got {got}: the address names a lane that is a multiple of 32",
    bad={"quarter = 0": "quarter = 4"},
    good={"quarter = 0": "quarter = 3"},
)
def _(op: ShiftOp) -> Broken:
    got = integer(op, "quarter")
    return None if 0 <= got < TMEM_LANES // QUARTER_LANES else {"got": got}


@verify(
    RefreshOp,
    "major",
    "PTX ISA 9.7.16.9",
    'source must be K-major, got "{got}": tcgen05.cp reads rows and cannot transpose',
    bad={'"K"': '"MN"'},
)
def _(op: RefreshOp) -> Broken:
    got = op.source.type.major
    return None if got == "K" else {"got": got}


@verify(
    RefreshOp,
    "element",
    "PTX ISA 9.7.16.9",
    "source and target must have the same element type, got {source} and {target}: tcgen05.cp "
    "copies bits",
    bad={"array<i64: 128, 64>, f16": "array<i64: 128, 64>, bf16"},
)
def _(op: RefreshOp) -> Broken:
    source, target = op.source.type.element, op.target.type.element
    return None if source == target else {"source": source, "target": target}


@verify(
    RefreshOp,
    "slice",
    "PTX ISA 9.7.16.9",
    "slice must be in [0, {slices}) of both source and target, got {got}: one copy takes 32 bytes "
    "of K to 8 columns",
    bad={"slice = 3": "slice = 4"},
)
def _(op: RefreshOp) -> Broken:
    source, got = op.source.type, integer(op, "slice")
    inside = source.shape[1] * element_bytes(source.element) // MMA_K_BYTES
    slices = min(inside, op.target.type.columns // SLICE_COLUMNS)
    return None if 0 <= got < slices else {"slices": slices, "got": got}


@verify(
    RefreshOp,
    "row",
    "PTX ISA 9.7.16.4.1",
    "row must be a multiple of {atom} (4 with swizzle 128B) with four rows in the tile's [0, {rows}"
    "), got {got}: a descriptor starts where the swizzle's pattern does, or amid it (cp_row_phase "
    "of the assumptions)",
    bad={"row = 8": "row = 2"},
)
def _(op: RefreshOp) -> Broken:
    got, rows = integer(op, "row"), op.source.type.shape[0]
    atom = SWIZZLE_ATOM_ROWS // (2 if op.source.type.swizzle == "128B" else 1)
    if got >= 0 and got % atom == 0 and got + 4 <= rows:
        return None
    return {"atom": SWIZZLE_ATOM_ROWS, "rows": rows, "got": got}
