"""Grouped contractions: a product for each group of rows, whose sizes are known at run time."""

from collections.abc import Sequence

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integer, is_integer, optional_integer, string
from tcir.dialect.indexing import BATCH, Index, IndexedOperand, Indexing, K, M, N
from tcir.dialect.limits import TMEM_LANES
from tcir.dialect.operation import Op
from tcir.dialect.ops.highlevel import TYPES, MatmulOp, k_part, types_problem
from tcir.dialect.ops.warp import StoreFragmentOp
from tcir.dialect.rules import Broken, same_rules, verify
from tcir.dialect.warp_types import FragmentType

MOST_GROUPS = 1024
"""Each thread reads the sizes one after another."""


class GroupedMatmulOp(
    Op,
    name="grouped_matmul",
    arithmetic="products",
    group_sizes="sizes",
    lowered_by=("tile-gemm",),
):
    """A matrix product for each group of rows of ``a``: group g has ``sizes[g]`` rows.

    In the contiguous form ``a`` is ``[T,K]`` and holds the rows of the groups one after another;
    ``out`` is ``[T,N]``. In the masked form ``a`` is ``[G,C,K]``, where the first ``sizes[g]`` of
    the C rows belong to group g, and ``out`` is ``[G,C,N]``. ``b`` is ``[G,K,N]`` (``b_layout =
    "kn"``) or ``[G,N,K]`` (``"nk"``), a matrix for each group; ``a_layout`` is ``"mk"``. Sums are
    as in ``tc.matmul``; with ``k_part`` they stay in parts, which are the first dimension of
    ``out`` (``tc.sum_parts``).

    Rows of ``out`` that belong to no group are not written: they keep their contents. Each size is
    at least 0, and the rows of all groups should fit in ``a``; rows that do not fit are left out.
    """

    example = """
    func.func @example(%a: tensor<512x256xbf16>, %b: tensor<8x256x384xbf16>,
        %sizes: tensor<8xi32>) {
      %c = "tc.grouped_matmul"(%a, %b, %sizes) {a_layout = "mk", b_layout = "kn"}
          : (tensor<512x256xbf16>, tensor<8x256x384xbf16>, tensor<8xi32>) -> tensor<512x384xbf16>
      return
    }
    """

    a: ext.Operand[ir.RankedTensorType]
    b: ext.Operand[ir.RankedTensorType]
    sizes: ext.Operand[ir.RankedTensorType]
    a_layout: ir.StringAttr
    b_layout: ir.StringAttr
    out: ext.Result[ir.RankedTensorType]

    @property
    def masked(self) -> bool:
        """Whether the form is masked: every group has its own rows of ``a``."""
        return bool(self.a.type.rank == 3)

    def indexing(self) -> Indexing:
        """Returns the indexing of a product of every row with the matrix of every group. The sums
        of this op are some of those sums, so if those are exact, the sums of this op are exact."""
        rows: list[Index] = [(BATCH, 1)] * (self.a.type.rank - 2) + [(M, 1)]
        inner: list[Index] = [(N, 1), (K, 1)]
        if string(self, "b_layout") == "kn":
            inner.reverse()
        a, b = (*rows, (K, 1)), ((BATCH, 1), *inner)
        factors = (IndexedOperand(self.a, a), IndexedOperand(self.b, b))
        return Indexing(factors, frozenset((BATCH, M, N)))


class FindGroupOp(Op, name="find_group", loads="sizes", pure=True):
    """Finds the group of tile ``tile`` of 128 rows, counted over the tiles of all groups.

    ``sizes`` has the number of rows of each group. A group of n rows has ``ceil(n / 128)`` tiles;
    with ``capacity`` every group has ``ceil(capacity / 128)`` tiles. ``first`` is the number of the
    tile's first row, counted from the first row of the first group or, with ``capacity``, from the
    first row of its own group. ``count`` is the number of rows of the group in the tile, 0 if there
    is no such tile. Each thread reads the sizes (PTX ISA 9.7.9.8).

    ``within`` is for groups without a capacity, where every tile has rows: ``first`` is then
    counted from the group's first row.

    With ``tile_rows`` tiles have that many rows instead of 128. With ``ends``, ``sizes`` is a 0 and
    then the ends of the groups: group i has the rows from element i up to element i + 1, and no
    rows if element i + 1 is less.
    """

    example = """
    func.func @example(%sizes: memref<8xi32>, %tile: index) {
      %group, %first, %count = "tc.find_group"(%sizes, %tile)
          : (memref<8xi32>, index) -> (index, index, index)
      return
    }
    """

    sizes: ext.Operand[ir.MemRefType]
    tile: ext.Operand[ir.IndexType]
    group: ext.Result[ir.IndexType] = ext.result(default_factory=ir.IndexType.get)
    first: ext.Result[ir.IndexType] = ext.result(default_factory=ir.IndexType.get)
    count: ext.Result[ir.IndexType] = ext.result(default_factory=ir.IndexType.get)


class CountTilesOp(Op, name="count_tiles", loads="sizes", pure=True):
    """Number of tiles of 128 rows in all groups: the sum of ``ceil(n / 128)``, where n runs over
    the sizes of the groups.

    With ``tile_rows`` a tile has that many rows instead of 128. Each thread reads the sizes
    (PTX ISA 9.7.9.8).
    """

    example = """
    func.func @example(%sizes: memref<8xi32>) {
      %tiles = "tc.count_tiles"(%sizes) : (memref<8xi32>) -> index
      return
    }
    """

    sizes: ext.Operand[ir.MemRefType]
    tiles: ext.Result[ir.IndexType] = ext.result(default_factory=ir.IndexType.get)


class StoreFragmentGroupOp(Op, name="store_fragment_group", role="consumer", stores="tensor"):
    """Stores the rows of an accumulator that belong to a group, as `tc.store_fragment` does.

    Rows of the tensor from index ``end`` on are not stored, because they belong to the next group
    or to no group. The indices are those of the tile's first element (PTX ISA 9.7.9.12).
    """

    example = """
    !c = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k16.f16">
    func.func @example(%c: !c, %out: memref<500x512xf16>, %end: index, %m: index, %n: index) {
      "tc.store_fragment_group"(%c, %out, %end, %m, %n) {tails = "inner",
          operandSegmentSizes = array<i32: 1, 1, 1, 2>}
          : (!c, memref<500x512xf16>, index, index, index) -> ()
      return
    }
    """

    fragment: ext.Operand[FragmentType]
    tensor: ext.Operand[ir.MemRefType]
    end: ext.Operand[ir.IndexType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    tails: ir.StringAttr


same_rules(
    StoreFragmentGroupOp,
    StoreFragmentOp,
    {
        "tails": {'tails = "inner"': 'tails = "inner outer"'},
        "rank": {"500x512xf16": "2x500x512xf16"},
        "operand": {'"C"': '"A"'},
        "element": {"500x512xf16": "500x512xi32"},
    },
    {
        "tails": {'tails = "inner"': 'tails = "outer inner"'},
        "element": {"500x512xf16": "500x512xbf16"},
    },
)


def tile_rows(op: FindGroupOp | CountTilesOp) -> int:
    """Number of rows of a tile."""
    return optional_integer(op, "tile_rows") or TMEM_LANES


def capacity(op: FindGroupOp) -> int | None:
    """Number of rows that each group has room for; None if groups are adjacent, without gaps."""
    return optional_integer(op, "capacity")


@verify(
    GroupedMatmulOp,
    "layouts",
    "tc",
    'a_layout must be "mk" and b_layout "kn" or "nk", got "{a}" and "{b}": a group is rows of a',
    bad={'a_layout = "mk"': 'a_layout = "km"'},
)
def _(op: GroupedMatmulOp) -> Broken:
    a, b = string(op, "a_layout"), string(op, "b_layout")
    return None if a == "mk" and b in ("kn", "nk") else {"a": a, "b": b}


same_rules(
    GroupedMatmulOp,
    MatmulOp,
    {
        "k-part": {'"kn"': '"kn", k_part = 0 : i64'},
        "part-type": {'"kn"': '"kn", k_part = 64 : i64', "512x384xbf16": "4x512x384xbf16"},
    },
    {
        "k-part": {'"kn"': '"kn", k_part = 100 : i64', "512x384xbf16": "3x512x384xf32"},
        "part-type": {'"kn"': '"kn", k_part = 64 : i64', "512x384xbf16": "4x512x384xf32"},
    },
)


@verify(
    GroupedMatmulOp,
    "rank",
    "tc",
    "a and out must have rank 2, or rank 3 with the group in front, and b rank 3 (out one more "
    "with k_part), got {got}",
    bad={"8x256x384xbf16": "256x384xbf16"},
    good={"512x256xbf16": "8x64x256xbf16", "512x384xbf16": "8x64x384xbf16"},
)
def _(op: GroupedMatmulOp) -> Broken:
    ranks = [v.type.rank for v in (op.a, op.b, op.out)]
    a = 3 if op.masked else 2
    legal = ranks == [a, 3, a + (k_part(op) is not None)]
    return None if legal else {"got": ", ".join(map(str, ranks))}


@verify(
    GroupedMatmulOp,
    "static",
    "tc",
    "shapes must be static, got {got}: only the sizes of the groups are known at run time",
    bad={"512x256xbf16": "?x256xbf16"},
)
def _(op: GroupedMatmulOp) -> Broken:
    got = next((v.type for v in (*op.operands, op.out) if not v.type.has_static_shape), None)
    return None if got is None else {"got": got}


@verify(
    GroupedMatmulOp,
    "types",
    "PTX ISA 9.7.16.2",
    TYPES,
    bad={"512x384xbf16": "512x384xf32", "512x256xbf16": "512x256xf16"},
)
def _(op: GroupedMatmulOp) -> Broken:
    return types_problem(op.a, op.b, op.out)


@verify(
    GroupedMatmulOp,
    "sizes",
    "tc",
    "sizes must be tensor<{groups}xi32>, one for each matrix of b, of at most {most}, got {got}",
    bad={"8xi32": "4xi32"},
)
def _(op: GroupedMatmulOp) -> Broken:
    groups, got = op.b.type.shape[0], op.sizes.type
    if str(got) == f"tensor<{groups}xi32>" and groups <= MOST_GROUPS:
        return None
    return {"groups": groups, "most": MOST_GROUPS, "got": got}


@verify(
    GroupedMatmulOp,
    "shapes",
    "tc",
    "expected a [T,{k}] or [{groups},C,{k}] and out of the same rows by {n} columns, after the "
    "parts if there are any, got {a} and {out}",
    bad={'b_layout = "kn"': 'b_layout = "nk"'},
)
def _(op: GroupedMatmulOp) -> Broken:
    groups, *inner = op.b.type.shape
    k, n = inner if string(op, "b_layout") == "kn" else inner[::-1]
    a, out, part = list(op.a.type.shape), list(op.out.type.shape), k_part(op)
    parts = [] if part is None else [-(-k // part)]
    legal = a[-1] == k and out == [*parts, *a[:-1], n] and (not op.masked or a[0] == groups)
    return None if legal else {"k": k, "n": n, "groups": groups, "a": a, "out": out}


@verify(
    FindGroupOp,
    "sizes",
    "tc",
    "sizes must be memref<G x i32> of at most {most} groups, got {got}",
    bad={"8xi32": "8xi64"},
)
def _(op: FindGroupOp) -> Broken:
    got = op.sizes.type
    vector = got.has_static_shape and got.rank == 1 and str(got.element_type) == "i32"
    return None if vector and got.shape[0] <= MOST_GROUPS else {"most": MOST_GROUPS, "got": got}


@verify(
    FindGroupOp,
    "within",
    "tc",
    "expected within or a capacity, got both: with a capacity rows are counted in the group",
    bad={"%tile)": "%tile) {capacity = 200 : i64, within}"},
    good={"%tile)": "%tile) {within}"},
)
def _(op: FindGroupOp) -> Broken:
    return {} if "within" in op.attributes and "capacity" in op.attributes else None


@verify(
    FindGroupOp,
    "tile-rows",
    "tc",
    "tile_rows must be an integer of at least 1, or left out, got {got}",
    bad={"%tile)": "%tile) {tile_rows = 0 : i64}"},
    good={"%tile)": "%tile) {tile_rows = 192 : i64}"},
)
def _(op: FindGroupOp | CountTilesOp) -> Broken:
    got = op.attributes.get("tile_rows", None)
    legal = got is None or (isinstance(got, ir.IntegerAttr) and got.value > 0)
    return None if legal else {"got": got}


same_rules(
    CountTilesOp,
    FindGroupOp,
    {"sizes": {"8xi32": "8xi64"}, "tile-rows": {"%sizes)": "%sizes) {tile_rows = 0 : i64}"}},
    {"tile-rows": {"%sizes)": "%sizes) {tile_rows = 192 : i64}"}},
)


@verify(
    FindGroupOp,
    "ends",
    "tc",
    "expected ends, within or a capacity, got {got}: ends give the first row of a group",
    bad={"%tile)": "%tile) {ends, within}"},
    good={"%tile)": "%tile) {ends}"},
)
def _(op: FindGroupOp) -> Broken:
    got = [name for name in ("ends", "within", "capacity") if name in op.attributes]
    return {"got": " and ".join(got)} if "ends" in got and len(got) > 1 else None


@verify(
    FindGroupOp,
    "capacity",
    "tc",
    "capacity must be an integer of at least 1, or left out, got {got}",
    bad={"%tile)": "%tile) {capacity = 0 : i64}"},
    good={"%tile)": "%tile) {capacity = 200 : i64}"},
)
def _(op: FindGroupOp) -> Broken:
    if is_integer(op, "capacity") and (capacity(op) is None or integer(op, "capacity") > 0):
        return None
    return {"got": op.attributes["capacity"]}


def tiles_of(rows: int, height: int = TMEM_LANES) -> int:
    """Number of tiles of `height` rows that hold `rows` rows."""
    return -(-rows // height)


def most_tiles(rows: int, groups: int, height: int = TMEM_LANES) -> int:
    """Largest number of tiles of `height` rows that `groups` groups can have, if their sizes n add
    up to `rows`: ceil(n / height) is at most (n + height - 1) / height, and at most n."""
    return min(rows, (rows + (height - 1) * groups) // height)
