"""Block-scaled contractions."""

from collections.abc import Sequence
from dataclasses import dataclass

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integer, is_integer, string
from tcir.dialect.indexing import BATCH, Index, IndexedOperand, Indexing, K, M, N
from tcir.dialect.operation import Op
from tcir.dialect.ops.highlevel import OUT_LAYOUTS, RESULT_TYPES, k_part, out_layout
from tcir.dialect.rules import Broken, one_of, verify

SOURCE = "PTX ISA 9.7.16.10.7"

ELEMENT_BITS = {"f4E2M1FN": 4, "f6E2M3FN": 6, "f6E3M2FN": 6, "f8E4M3FN": 8, "f8E5M2": 8}
"""Element types of block-scaled operands, and their bits in memory."""
SCALE_TYPES = {"f8E8M0FNU": "ue8m0", "f8E4M3FN": "ue4m3"}
"""Types of block scales, and their names in PTX. Bit 7 of ue4m3 is ignored."""
SCALE_LAYOUTS = ("row_major", "blocked_128x4")
BLOCK_ROWS, BLOCK_SCALES, BLOCK_BYTES = 128, 4, 512
"""``blocked_128x4``: rows and scales of a block, and its bytes."""
ZERO_PADDING = "zero_padding"
"""Unit attribute of ``tc.block_scaled_matmul``: in blocks, scales beyond K are zeros."""


@dataclass(frozen=True)
class ScaledMmaKind:
    """A block-scaled ``.kind`` of ``tcgen05.mma`` and its operand types."""

    name: str
    elements: tuple[str, ...]
    scales: tuple[str, ...]
    block: int

    def __str__(self) -> str:
        elements = "any fp8, fp6 and fp4 mixed" if len(self.elements) > 1 else self.elements[0]
        return f"{elements} with {' or '.join(self.scales)}, block {self.block} ({self.name})"


KINDS = (
    ScaledMmaKind("mxf8f6f4", tuple(ELEMENT_BITS), ("f8E8M0FNU",), 32),
    ScaledMmaKind("mxf4", ("f4E2M1FN",), ("f8E8M0FNU",), 32),
    ScaledMmaKind("mxf4nvf4", ("f4E2M1FN",), ("f8E8M0FNU",), 32),
    ScaledMmaKind("mxf4nvf4", ("f4E2M1FN",), ("f8E4M3FN", "f8E8M0FNU"), 16),
)
"""All block-scaled kinds (PTX ISA 9.7.16.10.7, tables 56 and 57)."""


def kinds_of(a: str, b: str, a_scale: str, b_scale: str, block: int) -> list[str]:
    """Names of the tcgen05.mma kinds that multiply operands of these types; empty if the hardware
    has no such kind."""
    return [
        kind.name
        for kind in KINDS
        if a in kind.elements
        and b in kind.elements
        and a_scale == b_scale
        and a_scale in kind.scales
        and block == kind.block
    ]


def packed_kind(kinds: Sequence[str]) -> str:
    """The kind, out of `kinds`, whose operands take the least shared memory. Packed fp4 takes half
    as much as padded fp4."""
    return min(kinds, key=lambda name: (name == "mxf8f6f4", len(name)))


def scales_shape(shape: list[int], block: int, layout: str) -> list[int]:
    """Shape of the scales of an operand ``[..., rows, K]``. With row-major scales the operand may
    also be ``[..., K]``."""
    *outer, k = shape
    scales = k // block
    if layout == "row_major":
        return [*outer, scales]
    rows = outer.pop()
    return [*outer, -(-rows // BLOCK_ROWS), -(-scales // BLOCK_SCALES), BLOCK_BYTES]


class BlockScaledMatmulOp(
    Op,
    name="block_scaled_matmul",
    arithmetic="products",
    lowered_by=("tile-gemv-padded-n", "tile-gemm", "convert-to-simt"),
):
    """Product of block-scaled matrices, or of a matrix and a vector, K innermost in both.

    ``out[m,n] = alpha * sum_k (a[m,k] * a_scales[m, k / block]) * (b[n,k] * b_scales[n, k /
    block])``: the sum is computed in f32. If there is a global scale (NVFP4 checkpoints have one),
    the sum is multiplied by ``alpha``, which is ``a_global * b_global`` rounded to f32. The result
    is rounded once (RNE) to the element type of ``out``.

    ``a`` is ``[M,K]`` or ``[L,M,K]``. ``b`` is ``[N,K]`` or ``[L,N,K]``, and ``out`` ``[M,N]`` or
    ``[L,M,N]``; or ``b`` has one dimension less, ``[K]`` or ``[L,K]``, and so has ``out``. With
    ``out_layout = "nm"`` ``out`` is ``[N,M]`` or ``[L,N,M]``. With ``k_part`` the sums stay in
    parts, as in ``tc.matmul``: ``out`` is f32, and there are no global scales.
    In the scale layout ``"row_major"`` the dimension k has one scale per ``block`` values;
    ``"blocked_128x4"`` is the layout the tensor core reads, ``[ceil(rows / 128), ceil(K / block
    / 4), 512]`` after the batch (a vector has one row): scale ``s`` of row ``r`` is byte ``(r % 32)
    * 16 + (r % 128) / 32 * 4 + s % 4`` of its block; padding is not read. With the unit attribute
    ``zero_padding``, scales beyond K in the 128x4 blocks are zeros, and a tiling may read them. A
    scale of type f8E4M3FN is ue4m3: its sign bit is ignored. A NaN scale makes every element of
    ``out`` that depends on it NaN.

    In memory a byte holds two f4E2M1FN, the even k in its low four bits, and three bytes hold four
    fp6, little-endian. PTX ISA 9.7.16.10.7.
    """

    example = """
    func.func @example(%a: tensor<7168x16384xf4E2M1FN>, %sa: tensor<7168x1024xf8E4M3FN>,
        %b: tensor<16384xf4E2M1FN>, %sb: tensor<1024xf8E4M3FN>, %ga: tensor<f32>,
        %gb: tensor<f32>) {
      %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb, %ga, %gb) {block = 16 : i64,
          a_scale_layout = "row_major", b_scale_layout = "row_major",
          operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>}
          : (tensor<7168x16384xf4E2M1FN>, tensor<7168x1024xf8E4M3FN>, tensor<16384xf4E2M1FN>,
             tensor<1024xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<7168xf16>
      return
    }
    """

    a: ext.Operand[ir.RankedTensorType]
    a_scales: ext.Operand[ir.RankedTensorType]
    b: ext.Operand[ir.RankedTensorType]
    b_scales: ext.Operand[ir.RankedTensorType]
    a_global: ext.Operand[ir.RankedTensorType] | None
    b_global: ext.Operand[ir.RankedTensorType] | None
    block: ir.IntegerAttr
    a_scale_layout: ir.StringAttr
    b_scale_layout: ir.StringAttr
    out: ext.Result[ir.RankedTensorType]

    def indexing(self) -> Indexing:
        """Factors of the op's products and the loops of a matrix product that index them; `b` may
        be a vector."""
        block, batch = integer(self, "block"), self.a.type.rank - 2
        factors = []
        for value, scale, loop, layout in (
            (self.a, self.a_scales, M, string(self, "a_scale_layout")),
            (self.b, self.b_scales, N, string(self, "b_scale_layout")),
        ):
            rows: list[Index] = [(BATCH, 1)] * batch + [(loop, 1)] * (value.type.rank - batch - 1)
            factors.append(IndexedOperand(value, (*rows, (K, 1))))
            shape = (*value.type.shape[:-1], value.type.shape[-1] // block)
            in_rows = None if layout == "row_major" else shape
            factors.append(IndexedOperand(scale, (*rows, (K, block)), in_rows, batch))
        return Indexing(tuple(factors), frozenset((BATCH, M, N)))


def _element(value: ir.Value) -> str:
    return str(value.type.element_type)


def _shape(value: ir.Value) -> list[int]:
    return list(value.type.shape)


def _globals(op: BlockScaledMatmulOp) -> list[ir.Value]:
    return [value for value in (op.a_global, op.b_global) if value is not None]


def operand_scales_shape(op: BlockScaledMatmulOp, side: str, layout: str) -> list[int]:
    """Shape of the scales of operand ``side`` ("a" or "b") in a scale layout. A vector has one
    row."""
    shape = _shape(getattr(op, side))
    if layout != "row_major" and side == "b" and len(shape) < op.a.type.rank:
        shape.insert(-1, 1)
    return scales_shape(shape, integer(op, "block"), layout)


@verify(
    BlockScaledMatmulOp,
    "rank",
    "tc",
    "a must be [M,K] or [L,M,K] and b [N,K] or [L,N,K], or of one dimension less for vectors, "
    "got ranks {a} and {b}",
    bad={"7168x16384xf4E2M1FN": "3x7168x16384xf4E2M1FN"},
)
def _(op: BlockScaledMatmulOp) -> Broken:
    a, b = op.a.type.rank, op.b.type.rank
    return None if a in (2, 3) and b in (a, a - 1) else {"a": a, "b": b}


@verify(
    BlockScaledMatmulOp,
    "out-layout",
    "tc",
    'out_layout must be "mn" or "nm", or left out, and with a vector b left out, got {got}',
    bad={'b_scale_layout = "row_major",': 'b_scale_layout = "row_major", out_layout = "nm",'},
)
def _(op: BlockScaledMatmulOp) -> Broken:
    return one_of(op, "out_layout", OUT_LAYOUTS if op.b.type.rank == op.a.type.rank else ())


@verify(
    BlockScaledMatmulOp,
    "k-part",
    "tc",
    "k_part must be an integer of at least 1 with out of f32 and without global scales, or left "
    "out, got {got} with out of {out} and {count} global scales: parts are scaled and "
    "rounded after they are summed",
)
def _(op: BlockScaledMatmulOp) -> Broken:
    if "k_part" not in op.attributes:
        return None
    number = is_integer(op, "k_part") and integer(op, "k_part") > 0
    if number and _element(op.out) == "f32" and not _globals(op):
        return None
    count = len(_globals(op))
    return {"got": op.attributes["k_part"], "out": _element(op.out), "count": count}


@verify(
    BlockScaledMatmulOp,
    "static",
    "tc",
    "shapes must be static, got {got}: tensor maps and the grid are fixed at compile time",
    bad={"7168x16384xf4E2M1FN": "?x16384xf4E2M1FN"},
)
def _(op: BlockScaledMatmulOp) -> Broken:
    got = next((v.type for v in (*op.operands, op.out) if not v.type.has_static_shape), None)
    return None if got is None else {"got": got}


@verify(
    BlockScaledMatmulOp,
    "scale-layouts",
    "tc",
    'a_scale_layout and b_scale_layout must be "row_major" or "blocked_128x4", got "{a}" and "{b}"',
    bad={'a_scale_layout = "row_major"': 'a_scale_layout = "blocked"'},
)
def _(op: BlockScaledMatmulOp) -> Broken:
    a, b = string(op, "a_scale_layout"), string(op, "b_scale_layout")
    return None if a in SCALE_LAYOUTS and b in SCALE_LAYOUTS else {"a": a, "b": b}


@verify(
    BlockScaledMatmulOp,
    "elements",
    SOURCE,
    "a and b must be of {legal}, got {a} and {b}: the block-scaled kinds of tcgen05.mma multiply "
    "no other; quantise the operand first",
    bad={"7168x16384xf4E2M1FN": "7168x16384xf16"},
)
def _(op: BlockScaledMatmulOp) -> Broken:
    a, b = _element(op.a), _element(op.b)
    if a in ELEMENT_BITS and b in ELEMENT_BITS:
        return None
    return {"legal": ", ".join(ELEMENT_BITS), "a": a, "b": b}


@verify(
    BlockScaledMatmulOp,
    "scale-types",
    SOURCE,
    "scales must both be f8E8M0FNU (ue8m0) or both f8E4M3FN (ue4m3), got {a} and {b}: the "
    "instruction descriptor has one scale type for both operands",
    bad={"7168x1024xf8E4M3FN": "7168x1024xf8E8M0FNU"},
)
def _(op: BlockScaledMatmulOp) -> Broken:
    a, b = _element(op.a_scales), _element(op.b_scales)
    return None if a == b and a in SCALE_TYPES else {"a": a, "b": b}


@verify(
    BlockScaledMatmulOp,
    "block",
    SOURCE,
    "block must be 16 or 32 values of k to a scale, got {got}: the scale vector sizes of "
    "tcgen05.mma",
    bad={"block = 16": "block = 64"},
)
def _(op: BlockScaledMatmulOp) -> Broken:
    got = integer(op, "block")
    return None if got in (16, 32) else {"got": got}


@verify(
    BlockScaledMatmulOp,
    "ue4m3-block",
    SOURCE,
    "scales of type f8E4M3FN (ue4m3) must have block 16, got {got}: block 32 takes f8E8M0FNU "
    "(ue8m0) only; repeat each scale for two blocks of 16",
    bad={"block = 16": "block = 32"},
)
def _(op: BlockScaledMatmulOp) -> Broken:
    got = integer(op, "block")
    return {"got": got} if got != 16 and _element(op.a_scales) == "f8E4M3FN" else None


@verify(
    BlockScaledMatmulOp,
    "kind",
    SOURCE,
    "no kind of tcgen05.mma multiplies {a} by {b} with {scale} scales, block {block}; there are: "
    "{kinds}",
    bad={"tensor<16384xf4E2M1FN>": "tensor<16384xf8E4M3FN>"},
)
def _(op: BlockScaledMatmulOp) -> Broken:
    a, b, scale = _element(op.a), _element(op.b), _element(op.a_scales)
    block = integer(op, "block")
    if kinds_of(a, b, scale, _element(op.b_scales), block):
        return None
    kinds = "; ".join(map(str, KINDS))
    return {"a": a, "b": b, "scale": scale, "block": block, "kinds": kinds}


@verify(
    BlockScaledMatmulOp,
    "k",
    "tc",
    "a and b must have the same K, a multiple of the block {block}, got {a} and {b}: a scale "
    "belongs to {block} values; pad both with zeros",
    bad={"16384xf4E2M1FN": "16380xf4E2M1FN", "7168x16384xf4E2M1FN": "7168x16380xf4E2M1FN"},
)
def _(op: BlockScaledMatmulOp) -> Broken:
    a, b, block = _shape(op.a)[-1], _shape(op.b)[-1], integer(op, "block")
    return None if a == b and a and a % block == 0 else {"a": a, "b": b, "block": block}


@verify(
    BlockScaledMatmulOp,
    "scale-shapes",
    "tc",
    "{name}_scales must be {want} for {name} {operand} with block {block}, {layout}, got {got}",
    bad=(
        {"7168x1024xf8E4M3FN": "7168x512xf8E4M3FN"},
        {'a_scale_layout = "row_major"': 'a_scale_layout = "blocked_128x4"'},
    ),
)
def _(op: BlockScaledMatmulOp) -> Broken:
    for name in "ab":
        layout = string(op, f"{name}_scale_layout")
        want = operand_scales_shape(op, name, layout)
        got = _shape(getattr(op, f"{name}_scales"))
        if got != want:
            values = {"want": want, "got": got, "layout": layout, "block": integer(op, "block")}
            return {"name": name, "operand": _shape(getattr(op, name)), **values}
    return None


@verify(
    BlockScaledMatmulOp,
    "global-scales",
    "tc",
    "a_global and b_global must be tensor<f32>, got {got}: one factor for a whole operand",
    bad={
        "%ga: tensor<f32>": "%ga: tensor<1xf32>",
        "1024xf8E4M3FN>, tensor<f32>, tensor<f32>": "1024xf8E4M3FN>, tensor<1xf32>, tensor<f32>",
    },
)
def _(op: BlockScaledMatmulOp) -> Broken:
    got = next((v.type for v in _globals(op) if str(v.type) != "tensor<f32>"), None)
    return None if got is None else {"got": got}


@verify(
    BlockScaledMatmulOp,
    "out",
    "tc",
    "out must be {want} of f32, f16 or bf16 for these operands, got {got} of {element} (batches of "
    "a and b: {batches})",
    bad={"7168xf16": "7168x1xf16"},
)
def _(op: BlockScaledMatmulOp) -> Broken:
    (*batch, m, _), b = _shape(op.a), _shape(op.b)
    other = b[: len(batch)]
    rows_columns = [m, *b[len(batch) : -1]]
    part = k_part(op)
    parts = [] if part is None else [-(-_shape(op.a)[-1] // part)]
    want = [*parts, *batch, *(rows_columns if out_layout(op) == "mn" else rows_columns[::-1])]
    got = _shape(op.out)
    if got == want and batch == other and _element(op.out) in RESULT_TYPES:
        return None
    batches = f"{batch} and {other}"
    return {"want": want, "got": got, "element": _element(op.out), "batches": batches}


class ScalesToBlockedOp(Op, name="scales_to_blocked", lowered_by=("convert-to-simt",)):
    """Reorders row-major block scales to the layout that the tensor core reads; padding is 0.

    ``scales`` is ``[..., rows, n]`` and ``out`` ``[..., ceil(rows / 128), ceil(n / 4), 512]``; or
    ``scales`` is ``[..., n]``, the scales of a single row, and ``out`` ``[..., 1, ceil(n / 4),
    512]``. Scale ``s`` of row ``r`` is byte ``(r % 32) * 16 + (r % 128) / 32 * 4 + s % 4`` of its
    block. PTX ISA 9.7.16.10.7.
    """

    example = """
    func.func @example(%s: tensor<7168x1024xf8E4M3FN>) {
      %b = "tc.scales_to_blocked"(%s)
          : (tensor<7168x1024xf8E4M3FN>) -> tensor<56x256x512xf8E4M3FN>
      return
    }
    """

    scales: ext.Operand[ir.RankedTensorType]
    out: ext.Result[ir.RankedTensorType]


@verify(
    ScalesToBlockedOp,
    "types",
    SOURCE,
    "scales must be static and of f8E8M0FNU or f8E4M3FN, and out of the same type, got {scales} "
    "and {out}",
    bad={"56x256x512xf8E4M3FN": "56x256x512xf8E8M0FNU"},
)
def _(op: ScalesToBlockedOp) -> Broken:
    static = op.scales.type.has_static_shape and op.out.type.has_static_shape
    kind = _element(op.scales)
    if static and kind == _element(op.out) and kind in SCALE_TYPES and op.scales.type.rank:
        return None
    return {"scales": op.scales.type, "out": op.out.type}


@verify(
    ScalesToBlockedOp,
    "out-shape",
    "tc",
    "out must be {matrix}, or {vector} where a row of scales is all that an operand has, got {got}",
    bad={"56x256x512xf8E4M3FN": "56x256x256xf8E4M3FN"},
)
def _(op: ScalesToBlockedOp) -> Broken:
    shape, got = _shape(op.scales), _shape(op.out)
    matrix = scales_shape(shape, 1, "blocked_128x4") if len(shape) > 1 else None
    vector = [*shape[:-1], 1, -(-shape[-1] // BLOCK_SCALES), BLOCK_BYTES]
    if got in (matrix, vector):
        return None
    return {"matrix": matrix, "vector": vector, "got": got}
