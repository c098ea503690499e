"""Warp-level ops: cp.async into shared tiles, fragments, mma.sync, stores of fragments.

Each is what a whole CTA does with its tile; which thread does what follows from the atom
(`tcir.dialect.fragments`) and from the kernel's ``tc.warps``.
"""

from collections.abc import Sequence
from typing import Any

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integer, string
from tcir.dialect.fragments import MAJORS, PTX_TYPE, accumulator_type, loads_for
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, rule
from tcir.dialect.types import SmemType, element_bytes
from tcir.dialect.warp_limits import COPY_BYTES
from tcir.dialect.warp_types import FragmentType, StagedType
from tcir.layout.atoms import MMA_ATOMS, mma_atom

TAILS = ("", "outer", "inner", "outer inner")
"""Which dimensions of a tile may reach past the tensor: rows, the contiguous one, both."""


class CpAsyncOp(Op, name="cp_async"):
    """``cp.async``: fills ``tile`` from ``tensor``, zero outside the tensor.

    The indices are those of the tile's first element. The tensor's last two dimensions are the
    tile's: ``[mn, k]`` for a K-major tile, ``[k, mn]`` for an MN-major one; a leading dimension is
    a batch. ``width`` is the bytes of one copy; ``tails`` names the dimensions in which the tile
    may reach past the tensor (``""``, ``"outer"``, ``"inner"``, ``"outer inner"``); in the others
    it must not. Asynchronous in a ``tc.async`` kernel: complete after `tc.cp_async_wait`
    (PTX ISA 9.7.9.25.3).
    """

    tensor: ext.Operand[ir.MemRefType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    tile: ext.Operand[StagedType]
    width: ir.IntegerAttr
    tails: ir.StringAttr


class CpAsyncCommitOp(Op, name="cp_async_commit"):
    """``cp.async.commit_group``: the copies since the last one become a group, perhaps empty.

    (PTX ISA 9.7.9.25.3.2.)
    """


class CpAsyncWaitOp(Op, name="cp_async_wait"):
    """``cp.async.wait_group``: all but the last ``pending`` groups of each thread are complete.

    Other threads see their bytes after a `tc.cta_barrier` (PTX ISA 9.7.9.25.3).
    """

    pending: ir.IntegerAttr


class ZeroFragmentOp(Op, name="zero_fragment"):
    """An accumulator of zeros, spread over threads as mma.sync wants it (PTX ISA 9.7.14.5)."""

    fragment: ext.Result[FragmentType]


class LoadFragmentOp(Op, name="load_fragment"):
    """Columns ``[k, k + columns)`` of ``tile`` as a fragment of A or B.

    The tile is one of ``!tc.staged``, which threads copy, or of ``!tc.smem``, as TMA fills it.

    ``via`` is ``"ldmatrix"``, ``"ldmatrix.trans"`` (MN-major tiles of 16-bit elements) or
    ``"loads"``: plain 32-bit loads where ldmatrix cannot serve (PTX ISA 9.7.14.5.15).
    """

    tile: ext.Operand[Any]  # StagedType or SmemType
    k: ir.IntegerAttr
    via: ir.StringAttr
    fragment: ext.Result[FragmentType]


class MmaSyncOp(Op, name="mma_sync"):
    """``mma.sync``: ``d = a * b^T + c`` of the CTA's tile, one K step of the atom.

    Numbers are the target's: see `docs/numerics.md` (PTX ISA 9.7.14.5).
    """

    a: ext.Operand[FragmentType]
    b: ext.Operand[FragmentType]
    c: ext.Operand[FragmentType]
    d: ext.Result[FragmentType]


class StoreFragmentOp(Op, name="store_fragment"):
    """Stores an accumulator to ``tensor``, rounded once (RNE) to its element type.

    The indices are those of the tile's first element; ``tails`` as in `tc.cp_async`: what lies
    outside is not stored (PTX ISA 9.7.9.12).
    """

    fragment: ext.Operand[FragmentType]
    tensor: ext.Operand[ir.MemRefType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    tails: ir.StringAttr


# --- cp.async ----------------------------------------------------------------------------------


def _tails(op: ir.OpView) -> Broken:
    got = string(op, "tails")
    return None if got in TAILS else {"legal": ", ".join(f'"{t}"' for t in TAILS), "got": got}


def _ranks(op: ir.OpView) -> Broken:
    rank, count = op.tensor.type.rank, len(op.indices)
    return None if rank in (2, 3) and rank == count else {"rank": rank, "count": count}


TAILS_TEXT = 'tails must be one of {legal}, got "{got}"'
RANK_TEXT = (
    "expected a tensor of rank 2, or 3 with a leading batch, and one index per dimension, got rank "
    "{rank} and {count} indices"
)


@rule("tc.cp_async", "tails", "tc", TAILS_TEXT)
def _(op: CpAsyncOp) -> Broken:
    return _tails(op)


@rule("tc.cp_async", "rank", "tc", RANK_TEXT)
def _(op: CpAsyncOp) -> Broken:
    return _ranks(op)


@rule(
    "tc.cp_async",
    "element",
    "PTX ISA 9.7.9.25.3",
    "tensor and tile must have the same element type, got {tensor} and {tile}: cp.async moves "
    "bytes; convert before this kernel",
)
def _(op: CpAsyncOp) -> Broken:
    tensor, tile = op.tensor.type.element_type, op.tile.type.element
    return None if tensor == tile else {"tensor": tensor, "tile": tile}


@rule(
    "tc.cp_async",
    "width",
    "PTX ISA 9.7.9.25.3",
    "width must be one of {legal} bytes and divide the rows of the tile ({tile} bytes) and of the "
    "tensor ({tensor} bytes), got {got}: a copy is aligned to its size at both ends",
)
def _(op: CpAsyncOp) -> Broken:
    width, tile = integer(op, "width"), op.tile.type.pitch
    tensor = op.tensor.type.shape[-1] * element_bytes(op.tensor.type.element_type)
    if width in COPY_BYTES and tile % width == 0 and tensor % width == 0:
        return None
    return {"legal": COPY_BYTES, "tile": tile, "tensor": tensor, "got": width}


@rule(
    "tc.cp_async_wait",
    "pending",
    "PTX ISA 9.7.9.25.3.3",
    "pending must be at least 0, got {got}: it is the number of groups that may be incomplete",
)
def _(op: CpAsyncWaitOp) -> Broken:
    got = integer(op, "pending")
    return None if got >= 0 else {"got": got}


# --- fragments ---------------------------------------------------------------------------------


@rule(
    "tc.zero_fragment",
    "operand",
    "tc",
    "the result must be a fragment of C, got one of {got}: only accumulators start from zero",
)
def _(op: ZeroFragmentOp) -> Broken:
    got = op.fragment.type.operand
    return None if got == "C" else {"got": got}


@rule(
    "tc.load_fragment",
    "tile",
    "tc",
    "the tile must be of type !tc.staged or !tc.smem, got {got}",
)
def _(op: LoadFragmentOp) -> Broken:
    got = op.tile.type
    return None if isinstance(got, StagedType | SmemType) else {"got": got}


@rule(
    "tc.load_fragment",
    "operand",
    "tc",
    "the result must be a fragment of A or B, got one of {got}",
)
def _(op: LoadFragmentOp) -> Broken:
    got = op.fragment.type.operand
    return None if got in ("A", "B") else {"got": got}


@rule(
    "tc.load_fragment",
    "range",
    "tc",
    "the fragment must have the {rows} rows of the tile and columns inside its K = {k}, got "
    "{got} rows and columns [{begin}, {end})",
)
def _(op: LoadFragmentOp) -> Broken:
    (rows, k), (got, columns) = op.tile.type.shape, op.fragment.type.shape
    begin = integer(op, "k")
    if rows == got and begin % columns == 0 and 0 <= begin and begin + columns <= k:
        return None
    return {"rows": rows, "k": k, "got": got, "begin": begin, "end": begin + columns}


@rule(
    "tc.load_fragment",
    "element",
    "PTX ISA 9.7.14.5.15",
    "tile and fragment must have the same element type, got {tile} and {fragment}: ldmatrix moves "
    "bytes",
)
def _(op: LoadFragmentOp) -> Broken:
    tile, fragment = op.tile.type.element, op.fragment.type.element
    return None if tile == fragment else {"tile": tile, "fragment": fragment}


@rule(
    "tc.load_fragment",
    "via",
    "PTX ISA 9.7.14.5.15",
    "via must be {legal} for {operand} of {atom} from a {major}-major tile of {element}, got "
    '"{got}"',
)
def _(op: LoadFragmentOp) -> Broken:
    tile, fragment = op.tile.type, op.fragment.type
    served, _ = loads_for(fragment.atom, fragment.operand, tile.major, element_bytes(tile.element))
    legal = tuple(dict.fromkeys((served, "loads")))
    got = string(op, "via")
    if got in legal:
        return None
    return {
        "legal": " or ".join(f'"{v}"' for v in legal), "operand": fragment.operand,
        "atom": fragment.atom, "major": tile.major, "element": tile.element, "got": got,
    }  # fmt: skip


@rule(
    "tc.mma_sync",
    "operands",
    "PTX ISA 9.7.14.5",
    "expected fragments of A, B and C and a result like C, got {got}",
)
def _(op: MmaSyncOp) -> Broken:
    got = "".join(v.type.operand for v in (op.a, op.b, op.c))
    if got == "ABC" and op.c.type == op.d.type:
        return None
    return {"got": ", ".join(str(v.type) for v in (op.a, op.b, op.c, op.d))}


@rule(
    "tc.mma_sync",
    "atom",
    "PTX ISA 9.7.14.5",
    "all fragments must be of one atom, got {got}: another atom has its elements in other "
    "registers",
)
def _(op: MmaSyncOp) -> Broken:
    got = [v.type.atom for v in (op.a, op.b, op.c)]
    return None if len(set(got)) == 1 else {"got": ", ".join(got)}


@rule(
    "tc.mma_sync",
    "shapes",
    "PTX ISA 9.7.14.5",
    "expected A [m, k], B [n, k] and C [m, n] with the atom's k = {k}, got {got}",
)
def _(op: MmaSyncOp) -> Broken:
    a, b, c = (v.type.shape for v in (op.a, op.b, op.c))
    k = mma_atom(op.a.type.atom).shape[2]
    if a[1] == b[1] == k and c == [a[0], b[0]]:
        return None
    return {"k": k, "got": f"{a}, {b} and {c}"}


@rule(
    "tc.mma_sync",
    "types",
    "PTX ISA 9.7.14.5",
    "expected element types of {atom} with an accumulator of {want}, got {a} x {b} -> {c}: f16, "
    "bf16, f32 (as tf32) and i8 are not mixed, e4m3 and e5m2 are",
)
def _(op: MmaSyncOp) -> Broken:
    a, b, c = (str(v.type.element) for v in (op.a, op.b, op.c))
    atom = op.a.type.atom
    want = accumulator_type(a)
    mixed = a == b or (a.startswith("f8") and b.startswith("f8"))
    known = all(PTX_TYPE.get(t) in mma_atom(atom).a_types for t in (a, b))
    if mixed and known and c == want:
        return None
    return {"atom": atom, "want": want, "a": a, "b": b, "c": c}


@rule(
    "tc.store_fragment",
    "operand",
    "tc",
    "expected a fragment of C, got one of {got}: operands are read from memory, not written",
)
def _(op: StoreFragmentOp) -> Broken:
    got = op.fragment.type.operand
    return None if got == "C" else {"got": got}


@rule("tc.store_fragment", "tails", "tc", TAILS_TEXT)
def _(op: StoreFragmentOp) -> Broken:
    return _tails(op)


@rule("tc.store_fragment", "rank", "tc", RANK_TEXT)
def _(op: StoreFragmentOp) -> Broken:
    return _ranks(op)


@rule(
    "tc.store_fragment",
    "element",
    "tc",
    "an accumulator of {fragment} is stored as {legal}, got a tensor of {got}",
)
def _(op: StoreFragmentOp) -> Broken:
    fragment, got = str(op.fragment.type.element), str(op.tensor.type.element_type)
    legal = ("i32",) if fragment == "i32" else ("f32", "f16", "bf16")
    if got in legal:
        return None
    return {"fragment": fragment, "legal": " or ".join(legal), "got": got}


# --- types -------------------------------------------------------------------------------------


def _is(attribute: ir.Attribute, kind: type) -> bool:
    return isinstance(attribute.maybe_downcast(), kind)


def _array(attribute: ir.Attribute, length: int, least: int) -> bool:
    if not _is(attribute, ir.DenseI64ArrayAttr):
        return False
    values = list(ir.DenseI64ArrayAttr(attribute))
    return len(values) == length and min(values) >= least


@rule(
    "!tc.staged",
    "parameters",
    "tc",
    "expected !tc.staged<array<i64: mn, k>, element, major, array<i64: bits, base, shift>> with "
    'major "K" or "MN", got {got}',
)
def _(type_: StagedType) -> Broken:
    well_formed = (
        _array(type_.shape_attr, 2, 1)
        and _is(type_.element_attr, ir.TypeAttr)
        and _is(type_.major_attr, ir.StringAttr)
        and type_.major in MAJORS
        and _array(type_.swizzle_attr, 3, 0)
    )
    return None if well_formed else {"got": type_}


@rule(
    "!tc.staged",
    "element",
    "PTX ISA 9.7.14.5",
    "element must be one of {legal}, got {got}: mma.sync multiplies these here",
)
def _(type_: StagedType) -> Broken:
    got = str(type_.element)
    return None if got in PTX_TYPE else {"legal": ", ".join(PTX_TYPE), "got": got}


@rule(
    "!tc.staged",
    "rows",
    "PTX ISA 9.7.14.5.15",
    "rows must be a power of two of at least 16 bytes, and so must their number, got {rows} rows "
    "of {got} bytes: ldmatrix reads rows of 16 bytes, and lane addresses are XORs of their bits",
)
def _(type_: StagedType) -> Broken:
    pitch, rows = type_.pitch, type_.nbytes // type_.pitch
    if pitch >= 16 and pitch & (pitch - 1) == 0 and rows & (rows - 1) == 0:
        return None
    return {"got": pitch, "rows": rows}


@rule(
    "!tc.staged",
    "swizzle",
    "PTX ISA 9.7.14.5.15",
    "a swizzle must leave pieces of 16 bytes whole and stay inside the tile of {size} bytes, got "
    "bits {bits}, base {base}, shift {shift}",
)
def _(type_: StagedType) -> Broken:
    bits, base, shift = type_.swizzle
    inside = 1 << (base + shift + bits) <= max(type_.nbytes, 1)
    if bits == 0 or (base >= 4 and shift >= bits and inside):
        return None
    return {"size": type_.nbytes, "bits": bits, "base": base, "shift": shift}


@rule(
    "!tc.fragment",
    "parameters",
    "tc",
    "expected !tc.fragment<array<i64: rows, columns>, element, operand, atom> with operand "
    '"A", "B" or "C" and an atom of a whole warp ({atoms}), got {got}',
)
def _(type_: FragmentType) -> Broken:
    well_formed = (
        _array(type_.shape_attr, 2, 1)
        and _is(type_.element_attr, ir.TypeAttr)
        and _is(type_.operand_attr, ir.StringAttr)
        and type_.operand in ("A", "B", "C")
        and _is(type_.atom_attr, ir.StringAttr)
        and type_.atom in WARP_ATOMS
    )
    return None if well_formed else {"atoms": ", ".join(WARP_ATOMS), "got": type_}


WARP_ATOMS = tuple(name for name, atom in MMA_ATOMS.items() if atom.threads.size == 32)


@rule(
    "!tc.fragment",
    "shape",
    "PTX ISA 9.7.14.5",
    "a fragment of {operand} of {atom} must be whole atoms of {want}, got {got}",
)
def _(type_: FragmentType) -> Broken:
    extents = mma_atom(type_.atom).operand(type_.operand)[1]
    got = type_.shape
    if all(g % e == 0 for g, e in zip(got, extents, strict=True)):
        return None
    return {"operand": type_.operand, "atom": type_.atom, "want": list(extents), "got": got}
