"""Block quantisation: of tensors, of register tiles and fragments, and stores of scale factors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integer, string
from tcir.dialect.limits import QUARTER_LANES
from tcir.dialect.operation import Op
from tcir.dialect.ops.block_scaled import (
    BLOCK_BYTES,
    BLOCK_ROWS,
    BLOCK_SCALES,
    SCALE_LAYOUTS,
    scales_shape,
)
from tcir.dialect.rules import Broken, same_rules, verify
from tcir.dialect.warp_types import FragmentType


@dataclass(frozen=True)
class QuantisedFormat:
    """A format with block scales to which a kernel quantises.

    block: number of elements that share a scale
    bits: bits of an element
    largest: the largest value of an element
    exponent: exponent of the largest element
    rounding: rounding of ue8m0 scales, one of `ROUNDINGS`
    """

    name: str
    block: int
    bits: int
    largest: float
    exponent: int
    rounding: str = "floor"


BLOCK_FORMATS = {
    ("f4E2M1FN", "f8E4M3FN"): QuantisedFormat("NVFP4", 16, 4, 6.0, 2),
    ("f4E2M1FN", "f8E8M0FNU"): QuantisedFormat("MXFP4", 32, 4, 6.0, 2),
    ("f8E4M3FN", "f8E8M0FNU"): QuantisedFormat("MXFP8", 32, 8, 448.0, 8),
    ("f8E5M2", "f8E8M0FNU"): QuantisedFormat("MXFP8", 32, 8, 57344.0, 15),
}
"""Formats by element types of codes and scales."""
ROUNDINGS = ("floor", "rceil")
"""Roundings of ue8m0 scales: down, the largest element saturates; or up where it would (cuBLAS)."""
LARGEST_SCALE = 448.0
"""Largest ue4m3 scale."""
SMALLEST_SCALE = 2.0**-9
"""Smallest non-zero ue4m3 scale: the minimum for a block of NVFP4 that is not all zeros."""
SCALED_COLUMNS = 32
"""Columns of a row that share a scale of MXFP8."""
WORD_COLUMNS = 2 * SCALED_COLUMNS
"""Columns whose scales, for its two rows, a thread has in one register."""
_PAIRS = ", ".join(f"{codes} with {scales}" for codes, scales in BLOCK_FORMATS)


class QuantiseBlocksOp(
    Op,
    name="quantise_blocks",
    arithmetic="rounded",
    block_maxima=True,
    lowered_by=("tile-gemm", "convert-to-simt"),
):
    """Quantises rows in blocks of 16 (NVFP4) or 32 (MXFP4, MXFP8) values. The results are an
    element for every value and a scale for every block, in the layout in which
    ``tc.block_scaled_matmul`` reads them.

    Let y be values * norm, rounded to f32 (only NVFP4 has ``norm``, the reciprocal of the global
    scale by which the reader multiplies), and let amax be the largest magnitude of a block of y.
    Then:

    * an f8E4M3FN scale (ue4m3) is amax / 6, rounded to nearest even, at most 448, and at least 2^-9
      if amax is not 0;
    * an f8E8M0FNU scale (ue8m0) is 2^(floor(log2(amax)) - e), at least 2^-127, where 2^e is the
      largest power of two of the element type (OCP MX 1.0, 6.3). With ``scale_rounding = "rceil"``
      the scale is twice as large if amax / scale would be larger than the largest element, so that
      nothing saturates (cuBLAS; ``cvt.rp.ue8m0x2`` of amax / largest, PTX ISA 9.7.9.21);
    * an element is y divided by the scale as stored, rounded to nearest even, and at most the
      largest number of its type (``cvt.rn.satfinite``, PTX ISA 9.7.9.21).

    A block of zeros has scale code 0 and elements 0 with the signs of y. A block with a NaN or an
    infinity has the scale NaN and codes 0. A row consists of whole blocks; the number of rows is
    arbitrary. ``scales`` is in blocks of 128 rows x 4 scales (``blocked_128x4``), whose padding
    is 0; or, if it has the rank of ``values``, it has a row of scales for each row.
    """

    example = """
    func.func @example(%y: tensor<256x512xf32>, %norm: tensor<f32>) {
      %q:2 = "tc.quantise_blocks"(%y, %norm) {operandSegmentSizes = array<i32: 1, 1>}
          : (tensor<256x512xf32>, tensor<f32>)
          -> (tensor<256x512xf4E2M1FN>, tensor<2x8x512xf8E4M3FN>)
      return
    }
    """

    values: ext.Operand[ir.RankedTensorType]
    norm: ext.Operand[ir.RankedTensorType] | None
    codes: ext.Result[ir.RankedTensorType]
    scales: ext.Result[ir.RankedTensorType]

    @property
    def format(self) -> QuantisedFormat:
        """Block format of the result."""
        return rounded_format(self, BLOCK_FORMATS[_element(self.codes), _element(self.scales)])

    @property
    def row_major(self) -> bool:
        """Whether the scales are row-major instead of in 128x4 blocks."""
        return bool(self.scales.type.rank == self.values.type.rank)


class QuantiseRowsOp(Op, name="quantise_rows", issued_by="warp", role="epilogue"):
    """Quantises the rows of a register tile in blocks, as ``tc.quantise_blocks`` does.

    ``values`` is ``vector<32 x C x f32>``; each thread holds one row, so it holds whole blocks.
    ``codes`` has C columns of fp8, or C / 2 columns of i8, each of which holds two f4E2M1FN, the
    first in the low half. ``scales`` has C / 16 (f8E4M3FN) or C / 32 (f8E8M0FNU) columns: 1, 2 or
    4. Conversions: PTX ISA 9.7.9.21.
    """

    example = """
    func.func @example(%y: vector<32x64xf32>) {
      %q:2 = "tc.quantise_rows"(%y)
          : (vector<32x64xf32>) -> (vector<32x32xi8>, vector<32x4xf8E4M3FN>)
      return
    }
    """

    values: ext.Operand[ir.VectorType]
    codes: ext.Result[ir.VectorType]
    scales: ext.Result[ir.VectorType]

    @property
    def elements(self) -> str:
        """The element type of the codes."""
        return "f4E2M1FN" if _element(self.codes) == "i8" else _element(self.codes)

    @property
    def format(self) -> QuantisedFormat:
        """Block format of the result."""
        return rounded_format(self, BLOCK_FORMATS[self.elements, _element(self.scales)])


class StoreScalesOp(Op, name="store_scales", issued_by="warp", role="epilogue", stores="tensor"):
    """Stores the scales of 32 rows to blocks of 128 rows x 4 scales in global memory.

    ``tc.cp_scales`` reads them from these blocks (PTX ISA 9.7.16.10.7).

    ``value`` is ``vector<32 x S x T>``, S = 1, 2 or 4. ``indices`` are the number of the matrix (in
    a batch), the first row (a multiple of 32), and the first scale (a multiple of S). Scale s
    of row r is at ``r % 32 * 16 + r % 128 / 32 * 4 + s % 4`` of block ``[r / 128, s / 4]``.
    Elements outside ``tensor`` are not written; rows from number ``rows`` on and scales from number
    ``scales`` on are padding, for which zeros are stored.
    """

    example = """
    func.func @example(%s: vector<32x4xf8E4M3FN>, %out: memref<2x8x512xf8E4M3FN>, %m: index,
                       %n: index) {
      "tc.store_scales"(%s, %out, %m, %n) {rows = 200 : i64, scales = 30 : i64,
          operandSegmentSizes = array<i32: 1, 1, 2>}
          : (vector<32x4xf8E4M3FN>, memref<2x8x512xf8E4M3FN>, index, index) -> ()
      return
    }
    """
    form = "{value} -> {tensor}[{indices}]"

    value: ext.Operand[ir.VectorType]
    tensor: ext.Operand[ir.MemRefType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    rows: ir.IntegerAttr
    scales: ir.IntegerAttr


class QuantiseFragmentOp(Op, name="quantise_fragment", role="consumer"):
    """Quantises an accumulator in blocks of 32 columns to MXFP8, as ``tc.quantise_blocks`` does.

    ``scales`` has for each element the scale of its block, so it is distributed like the values and
    the codes; a thread keeps one scale for its 8 elements of a block. Four threads share a row of a
    block and exchange their largest magnitudes (``shfl.sync.bfly``, PTX ISA 9.7.9.6; conversions:
    9.7.9.21). FP4 is not supported here: it needs threads that hold whole rows
    (``tc.quantise_rows``).
    """

    example = """
    !c = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k16.f16">
    !q = !tc.fragment<array<i64: 128, 256>, f8E4M3FN, "C", "mma.m16n8k16.f16">
    !s = !tc.fragment<array<i64: 128, 256>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
    func.func @example(%c: !c) {
      %codes, %scales = "tc.quantise_fragment"(%c) : (!c) -> (!q, !s)
      return
    }
    """

    values: ext.Operand[FragmentType]
    codes: ext.Result[FragmentType]
    scales: ext.Result[FragmentType]

    @property
    def format(self) -> QuantisedFormat:
        """Block format of the result."""
        pair = str(self.codes.type.element), str(self.scales.type.element)
        return rounded_format(self, BLOCK_FORMATS[pair])


class StoreFragmentScalesOp(Op, name="store_fragment_scales", role="consumer", stores="tensor"):
    """Stores the scale of each block of 32 columns of a fragment that ``tc.quantise_fragment``
    made.

    The indices are those of the tile's first element: the number of the matrix (in a batch), the
    row, and the column, a multiple of 32. A tensor with as many dimensions as there are indices has
    the scale of row r and column c at ``[r, c / 32]``; a tensor with one dimension more has blocks
    of 128 rows x 4 scales in the order of `tc.store_scales`. In these blocks, rows from number
    ``rows`` on and scales from number ``scales`` on are padding, for which zeros are stored. Scales
    outside ``tensor`` are not written. Four threads share a row, and one of them stores its scales
    (PTX ISA 9.7.9.12).
    """

    example = """
    !s = !tc.fragment<array<i64: 128, 256>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
    func.func @example(%s: !s, %out: memref<2x4x512xf8E8M0FNU>, %m: index, %n: index) {
      "tc.store_fragment_scales"(%s, %out, %m, %n) {rows = 200 : i64, scales = 15 : i64,
          operandSegmentSizes = array<i32: 1, 1, 2>}
          : (!s, memref<2x4x512xf8E8M0FNU>, index, index) -> ()
      return
    }
    """

    fragment: ext.Operand[FragmentType]
    tensor: ext.Operand[ir.MemRefType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    rows: ir.IntegerAttr
    scales: ir.IntegerAttr

    @property
    def row_major(self) -> bool:
        """Whether the scales are row-major instead of in 128x4 blocks."""
        return bool(self.tensor.type.rank == len(self.indices))


def scale_rounding(op: ir.OpView) -> str:
    """Rounding of an op's ue8m0 scales; the default is "floor"."""
    return string(op, "scale_rounding") if "scale_rounding" in op.attributes else ROUNDINGS[0]


def rounded_format(op: ir.OpView, form: QuantisedFormat) -> QuantisedFormat:
    """The block format `form` with the rounding that the attribute of an op names."""
    return replace(form, rounding=scale_rounding(op))


def rounding_problem(op: ir.OpView) -> Broken:
    """Values for the error message if an op names an unknown rounding of ue8m0 scales; else
    None."""
    if "scale_rounding" not in op.attributes:
        return None
    got = op.attributes["scale_rounding"]
    return None if isinstance(got, ir.StringAttr) and got.value in ROUNDINGS else {"got": got}


def _element(value: ir.Value) -> str:
    return str(value.type.element_type)


@verify(
    QuantiseBlocksOp,
    "types",
    "OCP MX 1.0; PTX ISA 9.7.16.10.7",
    f"values must be static, of f32 and rank 2 or more, codes and scales {_PAIRS}, got {{values}} "
    "to {codes} with {scales}: what tcgen05.mma.block_scale multiplies",
    bad=({"256x512xf32": "256x512xf16"}, {"256x512xf4E2M1FN": "256x512xf8E5M2"}),
)
def _(op: QuantiseBlocksOp) -> Broken:
    values, codes, scales = (v.type for v in (op.values, op.codes, op.scales))
    static = all(each.has_static_shape for each in (values, codes, scales))
    pair = str(codes.element_type), str(scales.element_type)
    if static and values.rank >= 2 and _element(op.values) == "f32" and pair in BLOCK_FORMATS:
        return None
    return {"values": values, "codes": codes, "scales": scales}


@verify(
    QuantiseBlocksOp,
    "norm",
    "OCP MX 1.0",
    "norm must be a tensor<f32>, and with ue8m0 scales left out, got {got}: MX formats have block "
    "scales only",
    bad=({"2x8x512xf8E4M3FN": "1x1x512xf8E8M0FNU"}, {"f32": "1xf32"}),
)
def _(op: QuantiseBlocksOp) -> Broken:
    if op.norm is None:
        return None
    legal = str(op.norm.type) == "tensor<f32>" and _element(op.scales) == "f8E4M3FN"
    return None if legal else {"got": op.norm.type}


@verify(
    QuantiseBlocksOp,
    "scale-rounding",
    "OCP MX 1.0, 6.3",
    'scale_rounding must be "floor" or "rceil", or left out for floor, and with f8E4M3FN scales, '
    "which are rounded to nearest even, left out, got {got} with {scales}",
    bad=(
        {
            "%y, %norm) {operandSegmentSizes = array<i32: 1, 1>}": (
                '%y) {scale_rounding = "even", operandSegmentSizes = array<i32: 1, 0>}'
            ),
            "256x512xf32>, tensor<f32>)": "256x512xf32>)",
            "256x512xf4E2M1FN": "256x512xf8E4M3FN",
            "2x8x512xf8E4M3FN": "2x4x512xf8E8M0FNU",
        },
        {"%norm) {": '%norm) {scale_rounding = "rceil",'},
    ),
    good={
        "%y, %norm) {operandSegmentSizes = array<i32: 1, 1>}": (
            '%y) {scale_rounding = "rceil", operandSegmentSizes = array<i32: 1, 0>}'
        ),
        "256x512xf32>, tensor<f32>)": "256x512xf32>)",
        "256x512xf4E2M1FN": "256x512xf8E4M3FN",
        "2x8x512xf8E4M3FN": "2x4x512xf8E8M0FNU",
    },
)
def _(op: QuantiseBlocksOp | QuantiseRowsOp) -> Broken:
    if "scale_rounding" not in op.attributes:
        return None
    got, scales = op.attributes["scale_rounding"], _element(op.scales)
    known = rounding_problem(op) is None
    return None if known and scales == "f8E8M0FNU" else {"got": got, "scales": scales}


same_rules(
    QuantiseRowsOp,
    QuantiseBlocksOp,
    {
        "scale-rounding": {
            "%y)": "%y) {scale_rounding = 1 : i64}",
            "32x4xf8E4M3FN": "32x1xf8E8M0FNU",
        }
    },
    {
        "scale-rounding": {
            "%y)": '%y) {scale_rounding = "floor"}',
            "32x32xi8": "32x32xf8E5M2",
            "32x4xf8E4M3FN": "32x1xf8E8M0FNU",
            "32x64xf32": "32x32xf32",
        }
    },
)


@verify(
    QuantiseBlocksOp,
    "shapes",
    "tc",
    "codes must have the shape of values, {values}, whose rows are whole blocks of {block}, and "
    "scales then {want}, or {rows} row-major, got {codes} and {scales}; pad the rows with zeros",
    bad=({"256x512xf4E2M1FN": "256x520xf4E2M1FN"}, {"2x8x512xf8E4M3FN": "32x256xf8E4M3FN"}),
)
def _(op: QuantiseBlocksOp) -> Broken:
    values, codes, scales = (list(v.type.shape) for v in (op.values, op.codes, op.scales))
    block = op.format.block
    rows, want = (scales_shape(values, block, layout) for layout in SCALE_LAYOUTS)
    if codes == values and values[-1] % block == 0 and scales in (rows, want):
        return None
    return {
        "values": values,
        "block": block,
        "want": want,
        "rows": rows,
        "codes": codes,
        "scales": scales,
    }


@verify(
    QuantiseRowsOp,
    "types",
    "PTX ISA 9.7.16.8",
    "values must be vector<32 x columns x f32> (one row per thread of a warp), codes and scales "
    f"{_PAIRS}, f4E2M1FN as i8, got {{values}} to {{codes}} with {{scales}}",
    bad={"32x64xf32": "16x64xf32"},
    good={"32x32xi8": "32x32xf8E5M2", "32x4xf8E4M3FN": "32x1xf8E8M0FNU", "32x64xf32": "32x32xf32"},
)
def _(op: QuantiseRowsOp) -> Broken:
    values, codes, scales = (v.type for v in (op.values, op.codes, op.scales))
    tiles = all(v.rank == 2 and v.shape[0] == QUARTER_LANES for v in (values, codes, scales))
    pair = op.elements, str(scales.element_type)
    packed = str(codes.element_type) != "f4E2M1FN"
    if tiles and packed and str(values.element_type) == "f32" and pair in BLOCK_FORMATS:
        return None
    return {"values": values, "codes": codes, "scales": scales}


@verify(
    QuantiseRowsOp,
    "columns",
    "tc",
    "of {columns} columns of values codes must have {codes} and scales {scales}, which must be 1, "
    "2 or 4 (bytes of a register), got {got}",
    bad=({"32x64xf32": "32x48xf32"}, {"32x64xf32": "32x32xf32", "32x4xf8E4M3FN": "32x2xf8E4M3FN"}),
)
def _(op: QuantiseRowsOp) -> Broken:
    columns, form = op.values.type.shape[1], op.format
    got = [op.codes.type.shape[1], op.scales.type.shape[1]]
    packed = columns // 2 if form.bits == 4 else columns
    scales = columns // form.block
    if got == [packed, scales] and scales in (1, 2, 4) and columns % form.block == 0:
        return None
    return {"columns": columns, "codes": packed, "scales": scales, "got": got}


@verify(
    StoreScalesOp,
    "value",
    "PTX ISA 9.7.16.8",
    "value must be vector<32 x scales x element> of 1, 2 or 4 scales (bytes of a register), of the "
    "tensor's element, f8E4M3FN or f8E8M0FNU, got {got} to {tensor}",
    bad={"32x4xf8E4M3FN": "32x3xf8E8M0FNU", "2x8x512xf8E4M3FN": "2x2x512xf8E8M0FNU"},
    good={
        "32x4xf8E4M3FN": "32x2xf8E8M0FNU",
        "2x8x512xf8E4M3FN": "2x2x512xf8E8M0FNU",
        "scales = 30": "scales = 8",
    },
)
def _(op: StoreScalesOp) -> Broken:
    got, tensor = op.value.type, op.tensor.type
    shape, element = list(got.shape), str(got.element_type)
    tile = len(shape) == 2 and shape[0] == QUARTER_LANES and shape[1] in (1, 2, 4)
    scales = element in ("f8E4M3FN", "f8E8M0FNU") and element == str(tensor.element_type)
    return None if tile and scales else {"got": got, "tensor": tensor}


@verify(
    StoreScalesOp,
    "tensor",
    "cuBLAS, 1D block scaling factors layout",
    f"tensor must be a static, contiguous memref of blocks [.., rows / {BLOCK_ROWS}, scales / "
    f"{BLOCK_SCALES}, {BLOCK_BYTES}], got {{got}}",
    bad={"2x8x512xf8E4M3FN": "128x16xf8E4M3FN"},
)
def _(op: StoreScalesOp) -> Broken:
    type_ = op.tensor.type
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank, op.context))
    static = type_.has_static_shape and type_.layout == identity
    legal = static and type_.rank >= 3 and type_.shape[-1] == BLOCK_BYTES
    return None if legal else {"got": type_}


@verify(
    StoreScalesOp,
    "indices",
    "tc",
    "expected an index per dimension of the tensor before its blocks, then a row and a scale "
    "({want}), got {got}",
    bad={
        "%m, %n": "%m, %n, %m",
        "operandSegmentSizes = array<i32: 1, 1, 2>": "operandSegmentSizes = array<i32: 1, 1, 3>",
        "32x4xf8E4M3FN>, memref<2x8x512xf8E4M3FN>": (
            "32x4xf8E4M3FN>, memref<2x8x512xf8E4M3FN>, index"
        ),
    },
)
def _(op: StoreScalesOp) -> Broken:
    want, got = op.tensor.type.rank - 1, len(op.indices)
    return None if want == got else {"want": want, "got": got}


def _not_filled(name: str, dim: int, size: int, op: StoreScalesOp) -> Broken:
    """None if an attribute counts rows, or scales, up to one in the last block of `size`."""
    blocks, got = op.tensor.type.shape[dim], integer(op, name)
    low, high = (blocks - 1) * size + 1, blocks * size
    return None if low <= got <= high else {"low": low, "high": high, "blocks": blocks, "got": got}


verify(
    StoreScalesOp,
    "rows",
    "tc",
    "rows must be in [{low}, {high}], the rows of {blocks} blocks, got {got}",
    bad={"rows = 200": "rows = 128"},
    good={"rows = 200": "rows = 256"},
)(partial(_not_filled, "rows", -3, BLOCK_ROWS))


verify(
    StoreScalesOp,
    "scales",
    "tc",
    "scales must be in [{low}, {high}], the scales of {blocks} blocks, got {got}",
    bad=({"scales = 30": "scales = 4"}, {"scales = 30": "scales = 9"}),
    good={
        "32x4xf8E4M3FN": "32x2xf8E8M0FNU",
        "2x8x512xf8E4M3FN": "2x2x512xf8E8M0FNU",
        "scales = 30": "scales = 5",
    },
)(partial(_not_filled, "scales", -2, BLOCK_SCALES))


# --- fragments ---------------------------------------------------------------------------------


@verify(
    QuantiseFragmentOp,
    "types",
    "PTX ISA 9.7.14.5",
    "values must be a fragment of C of f32, codes and scales fragments of its shape and atom of "
    "f8E4M3FN or f8E5M2 and f8E8M0FNU, got {values} to {codes} with {scales}: four threads have "
    "pairs of a row of each atom, e2m1 is converted by threads of whole rows on sm_100a",
    bad=(
        {"256>, f32": "256>, f16"},
        {"256>, f8E8M0FNU": "256>, f8E4M3FN"},
        {"!c = !tc.fragment<array<i64: 128, 256>": "!c = !tc.fragment<array<i64: 128, 128>"},
        {"array<i64: 128, 256>": "array<i64: 128, 64>", '"C"': '"A"'},
    ),
    good={"array<i64: 128, 256>": "array<i64: 128, 64>"},
)
def _(op: QuantiseFragmentOp) -> Broken:
    values, codes, scales = (v.type for v in (op.values, op.codes, op.scales))
    alike = len({(str(v.shape), v.operand, v.atom) for v in (values, codes, scales)}) == 1
    form = BLOCK_FORMATS.get((str(codes.element), str(scales.element)))
    mxfp8 = form is not None and form.bits == 8
    if alike and mxfp8 and values.operand == "C" and str(values.element) == "f32":
        return None
    return {"values": values, "codes": codes, "scales": scales}


@verify(
    QuantiseFragmentOp,
    "columns",
    "tc",
    f"values must have a multiple of {WORD_COLUMNS} columns, got {{got}}: a register has the "
    f"scales of {WORD_COLUMNS} columns of two rows",
    bad={"array<i64: 128, 256>": "array<i64: 128, 96>"},
)
def _(op: QuantiseFragmentOp) -> Broken:
    got = op.values.type.shape[1]
    return None if got % WORD_COLUMNS == 0 else {"got": got}


@verify(
    QuantiseFragmentOp,
    "scale-rounding",
    "OCP MX 1.0, 6.3",
    'scale_rounding must be "floor" or "rceil", or left out for floor, got {got}',
    bad={"%c)": '%c) {scale_rounding = "even"}'},
    good={"%c)": '%c) {scale_rounding = "floor"}'},
)
def _(op: QuantiseFragmentOp) -> Broken:
    return rounding_problem(op)


@verify(
    StoreFragmentScalesOp,
    "fragment",
    "tc",
    f"expected a fragment of C of f8E8M0FNU with a multiple of {WORD_COLUMNS} columns, got {{got}}",
    bad=({"array<i64: 128, 256>": "array<i64: 128, 32>"}, {"256>, f8E8M0FNU": "64>, f8E4M3FN"}),
    good={"array<i64: 128, 256>": "array<i64: 128, 64>"},
)
def _(op: StoreFragmentScalesOp) -> Broken:
    got = op.fragment.type
    whole = got.operand == "C" and got.shape[1] % WORD_COLUMNS == 0
    return None if whole and str(got.element) == "f8E8M0FNU" else {"got": got}


@verify(
    StoreFragmentScalesOp,
    "indices",
    "tc",
    "expected the row and the column of the tile's first element, or a batch before them, got "
    "{count} indices",
    bad={
        "%m, %n)": "%m)",
        "1, 1, 2": "1, 1, 1",
        "2x4x512xf8E8M0FNU>, index, index": "2x4x512xf8E8M0FNU>, index",
    },
)
def _(op: StoreFragmentScalesOp) -> Broken:
    count = len(op.indices)
    return None if count in (2, 3) else {"count": count}


@verify(
    StoreFragmentScalesOp,
    "tensor",
    "cuBLAS, 1D block scaling factors layout",
    "tensor must be a static, contiguous memref of f8E8M0FNU [.., {rows}, {scales}], as rows and "
    "scales say, or of their blocks [.., rows / 128, scales / 4, 512], with an index for each "
    "dimension before, got {got}",
    bad=(
        {"2x4x512xf8E8M0FNU": "200x7xf8E8M0FNU", "scales = 15": "scales = 8"},
        {"2x4x512xf8E8M0FNU": "1x2x512xf8E8M0FNU", "scales = 15": "scales = 7"},
        {"2x4x512xf8E8M0FNU": "2x2x512xf8E4M3FN", "scales = 15": "scales = 7"},
        {"2x4x512xf8E8M0FNU": "200x15xf8E8M0FNU, strided<[16, 1]>"},
        {
            "%m, %n)": "%m, %n, %n)",
            "1, 1, 2": "1, 1, 3",
            "2x4x512xf8E8M0FNU>, index": "2x4x512xf8E8M0FNU>, index, index",
        },
    ),
    good={"scales = 15": "scales = 7", "2x4x512xf8E8M0FNU": "2x2x512xf8E8M0FNU"},
)
def _(op: StoreFragmentScalesOp) -> Broken:
    got, rows, scales = op.tensor.type, integer(op, "rows"), integer(op, "scales")
    shape = list(got.shape)
    outer = shape[: len(op.indices) - 2]
    legal = [
        scales_shape([*outer, rows, scales * SCALED_COLUMNS], SCALED_COLUMNS, layout)
        for layout in SCALE_LAYOUTS
    ]
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(got.rank, op.context))
    plain = got.has_static_shape and got.layout == identity and min(rows, scales) > 0
    if plain and str(got.element_type) == "f8E8M0FNU" and shape in legal:
        return None
    return {"rows": rows, "scales": scales, "got": got}
