"""Block quantisation of accumulators in registers of warps, and the store of their scales."""

from collections.abc import Sequence

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integer
from tcir.dialect.operation import Op
from tcir.dialect.ops.block_scaled import SCALE_LAYOUTS, scales_shape
from tcir.dialect.ops.quantise import BLOCK_FORMATS, BlockFormat, rounded_format, rounding_problem
from tcir.dialect.rules import Broken, verify
from tcir.dialect.warp_types import FragmentType

SCALED_COLUMNS = 32
"""Of a row, that share a scale of MXFP8."""
WORD_COLUMNS = 2 * SCALED_COLUMNS
"""Of which a thread has the scales of its two rows in a register."""


class QuantiseFragmentOp(Op, name="quantise_fragment", role="consumer"):
    """Quantises an accumulator in blocks of 32 columns to MXFP8, as ``tc.quantise_blocks`` does.

    ``scales`` has for each element the scale of its block, so all three lie in the same registers;
    a thread keeps one for the 8 of a block that it has. Four threads have a row of a block, and
    ask each other for the largest magnitude (``shfl.sync.bfly``, PTX ISA 9.7.9.6; conversions:
    9.7.9.21). FP4 is of registers with whole rows (``tc.quantise_rows``).
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
    def format(self) -> BlockFormat:
        """What it quantises to."""
        pair = str(self.codes.type.element), str(self.scales.type.element)
        return rounded_format(self, BLOCK_FORMATS[pair])


class StoreFragmentScalesOp(Op, name="store_fragment_scales", role="consumer", stores="tensor"):
    """Stores the scale of each block of 32 columns of a fragment, as ``tc.quantise_fragment`` has
    them.

    The indices are those of the tile's first element: a matrix of a batch if there are several, a
    row, and a column that is a multiple of 32. A tensor of that rank has the scale of row r and
    column c at ``[r, c / 32]``; one of a rank more has blocks of 128 rows x 4 scales, in which it
    is where `tc.store_scales` says. There rows from ``rows`` on and scales from ``scales`` on,
    which are padding, are zeros; what is outside ``tensor`` is not written. One of four threads
    with a row stores (PTX ISA 9.7.9.12).
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
        """Whether scales are row-major, not in blocks."""
        return bool(self.tensor.type.rank == len(self.indices))


@verify(
    QuantiseFragmentOp,
    "types",
    "PTX ISA 9.7.14.5",
    "values must be a fragment of C of f32, codes and scales fragments of its shape and atom of "
    "f8E4M3FN or f8E5M2 and f8E8M0FNU, got {values} to {codes} with {scales}: four threads have "
    "pairs of a row of each atom, e2m1 is converted by threads of whole rows on sm_100a",
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
)
def _(op: QuantiseFragmentOp) -> Broken:
    got = op.values.type.shape[1]
    return None if got % WORD_COLUMNS == 0 else {"got": got}


@verify(
    QuantiseFragmentOp,
    "scale-rounding",
    "OCP MX 1.0, 6.3",
    'scale_rounding must be "floor" or "rceil", or left out for floor, got {got}',
)
def _(op: QuantiseFragmentOp) -> Broken:
    return rounding_problem(op)


@verify(
    StoreFragmentScalesOp,
    "fragment",
    "tc",
    f"expected a fragment of C of f8E8M0FNU with a multiple of {WORD_COLUMNS} columns, got {{got}}",
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
