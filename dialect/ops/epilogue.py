"""Epilogues of whole tensors and epilogues of fragments; both have a body of the same kind."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from tcir._mlir import ext, ir
from tcir.dialect.attributes import (
    defining,
    integer,
    integers,
    not_arrays,
    optional_integer,
)
from tcir.dialect.operation import Op
from tcir.dialect.ops.attention import AttentionOp
from tcir.dialect.ops.grouped import GroupedMatmulOp
from tcir.dialect.ops.sum_parts import SumPartsOp
from tcir.dialect.rules import Broken, one_of, same_rules, verify
from tcir.dialect.warp_types import ATOM_COLUMNS, GATE_BLOCK, TAILS, WALK, FragmentType

SCALAR_OPS = frozenset(
    f"arith.{name}"
    for name in (
        "addf", "addi", "andi", "bitcast", "cmpf", "cmpi", "constant", "divf", "extf", "extsi",
        "extui", "fptosi", "fptoui", "maximumf", "maxnumf", "maxsi", "maxui", "minimumf",
        "minnumf", "minsi", "minui", "mulf", "muli", "negf", "ori", "select", "shli", "shrsi",
        "shrui", "sitofp", "subf", "subi", "truncf", "trunci", "uitofp", "xori",
    )
)  # fmt: skip
"""What the body of ``tc.epilogue`` may compute besides ``math``: without effects and traps."""


OF_GROUP = "of_group"
"""Unit attribute of ``tc.element``: the tensor has an index for each group of rows."""


class EpilogueOp(Op, name="epilogue", arithmetic="rounded", traits=[ir.NoTerminatorTrait]):
    """Computes results from sums, element by element, before a kernel stores them.

    The body takes the element of ``sums``, reads elements of other tensors with ``tc.element``, and
    ends in ``tc.yield`` of the element of ``out``. The tiling pass of the contraction that computes
    ``sums`` clones the body onto register tiles; an epilogue whose ``sums`` no contraction computes
    cannot be lowered.

    If ``sums`` has twice as many columns as ``out``, the body takes two elements, gate and value of
    a gated activation. The columns of gates and values alternate: element n uses columns 2n and 2n
    + 1 or, with ``gate_block = b``, blocks of b columns alternate.
    """

    example = """
    #column = affine_map<(m, n) -> (n)>
    func.func @example(%sums: tensor<256x192xf32>, %bias: tensor<192xf32>) {
      %y = "tc.epilogue"(%sums) ({
      ^bb0(%sum: f32):
        %b = "tc.element"(%bias) {map = #column} : (tensor<192xf32>) -> f32
        %zero = arith.constant 0.0 : f32
        %biased = arith.addf %sum, %b : f32
        %relu = arith.maximumf %biased, %zero : f32
        %rounded = arith.truncf %relu : f32 to f16
        "tc.yield"(%rounded) : (f16) -> ()
      }) : (tensor<256x192xf32>) -> tensor<256x192xf16>
      return
    }
    """

    sums: ext.Operand[ir.RankedTensorType]
    body: ext.Region
    out: ext.Result[ir.RankedTensorType]

    @property
    def gated(self) -> bool:
        """Whether each element of the result is computed from two sums, a gate and a value."""
        return len(self.body.blocks[0].arguments) == 2

    @property
    def gate_block(self) -> int:
        """Number of adjacent columns of gates, which are followed by as many columns of values."""
        return optional_integer(self, GATE_BLOCK) or 1

    @property
    def grouped(self) -> GroupedMatmulOp | SumPartsOp | None:
        """The grouped product that computes ``sums``; None if another op computes them."""
        op = defining(self.sums, GroupedMatmulOp | SumPartsOp)
        return None if op is None or op.sizes is None else op

    @property
    def rank(self) -> int:
        """Number of dimensions of the result."""
        return int(self.out.type.rank)

    @property
    def shape(self) -> list[int]:
        """Extents of the result."""
        return list(self.out.type.shape)

    @property
    def elements(self) -> list["ElementOp"]:
        """The ops of the body that read other tensors."""
        return [op for op in self.body.blocks[0] if isinstance(op, ElementOp)]


class FragmentEpilogueOp(
    Op, name="fragment_epilogue", role="consumer", traits=[ir.NoTerminatorTrait]
):
    """Computes results from an accumulator, element by element, before a kernel of warps stores
    them.

    The body has the form of the body of ``tc.epilogue``: it takes the element of ``sums``, reads
    elements of other tensors with ``tc.element``, and ends in ``tc.yield`` of the element of
    ``out``, a fragment of the same shape. The op's indices are the position of the tile's first
    element in the result. The maps of ``tc.element`` apply to the sum of these indices and the
    position in the tile. ``tails`` has the meaning that it has in `tc.cp_async`: elements outside
    are read as zeros, and their results are not stored. A thread computes the elements that it
    holds: two neighbouring columns of rows r and r + 8 of every atom (PTX ISA 9.7.14.5).

    If ``sums`` has twice as many columns as the result, the body takes two elements, as in a
    ``tc.epilogue`` with ``gate_block = 8``: a thread has the same columns of each block of 8.

    With ``walk`` (as in `tc.store_fragment`) the result has four dimensions, pixels ``[n, p, q]``
    and channels; nothing outside a tensor is read.
    """

    example = """
    !c = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k16.f16">
    !d = !tc.fragment<array<i64: 128, 256>, f16, "C", "mma.m16n8k16.f16">
    #column = affine_map<(m, n) -> (n)>
    func.func @example(%c: !c, %bias: memref<512xf32>, %m: index, %n: index) {
      %d = "tc.fragment_epilogue"(%c, %m, %n) ({
      ^bb0(%sum: f32):
        %b = "tc.element"(%bias) {map = #column} : (memref<512xf32>) -> f32
        %biased = arith.addf %sum, %b : f32
        %rounded = arith.truncf %biased : f32 to f16
        "tc.yield"(%rounded) : (f16) -> ()
      }) {tails = "outer", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !d
      return
    }
    """

    sums: ext.Operand[FragmentType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    tails: ir.StringAttr
    body: ext.Region
    out: ext.Result[FragmentType]

    @property
    def gated(self) -> bool:
        """Whether each element of the result is computed from two sums, a gate and a value."""
        return len(self.body.blocks[0].arguments) == 2

    @property
    def rank(self) -> int:
        """Number of dimensions of the result."""
        return 4 if WALK in self.attributes else len(self.indices)


def _dims_of(map_: ir.AffineMap) -> list[int | None]:
    return [e.position if isinstance(e, ir.AffineDimExpr) else None for e in map_.results]


def _is_read_by(tensor: ir.MemRefType, dims: Sequence[int | None]) -> bool:
    """Static, contiguous, a dimension for each of `dims`, of extent 1 for None."""
    if not tensor.has_static_shape or tensor.rank != len(dims):
        return False
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(tensor.rank, tensor.context))
    ones = all(n == 1 for n, d in zip(tensor.shape, dims, strict=True) if d is None)
    return bool(tensor.layout == identity and ones)


class FragmentPartOp(Op, name="fragment_part", role="consumer"):
    """Selects columns of an accumulator: as many as the result has, from column ``first`` on.

    The op selects the registers that hold these columns, so each warp must have whole rows
    (``tc.warps = array<i64: w, 1>``; PTX ISA 9.7.14.5).
    """

    example = """
    !c = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k16.f16">
    !d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
    func.func @example(%c: !c) {
      %d = "tc.fragment_part"(%c) {first = 224 : i64} : (!c) -> !d
      return
    }
    """

    whole: ext.Operand[FragmentType]
    first: ir.IntegerAttr
    columns: ext.Result[FragmentType]


class FetchFragmentOp(Op, name="fetch_fragment", role="consumer", loads="tensor"):
    """Loads to registers the elements of ``tensor`` that a later ``tc.fragment_epilogue`` reads.

    ``map`` is the map of the ``tc.element`` that reads them. The indices and ``tails`` are the same
    as in the epilogue: elements outside the tensor are zero. A thread loads what its own elements
    need: it loads a matrix in pairs of columns, and a value that several elements need is loaded
    once (PTX ISA 9.7.9.8).
    """

    example = """
    !c = !tc.fragment<array<i64: 128, 32>, f16, "C", "mma.m16n8k16.f16">
    #all = affine_map<(m, n) -> (m, n)>
    func.func @example(%residual: memref<500x512xf16>, %m: index, %n: index) {
      %c = "tc.fetch_fragment"(%residual, %m, %n) {map = #all, tails = "outer",
          operandSegmentSizes = array<i32: 1, 2>} : (memref<500x512xf16>, index, index) -> !c
      return
    }
    """

    tensor: ext.Operand[ir.MemRefType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    map: ir.AffineMapAttr
    tails: ir.StringAttr
    fragment: ext.Result[FragmentType]

    @property
    def dims(self) -> list[int | None]:
        """For each dimension of the tensor, the dimension of the result that indexes it; None means
        that the index is 0."""
        return _dims_of(self.attributes["map"].value)

    @property
    def out_rank(self) -> int:
        """Number of dimensions of the result."""
        return len(self.indices)


class ElementOp(Op, name="element", arithmetic="rounded", loads="tensor"):
    """An element of another tensor in the body of ``tc.epilogue``, ``tc.fragment_epilogue`` or
    ``tc.attention``.

    ``map`` maps indices of the result to indices of ``tensor``: all of them for a residual, one for
    a bias, none for a scalar; 0 is the index of a dimension of extent 1. ``tensor`` may be a
    fragment, which a ``tc.fetch_fragment`` with the same map loaded.

    With the unit attribute ``of_group`` the tensor has one more leading dimension, the group of the
    row, because no affine map takes a row of a contiguous ``tc.grouped_matmul`` to its group. A
    tensor ``[G,N]`` is then a bias for each group, and a tensor ``[G]`` is a scale for each group.
    """

    example = """
    #row = affine_map<(m, n) -> (m, 0)>
    func.func @example(%sums: tensor<256x192xf32>, %scales: tensor<256x1xf32>) {
      %y = "tc.epilogue"(%sums) ({
      ^bb0(%sum: f32):
        %scale = "tc.element"(%scales) {map = #row} : (tensor<256x1xf32>) -> f32
        %scaled = arith.mulf %sum, %scale : f32
        "tc.yield"(%scaled) : (f32) -> ()
      }) : (tensor<256x192xf32>) -> tensor<256x192xf32>
      return
    }
    """

    tensor: ext.Operand[ir.RankedTensorType | ir.MemRefType | FragmentType]
    map: ir.AffineMapAttr
    value: ext.Result[Any]

    @property
    def dims(self) -> list[int | None]:
        """For each dimension of the tensor, the dimension of the result that indexes it; None means
        that the index is 0."""
        return _dims_of(self.attributes["map"].value)

    @property
    def of_group(self) -> bool:
        """Whether the first dimension of the tensor is indexed by the group to which the row
        belongs."""
        return OF_GROUP in self.attributes

    @property
    def out_rank(self) -> int:
        """Number of dimensions of the result."""
        return int(self.attributes["map"].value.n_dims)


class YieldOp(Op, name="yield", arithmetic="rounded"):
    """Ends the body of ``tc.epilogue``, ``tc.fragment_epilogue`` or ``tc.attention``; yields its
    element."""

    example = """
    func.func @example(%sums: tensor<8x8xf32>) {
      %y = "tc.epilogue"(%sums) ({
      ^bb0(%sum: f32):
        %rounded = arith.truncf %sum : f32 to bf16
        "tc.yield"(%rounded) : (bf16) -> ()
      }) : (tensor<8x8xf32>) -> tensor<8x8xbf16>
      return
    }
    """

    value: ext.Operand[Any]


Around: TypeAlias = EpilogueOp | FragmentEpilogueOp | AttentionOp
"""Ops with an epilogue's body."""


@verify(
    EpilogueOp,
    "shape",
    "tc",
    "sums and out must be static and of one shape, or sums have twice the columns, got {sums} and "
    "{out}: an epilogue works on each element alone, or on a pair of columns",
    bad={"256x192xf16": "192x256xf16"},
)
def _(op: EpilogueOp) -> Broken:
    sums, out = op.sums.type, op.out.type
    if sums.has_static_shape and out.has_static_shape and sums.rank == out.rank:
        *rows, columns = out.shape
        if list(sums.shape) in ([*rows, columns], [*rows, 2 * columns]):
            return None
    return {"sums": sums, "out": out}


@verify(
    EpilogueOp,
    "gate-block",
    "tc",
    "gate_block must be 1 or 8, and divide the {columns} columns of a result of two sums, got "
    "{got}: gates and values alternate in whole blocks, such as those of which a thread of "
    "warpgroups has the same columns (PTX ISA 9.7.14.5)",
    bad={": (tensor<256x192xf32>)": "{gate_block = 8 : i64} : (tensor<256x192xf32>)"},
)
def _(op: EpilogueOp) -> Broken:
    if GATE_BLOCK not in op.attributes:
        return None
    got, (*_, columns) = integer(op, GATE_BLOCK), op.out.type.shape
    legal = op.gated and got in (1, ATOM_COLUMNS) and columns % got == 0
    return None if legal else {"columns": columns, "got": got}


@verify(
    EpilogueOp,
    "body",
    "tc",
    "the body must be one block of {count} of {want} that ends in tc.yield of {out}, got {got}",
    bad=(
        {'"tc.yield"(%rounded) : (f16)': '"tc.yield"(%relu) : (f32)'},
        {"256x192xf16": "256x96xf16"},
    ),
)
def _(op: EpilogueOp | FragmentEpilogueOp) -> Broken:
    want, out = (
        each.element_type if isinstance(each, ir.ShapedType) else each.element
        for each in (op.sums.type, op.out.type)
    )
    blocks = list(op.body)
    *rows, columns = op.out.type.shape
    count = 2 if list(op.sums.type.shape) == [*rows, 2 * columns] else 1
    types = [a.type for block in blocks for a in block.arguments]
    last = list(blocks[0])[-1:] if len(blocks) == 1 else []
    ends = [o.value.type for o in last if isinstance(o, YieldOp)]
    if (types, ends) == ([want] * count, [out]):
        return None
    names, yielded = (", ".join(map(str, each)) for each in (types, ends))
    got = f"{len(blocks)} blocks of arguments ({names}), yielding {yielded or 'nothing'}"
    words = "an argument" if count == 1 else "two arguments"
    return {"count": words, "want": want, "out": out, "got": got}


same_rules(
    FragmentEpilogueOp,
    EpilogueOp,
    {"body": {'"tc.yield"(%rounded) : (f16)': '"tc.yield"(%biased) : (f32)'}},
)


@verify(
    EpilogueOp,
    "scalar-ops",
    "tc",
    "the body must be made of tc.element, and of arith and math ops on numbers, got {got}: every "
    "thread computes them on the elements it holds",
    bad={"arith.addf": "arith.remf"},
)
def _(op: Around) -> Broken:
    for inner in [each for block in op.body for each in list(block)[:-1]]:
        name = inner.operation.name
        scalar = name in SCALAR_OPS or name.startswith("math.") or isinstance(inner, ElementOp)
        if not scalar or isinstance(inner.operation.results[0].type, ir.ShapedType | ir.IndexType):
            return {"got": name}
    return None


same_rules(FragmentEpilogueOp, EpilogueOp, {"scalar-ops": {"arith.addf": "arith.remf"}})


@verify(
    AttentionOp,
    "body",
    "tc",
    "the body must be empty, or one block of an f32 that ends in tc.yield of an f32, got {got}",
    bad=({"^bb0(%sum: f32)": "^bb0(%sum: f32, %x: f32)"}, {"(%masked) : (f32)": "(%kept) : (i1)"}),
)
def _(op: AttentionOp) -> Broken:
    got = [
        ([str(each.type) for each in block.arguments], _yielded(block)) for block in op.body.blocks
    ]
    return None if got in ([], [(["f32"], "f32")]) else {"got": got}


def _yielded(block: ir.Block) -> str:
    last = list(block)[-1:]
    return str(last[0].value.type) if last and isinstance(last[0], YieldOp) else "nothing"


same_rules(
    AttentionOp,
    EpilogueOp,
    {"scalar-ops": {"arith.select %kept, %sum, %none": "arith.remf %sum, %none"}},
)


def _around(op: ir.OpView) -> Around | None:
    """The epilogue op whose body contains `op`."""
    parent = op.operation.parent
    found = None if parent is None else parent.opview
    return found if isinstance(found, Around) else None


@verify(
    ElementOp,
    "parent",
    "tc",
    "expected an op in the body of tc.epilogue, got one in {got}: its map counts the "
    "dimensions of that result",
)
def _(op: ElementOp) -> Broken:
    return None if _around(op) else {"got": getattr(op.operation.parent, "name", "no op")}


@verify(
    ElementOp,
    "map",
    "tc",
    "map must go from the {rank} dimensions of the result to distinct ones of them, or 0, got "
    "{got}",
    bad={"(m, 0)": "(m + n)"},
)
def _(op: ElementOp) -> Broken:
    around, affine_map = _around(op), op.attributes["map"].value
    rank = around.rank if around else 0
    dims = [e.position for e in affine_map.results if isinstance(e, ir.AffineDimExpr)]
    rest = [e for e in affine_map.results if not isinstance(e, ir.AffineDimExpr)]
    zeros = all(isinstance(e, ir.AffineConstantExpr) and e.value == 0 for e in rest)
    loops = (affine_map.n_dims, affine_map.n_symbols) == (rank, 0)
    legal = loops and zeros and len(set(dims)) == len(dims)
    return None if legal else {"rank": rank, "got": affine_map}


@verify(
    ElementOp,
    "of-group",
    "tc",
    "of_group needs sums of a tc.grouped_matmul of contiguous rows, and a map without their "
    "dimension, got {got}: of masked groups a map takes the first dimension, (g, c, n) -> (g, n)",
)
def _(op: ElementOp) -> Broken:
    if not op.of_group:
        return None
    around = _around(op)
    product = around.grouped if isinstance(around, EpilogueOp) else None
    if product is None or product.masked:
        return {"got": "other sums" if product is None else "masked groups"}
    return {"got": op.attributes["map"]} if 0 in op.dims else None


@verify(
    ElementOp,
    "tensor",
    "tc",
    "tensor must have the shape {want} by its map, and the value its element, got {got} -> {value}",
    bad=({"256x1xf32": "128x1xf32"}, {"(m, 0)": "(n)"}),
    good={"(m, 0)": "(n)", "256x1xf32": "192xf32"},
)
def _(op: ElementOp) -> Broken:
    around = _around(op)
    got, value = op.tensor.type, op.value.type
    if isinstance(around, FragmentEpilogueOp):
        return None
    shape = around.shape if around else []
    want = [1 if d is None else shape[d] for d in op.dims]
    sizes = around.grouped.sizes if isinstance(around, EpilogueOp) and around.grouped else None
    if op.of_group and sizes is not None:
        want = [sizes.type.shape[0], *want]
    tensor = isinstance(got, ir.RankedTensorType)
    legal = tensor and want == list(got.shape) and got.element_type == value
    return None if legal else {"want": want, "got": got, "value": value}


@verify(
    ElementOp,
    "memref",
    "tc",
    "tensor beside a fragment must be a static, contiguous memref with a dimension for each result "
    "of the map, of extent 1 where that is 0, or a fragment in the same registers, and the value "
    "its element, got {got} -> {value}",
)
def _(op: ElementOp) -> Broken:
    around = _around(op)
    if not isinstance(around, FragmentEpilogueOp):
        return None
    got, value = op.tensor.type, op.value.type
    if isinstance(got, FragmentType) and got.element == value:
        out = around.out.type
        alike = (got.shape, got.operand, got.atom) == (out.shape, out.operand, out.atom)
        return None if alike else {"got": got, "value": value}
    if isinstance(got, ir.MemRefType) and _is_read_by(got, op.dims) and got.element_type == value:
        return None
    return {"got": got, "value": value}


@verify(
    YieldOp,
    "parent",
    "tc",
    "expected the last op in the body of tc.epilogue, got one in {got}",
)
def _(op: YieldOp) -> Broken:
    if _around(op) and list(op.operation.block)[-1] == op:
        return None
    return {"got": "the middle of it" if _around(op) else getattr(op.operation.parent, "name", "")}


# --- fragments ---------------------------------------------------------------------------------


@verify(
    FragmentEpilogueOp,
    "tails",
    "tc",
    "tails must be one of {legal}, got {got}",
    bad={'tails = "outer"': 'tails = "both"'},
    good={'tails = "outer"': 'tails = "outer inner"'},
)
def _(op: FragmentEpilogueOp) -> Broken:
    return one_of(op, "tails", TAILS)


@verify(
    FragmentEpilogueOp,
    "rank",
    "tc",
    "expected the row and the column of the tile's first element, with up to two dimensions of a "
    "batch before them, got {count} indices",
    bad={"%c, %m, %n)": "%c, %m)", "i32: 1, 2": "i32: 1, 1", "(!c, index, index)": "(!c, index)"},
)
def _(op: FragmentEpilogueOp) -> Broken:
    count = len(op.indices)
    return None if count in (2, 3, 4) else {"count": count}


@verify(
    FragmentEpilogueOp,
    "walk",
    "tc",
    "walk must be array<i64: y, x> of sizes of at least 1, beside an index along the walk and one "
    "of the column, got {walk} and {count} indices",
    bad={'"outer"': '"outer", walk = array<i64: 5>'},
    good={"m, n": "n, p, q, k", '"outer"': '"outer", walk = array<i64: 5, 7>'},
)
def _(op: FragmentEpilogueOp) -> Broken:
    if WALK not in op.attributes:
        return None
    count = len(op.indices)
    if not_arrays(op, walk=2) is None and count == 2 and min(integers(op, WALK)) >= 1:
        return None
    return {"walk": op.attributes[WALK], "count": count}


@verify(
    FragmentEpilogueOp,
    "fragments",
    "PTX ISA 9.7.14.5",
    "expected fragments of C of one shape and atom, or sums of twice the columns, got {sums} and "
    "{out}: a thread has the same elements of both",
    bad={"!c = !tc.fragment<array<i64: 128, 256>": "!c = !tc.fragment<array<i64: 32, 256>"},
    good={
        "!c = !tc.fragment<array<i64: 128, 256>": "!c = !tc.fragment<array<i64: 128, 512>",
        "^bb0(%sum: f32)": "^bb0(%sum: f32, %gate: f32)",
    },
)
def _(op: FragmentEpilogueOp) -> Broken:
    sums, out = op.sums.type, op.out.type
    rows, columns = out.shape
    alike = sums.atom == out.atom and list(sums.shape) in ([rows, columns], [rows, 2 * columns])
    return None if alike and sums.operand == out.operand == "C" else {"sums": sums, "out": out}


@verify(
    FragmentPartOp,
    "columns",
    "tc",
    "the result must be a fragment of C like {whole}, of whole atoms of 8 of its columns from a "
    "multiple of 8, got {columns} from {first}: a thread has pairs of each atom",
    bad={"array<i64: 128, 256>": "array<i64: 128, 64>"},
)
def _(op: FragmentPartOp) -> Broken:
    whole, columns, first = op.whole.type, op.columns.type, integer(op, "first")
    width = columns.shape[1]
    kind = (columns.shape[0], columns.element, columns.operand, columns.atom)
    alike = kind == (whole.shape[0], whole.element, whole.operand, whole.atom)
    inside = 0 <= first and first + width <= whole.shape[1]
    if alike and whole.operand == "C" and inside and first % 8 == width % 8 == 0:
        return None
    return {"whole": whole, "columns": columns, "first": first}


@verify(
    FetchFragmentOp,
    "tails",
    "tc",
    "tails must be one of {legal}, got {got}",
    bad={'tails = "outer"': 'tails = "rows"'},
    good={'tails = "outer"': 'tails = "outer inner"'},
)
def _(op: FetchFragmentOp) -> Broken:
    return one_of(op, "tails", TAILS)


@verify(
    FetchFragmentOp,
    "map",
    "tc",
    "map must go from the {rank} dimensions of the result, one for each index, to distinct ones of "
    "them, or 0, got {got}",
    bad={"affine_map<(": "affine_map<(b,", "n) -> (m,": "n) -> ("},
)
def _(op: FetchFragmentOp) -> Broken:
    got, rank = op.attributes["map"].value, op.out_rank
    dims = [dim for dim in op.dims if dim is not None]
    rest = [e for e in got.results if not isinstance(e, ir.AffineDimExpr)]
    zeros = all(isinstance(e, ir.AffineConstantExpr) and e.value == 0 for e in rest)
    legal = zeros and (got.n_dims, got.n_symbols) == (rank, 0) and len(set(dims)) == len(dims)
    return None if legal else {"rank": rank, "got": got}


@verify(
    FetchFragmentOp,
    "tensor",
    "tc",
    "tensor must be a static, contiguous memref with a dimension for each result of the map, of "
    "extent 1 where that is 0, and the result a fragment of C of its elements, f16, bf16 or f32, "
    "got {tensor} -> {fragment}",
    bad={"500x512xf16": "500x512xf32"},
)
def _(op: FetchFragmentOp) -> Broken:
    tensor, fragment = op.tensor.type, op.fragment.type
    alike = fragment.operand == "C" and fragment.element == tensor.element_type
    known = str(fragment.element) in ("f16", "bf16", "f32")
    if _is_read_by(tensor, op.dims) and alike and known:
        return None
    return {"tensor": tensor, "fragment": fragment}
