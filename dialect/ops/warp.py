"""Warp level.

Warp-level ops: cp.async into shared tiles, fragments, mma.sync, stores of fragments.

Each of these ops is an operation of a whole CTA on its tile; the atom (`tcir.dialect.fragments`)
and the kernel's ``tc.warps`` determine what each thread does.
"""

from collections.abc import Sequence
from typing import Any

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integer, integers, not_arrays, string
from tcir.dialect.fragments import PTX_TYPE, accumulator_type, loads_for
from tcir.dialect.limits import COPY_BYTES
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, one_of, same_rules, unsigned_problem, verify
from tcir.dialect.types import SmemType, element_bytes
from tcir.dialect.warp_types import TAILS, WALK, FragmentType, StagedType
from tcir.layout.atoms import mma_atom


class CpAsyncOp(Op, name="cp_async", loads="tensor", completed_by="tc.cp_async_wait"):
    """``cp.async``: fills ``tile`` from ``tensor``; elements outside the tensor are zero.

    The indices are those of the tile's first element. The tensor's last two dimensions are the
    tile's: ``[mn, k]`` for a K-major tile, ``[k, mn]`` for an MN-major tile; a leading dimension is
    a batch. ``width`` is the number of bytes of one copy; ``tails`` names the dimensions in which
    the tile may extend past the tensor (``""``, ``"outer"``, ``"inner"``, ``"outer inner"``); in
    other dimensions it must not. In a ``tc.async`` kernel the copy is asynchronous: it is complete
    after `tc.cp_async_wait` (PTX ISA 9.7.9.25.3).
    """

    example = """
    !tile = !tc.staged<array<i64: 128, 64>, f16, "K", array<i64: 3, 4, 3>>
    func.func @example(%x: memref<512x256xf16>, %m: index, %k: index, %tile: !tile) {
      "tc.cp_async"(%x, %m, %k, %tile) {width = 16 : i64, tails = "",
          operandSegmentSizes = array<i32: 1, 2, 1>}
          : (memref<512x256xf16>, index, index, !tile) -> ()
      return
    }
    """

    tensor: ext.Operand[ir.MemRefType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    tile: ext.Operand[StagedType]
    width: ir.IntegerAttr
    tails: ir.StringAttr


class CpAsyncCommitOp(Op, name="cp_async_commit"):
    """``cp.async.commit_group``: the copies since the last commit become a group, which may be
    empty.

    (PTX ISA 9.7.9.25.3.2.)
    """

    example = """
    func.func @example() {
      "tc.cp_async_commit"() : () -> ()
      return
    }
    """


class CpAsyncWaitOp(Op, name="cp_async_wait"):
    """``cp.async.wait_group``: waits until all but the last ``pending`` groups of each thread are
    complete.

    Other threads see the copied bytes after a `tc.cta_barrier` (PTX ISA 9.7.9.25.3).
    """

    example = """
    func.func @example() {
      "tc.cp_async_wait"() {pending = 2 : i64} : () -> ()
      return
    }
    """

    pending: ir.IntegerAttr


class ZeroFragmentOp(Op, name="zero_fragment", role="consumer"):
    """An accumulator of zeros, distributed over threads as mma.sync requires (PTX ISA 9.7.14.5)."""

    example = """
    !c = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k16.f16">
    func.func @example() {
      %zero = "tc.zero_fragment"() : () -> !c
      return
    }
    """

    fragment: ext.Result[FragmentType]


class AddFragmentOp(Op, name="add_fragment", role="consumer"):
    """``c = a + b`` of two accumulators of f32, rounded to nearest even (``add.rn.f32``).

    It adds the sums of the tensor core, which are rounded coarsely, to f32 sums that a loop carries
    (PTX ISA 9.7.3).
    """

    example = """
    !c = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k32.b8">
    func.func @example(%a: !c, %b: !c) {
      %c = "tc.add_fragment"(%a, %b) : (!c, !c) -> !c
      return
    }
    """

    a: ext.Operand[FragmentType]
    b: ext.Operand[FragmentType]
    c: ext.Result[FragmentType]


class LoadFragmentOp(Op, name="load_fragment", reads_shared=("tile",)):
    """Columns ``[k, k + columns)`` of ``tile`` as a fragment of A or B.

    The tile is a ``!tc.staged``, filled by threads, or a ``!tc.smem``, filled by TMA.

    ``via`` is ``"ldmatrix"``, ``"ldmatrix.trans"`` (MN-major tiles of 16-bit elements) or
    ``"loads"``: plain 32-bit loads, for fragments that ldmatrix cannot load (PTX ISA 9.7.14.5.15).
    """

    example = """
    !tile = !tc.staged<array<i64: 128, 64>, f16, "K", array<i64: 3, 4, 3>>
    !a = !tc.fragment<array<i64: 128, 16>, f16, "A", "mma.m16n8k16.f16">
    func.func @example(%tile: !tile) {
      %a = "tc.load_fragment"(%tile) {k = 16 : i64, via = "ldmatrix"} : (!tile) -> !a
      return
    }
    """

    tile: ext.Operand[Any]  # StagedType or SmemType
    k: ir.IntegerAttr
    via: ir.StringAttr
    fragment: ext.Result[FragmentType]


class MmaSyncOp(Op, name="mma_sync"):
    """``mma.sync``: computes ``d = a * b^T + c`` for the CTA's tile and one K step of the mma atom.

    Numerics depend on the target: see `docs/explanation/numerics.md` (PTX ISA 9.7.14.5). i8 is
    signed unless ``unsigned``, an ``array<i64: a, b>``, has a 1 for its operand.
    """

    example = """
    !a = !tc.fragment<array<i64: 128, 16>, f16, "A", "mma.m16n8k16.f16">
    !b = !tc.fragment<array<i64: 256, 16>, f16, "B", "mma.m16n8k16.f16">
    !c = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k16.f16">
    func.func @example(%a: !a, %b: !b, %c: !c) {
      %d = "tc.mma_sync"(%a, %b, %c) : (!a, !b, !c) -> !c
      return
    }
    """

    a: ext.Operand[FragmentType]
    b: ext.Operand[FragmentType]
    c: ext.Operand[FragmentType]
    d: ext.Result[FragmentType]


class StoreFragmentOp(Op, name="store_fragment", role="consumer", stores="tensor"):
    """Stores an accumulator to ``tensor``, rounded once (RNE) to its element type.

    The indices are those of the tile's first element. ``tails`` has the meaning that it has in
    `tc.cp_async`: elements outside the tensor are not stored (PTX ISA 9.7.9.12).

    With ``walk = array<i64: y, x>`` the rows of the fragment are consecutive pixels of images of y
    rows of x pixels: position ``(n * y + p) * x + q`` is the pixel ``[n, p, q]`` of a tensor of
    rank 4, and the first index is the position of the fragment's first row. Positions outside the
    tensor, which are padding, are not stored. A tensor of rank 5 has such images for each part of
    the sums, whose number is then the first index.
    """

    example = """
    !c = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k16.f16">
    func.func @example(%c: !c, %out: memref<500x512xf16>, %m: index, %n: index) {
      "tc.store_fragment"(%c, %out, %m, %n) {tails = "outer",
          operandSegmentSizes = array<i32: 1, 1, 2>}
          : (!c, memref<500x512xf16>, index, index) -> ()
      return
    }
    """

    fragment: ext.Operand[FragmentType]
    tensor: ext.Operand[ir.MemRefType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    tails: ir.StringAttr


def stored_types(element: str) -> tuple[str, ...]:
    """Element types to which an accumulator of type `element` can be rounded when stored."""
    return ("f32", "f16", "bf16") if element == "f32" else (element,)


@verify(
    AddFragmentOp,
    "types",
    "tc",
    "expected two fragments of C of f32 and a result like them, got {a}, {b} and {c}: what is "
    "added lies in the same registers",
    bad={"f32": "i32"},
)
def _(op: AddFragmentOp) -> Broken:
    a, b, c = op.a.type, op.b.type, op.c.type
    if a == b == c and a.operand == "C" and str(a.element) == "f32":
        return None
    return {"a": a, "b": b, "c": c}


# --- cp.async ----------------------------------------------------------------------------------


@verify(
    CpAsyncOp,
    "tails",
    "tc",
    "tails must be one of {legal}, got {got}",
    bad={'tails = ""': 'tails = "rows"'},
    good={'tails = ""': 'tails = "outer"'},
)
def _(op: CpAsyncOp | StoreFragmentOp) -> Broken:
    return one_of(op, "tails", TAILS)


same_rules(
    StoreFragmentOp,
    CpAsyncOp,
    {"tails": {'tails = "outer"': 'tails = "inner outer"'}},
    {"tails": {'tails = "outer"': 'tails = "outer inner"'}},
)


@verify(
    CpAsyncOp,
    "rank",
    "tc",
    "expected a tensor of rank 2, or 3 with a leading batch, and one index per dimension, got rank "
    "{rank} and {count} indices",
    bad={"%m, %k, %tile": "%m, %tile", "1, 2, 1": "1, 1, 1", "index, index, !tile": "index, !tile"},
)
def _(op: CpAsyncOp | StoreFragmentOp) -> Broken:
    rank, count = op.tensor.type.rank, len(op.indices)
    walks = WALK in op.attributes
    return None if walks or (rank in (2, 3) and rank == count) else {"rank": rank, "count": count}


same_rules(StoreFragmentOp, CpAsyncOp, {"rank": {"500x512xf16": "2x500x512xf16"}})


@verify(
    StoreFragmentOp,
    "walk",
    "tc",
    "walk must be array<i64: y, x> of at least the tensor's {image}, rows and columns of a tensor "
    "of rank 4 at an index along the walk and one along the last dimension, or of rank 5 with one "
    "of its part before them, got {walk}, a tensor {tensor} and {count} indices: two pixels would "
    "have one position",
    bad=(
        {"500x512xf16": "2x5x6x32xf16", '"outer",': '"outer", walk = array<i64: 5, 5>,'},
        {"500x512xf16": "60x32xf16", '"outer",': '"outer", walk = array<i64: 5, 7>,'},
    ),
    good=(
        {'"outer",': '"outer", walk = array<i64: 5, 7>,', "500x512xf16": "2x5x6x32xf16"},
        {'"outer",': '"outer", walk = array<i64: 5, 6>,', "500x512xf16": "2x5x6x32xf16"},
        {
            '"outer",': '"outer", walk = array<i64: 5, 6>,',
            "500x512xf16": "3x2x5x6x32xf16",
            "%out, %m, %n)": "%out, %m, %m, %n)",
            "1, 1, 2>": "1, 1, 3>",
            "index, index) -> ()": "index, index, index) -> ()",
        },
    ),
)
def _(op: StoreFragmentOp) -> Broken:
    if WALK not in op.attributes:
        return None
    shape, count = list(op.tensor.type.shape), len(op.indices)
    image = shape[-3:-1] if len(shape) in (4, 5) else []
    pair = not_arrays(op, walk=2) is None and image and count == len(shape) - 2
    if pair and all(own <= walked for own, walked in zip(image, integers(op, WALK), strict=True)):
        return None
    return {"image": image, "walk": op.attributes[WALK], "tensor": shape, "count": count}


@verify(
    CpAsyncOp,
    "element",
    "PTX ISA 9.7.9.25.3",
    "tensor and tile must have the same element type, got {tensor} and {tile}: cp.async moves "
    "bytes; convert before this kernel",
    bad={"512x256xf16": "512x256xbf16"},
)
def _(op: CpAsyncOp) -> Broken:
    tensor, tile = op.tensor.type.element_type, op.tile.type.element
    return None if tensor == tile else {"tensor": tensor, "tile": tile}


@verify(
    CpAsyncOp,
    "width",
    "PTX ISA 9.7.9.25.3",
    "width must be one of {legal} bytes and divide the rows of the tile ({tile} bytes) and of the "
    "tensor ({tensor} bytes), got {got}: a copy is aligned to its size at both ends",
    bad=({"width = 16": "width = 12"}, {"512x256xf16": "512x252xf16"}),
    good={"width = 16": "width = 8"},
)
def _(op: CpAsyncOp) -> Broken:
    width, tile = integer(op, "width"), op.tile.type.pitch
    tensor = op.tensor.type.shape[-1] * element_bytes(op.tensor.type.element_type)
    if width in COPY_BYTES and tile % width == 0 and tensor % width == 0:
        return None
    return {"legal": COPY_BYTES, "tile": tile, "tensor": tensor, "got": width}


@verify(
    CpAsyncWaitOp,
    "pending",
    "PTX ISA 9.7.9.25.3.3",
    "pending must be at least 0, got {got}: it is the number of groups that may be incomplete",
    bad={"pending = 2": "pending = -1"},
    good={"pending = 2": "pending = 0"},
)
def _(op: CpAsyncWaitOp) -> Broken:
    got = integer(op, "pending")
    return None if got >= 0 else {"got": got}


# --- fragments ---------------------------------------------------------------------------------


@verify(
    ZeroFragmentOp,
    "operand",
    "tc",
    "the result must be a fragment of C, got one of {got}: only accumulators start from zero",
    bad={'"C"': '"A"'},
)
def _(op: ZeroFragmentOp) -> Broken:
    got = op.fragment.type.operand
    return None if got == "C" else {"got": got}


@verify(
    LoadFragmentOp,
    "tile",
    "tc",
    "the tile must be of type !tc.staged or !tc.smem, got {got}",
    bad={
        '!tile = !tc.staged<array<i64: 128, 64>, f16, "K", array<i64: 3, 4, 3>>': (
            "!tile = !tc.tmem<array<i64: 128, 64>, f16>"
        )
    },
    good={
        "!tile = !tc.staged": "!tile = !tc.smem",
        "array<i64: 128, 64>": "array<i64: 32, 32>",
        "array<i64: 3, 4, 3>": '"64B"',
        "array<i64: 128, 16>": "array<i64: 32, 16>",
    },
)
def _(op: LoadFragmentOp) -> Broken:
    got = op.tile.type
    return None if isinstance(got, StagedType | SmemType) else {"got": got}


@verify(
    LoadFragmentOp,
    "operand",
    "tc",
    "the result must be a fragment of A or B, got one of {got}",
    bad={'"A"': '"C"'},
)
def _(op: LoadFragmentOp) -> Broken:
    got = op.fragment.type.operand
    return None if got in ("A", "B") else {"got": got}


@verify(
    LoadFragmentOp,
    "range",
    "tc",
    "the fragment must have the {rows} rows of the tile and columns inside its K = {k}, got "
    "{got} rows and columns [{begin}, {end})",
    bad={"k = 16": "k = 64"},
)
def _(op: LoadFragmentOp) -> Broken:
    (rows, k), (got, columns) = op.tile.type.shape, op.fragment.type.shape
    begin = integer(op, "k")
    if rows == got and begin % columns == 0 and 0 <= begin and begin + columns <= k:
        return None
    return {"rows": rows, "k": k, "got": got, "begin": begin, "end": begin + columns}


@verify(
    LoadFragmentOp,
    "element",
    "PTX ISA 9.7.14.5.15",
    "tile and fragment must have the same element type, got {tile} and {fragment}: ldmatrix moves "
    "bytes",
    bad={"array<i64: 128, 64>, f16": "array<i64: 128, 64>, bf16"},
)
def _(op: LoadFragmentOp) -> Broken:
    tile, fragment = op.tile.type.element, op.fragment.type.element
    return None if tile == fragment else {"tile": tile, "fragment": fragment}


@verify(
    LoadFragmentOp,
    "via",
    "PTX ISA 9.7.14.5.15",
    "via must be {legal} for {operand} of {atom} from a {major}-major tile of {element}, got "
    '"{got}"',
    bad=(
        {'"K"': '"MN"'},
        {
            '!tile = !tc.staged<array<i64: 128, 64>, f16, "K", array<i64: 3, 4, 3>>': (
                '!tile = !tc.staged<array<i64: 32, 32>, f32, "MN", array<i64: 2, 5, 2>>'
            ),
            '!a = !tc.fragment<array<i64: 128, 16>, f16, "A", "mma.m16n8k16.f16">': (
                '!a = !tc.fragment<array<i64: 32, 8>, f32, "A", "mma.m16n8k8.tf32">'
            ),
            'via = "ldmatrix"': 'via = "ldmatrix.trans"',
        },
    ),
    good={'"K"': '"MN"', 'via = "ldmatrix"': 'via = "loads"'},
)
def _(op: LoadFragmentOp) -> Broken:
    tile, fragment = op.tile.type, op.fragment.type
    served, _ = loads_for(fragment.atom, fragment.operand, tile.major, element_bytes(tile.element))
    legal = tuple(dict.fromkeys((served, "loads")))
    got = string(op, "via")
    if got in legal:
        return None
    return {
        "legal": " or ".join(f'"{v}"' for v in legal),
        "operand": fragment.operand,
        "atom": fragment.atom,
        "major": tile.major,
        "element": tile.element,
        "got": got,
    }


@verify(
    MmaSyncOp,
    "operands",
    "PTX ISA 9.7.14.5",
    "expected fragments of A, B and C and a result like C, got {got}",
    bad={"(%a, %b, %c) : (!a, !b, !c)": "(%b, %a, %c) : (!b, !a, !c)"},
)
def _(op: MmaSyncOp) -> Broken:
    got = "".join(v.type.operand for v in (op.a, op.b, op.c))
    if got == "ABC" and op.c.type == op.d.type:
        return None
    return {"got": ", ".join(str(v.type) for v in (op.a, op.b, op.c, op.d))}


@verify(
    MmaSyncOp,
    "atom",
    "PTX ISA 9.7.14.5",
    "all fragments must be of one atom, got {got}: another atom has its elements in other "
    "registers",
    bad={
        '!a = !tc.fragment<array<i64: 128, 16>, f16, "A", "mma.m16n8k16.f16"': (
            '!a = !tc.fragment<array<i64: 128, 16>, f16, "A", "mma.m16n8k8.f16"'
        )
    },
)
def _(op: MmaSyncOp) -> Broken:
    got = [v.type.atom for v in (op.a, op.b, op.c)]
    return None if len(set(got)) == 1 else {"got": ", ".join(got)}


@verify(
    MmaSyncOp,
    "shapes",
    "PTX ISA 9.7.14.5",
    "expected A [m, k], B [n, k] and C [m, n] with the atom's k = {k}, got {got}",
    bad={"array<i64: 256, 16>": "array<i64: 24, 16>"},
    good={
        "array<i64: 256, 16>": "array<i64: 16, 16>",
        "array<i64: 128, 256>": "array<i64: 128, 16>",
    },
)
def _(op: MmaSyncOp) -> Broken:
    a, b, c = (v.type.shape for v in (op.a, op.b, op.c))
    k = mma_atom(op.a.type.atom).shape[2]
    if a[1] == b[1] == k and c == [a[0], b[0]]:
        return None
    return {"k": k, "got": f"{a}, {b} and {c}"}


@verify(
    MmaSyncOp,
    "types",
    "PTX ISA 9.7.14.5",
    "expected element types of {atom} with an accumulator of {want}, got {a} x {b} -> {c}: f16, "
    "bf16, f32 (as tf32) and i8 are not mixed, e4m3 and e5m2 are",
    bad={"array<i64: 128, 16>, f16": "array<i64: 128, 16>, bf16"},
    good={
        "array<i64: 128, 16>, f16": "array<i64: 128, 16>, bf16",
        "array<i64: 256, 16>, f16": "array<i64: 256, 16>, bf16",
    },
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


@verify(
    MmaSyncOp,
    "unsigned",
    "PTX ISA 9.7.14.5",
    "unsigned must be array<i64: a, b> of 0 or 1 on i8 operands, got {got} on {element}: only "
    "integers come unsigned",
    bad=(
        {"%c)": "%c) {unsigned = array<i64: 1, 0>}"},
        {
            'f16, "A", "mma.m16n8k16.f16"': 'i8, "A", "mma.m16n8k32.b8"',
            'f16, "B", "mma.m16n8k16.f16"': 'i8, "B", "mma.m16n8k32.b8"',
            'f32, "C", "mma.m16n8k16.f16"': 'i32, "C", "mma.m16n8k32.b8"',
            "array<i64: 128, 16>": "array<i64: 128, 32>",
            "array<i64: 256, 16>": "array<i64: 256, 32>",
            "%c)": "%c) {unsigned = array<i64: 1>}",
        },
    ),
)
def _(op: MmaSyncOp) -> Broken:
    return unsigned_problem(op, str(op.a.type.element))


@verify(
    StoreFragmentOp,
    "operand",
    "tc",
    "expected a fragment of C, got one of {got}: operands are read from memory, not written",
    bad={'"C"': '"A"'},
)
def _(op: StoreFragmentOp) -> Broken:
    got = op.fragment.type.operand
    return None if got == "C" else {"got": got}


@verify(
    StoreFragmentOp,
    "element",
    "tc",
    "an accumulator of {fragment} is stored as {legal}, got a tensor of {got}",
    bad={"500x512xf16": "500x512xi32"},
    good={"500x512xf16": "500x512xbf16"},
)
def _(op: StoreFragmentOp) -> Broken:
    fragment, got = str(op.fragment.type.element), str(op.tensor.type.element_type)
    legal = stored_types(fragment)
    if got in legal:
        return None
    return {"fragment": fragment, "legal": " or ".join(legal), "got": got}
