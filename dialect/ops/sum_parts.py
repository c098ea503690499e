"""Sums of partial results."""

from tcir._mlir import ext, ir
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, verify

SUMMED_TYPES = {"f32": ("f32", "f16", "bf16"), "i32": ("i32",)}
"""Types of a result by that of its parts."""


class SumPartsOp(
    Op, name="sum_parts", group_sizes="sizes", lowered_by=("convert-to-simt",), counted=True
):
    """The sum over the first dimension, in its order, rounded once to the element type of ``out``.

    ``out[...] = round(((parts[0, ...] + parts[1, ...]) + parts[2, ...]) + ...)``: each f32 sum is
    rounded to f32, each i32 sum wraps. The parts are the result of a product with ``k_part``. Below
    the tensor level this op is a kernel of its own, with one thread per element, which also
    computes a ``tc.epilogue`` of ``out``.

    With ``sizes`` the parts are those of a ``tc.grouped_matmul``. Rows of ``out`` that belong to no
    group are not written: they keep their contents.
    """

    example = """
    func.func @example(%parts: tensor<4x8x4096xf32>) -> tensor<8x4096xf16> {
      %out = "tc.sum_parts"(%parts) : (tensor<4x8x4096xf32>) -> tensor<8x4096xf16>
      return %out : tensor<8x4096xf16>
    }
    """

    parts: ext.Operand[ir.RankedTensorType]
    out: ext.Result[ir.RankedTensorType]
    sizes: ext.Operand[ir.RankedTensorType] | None = None

    @property
    def masked(self) -> bool:
        """Whether the form is masked: every group has its own rows of ``out``."""
        return bool(self.out.type.rank == 3)


@verify(
    SumPartsOp,
    "shape",
    "tc",
    "parts must be static and have one dimension more than out, in front, got {parts} and {out}",
    bad={"4x8x4096xf32": "8x4096xf32"},
)
def _(op: SumPartsOp) -> Broken:
    parts, out = op.parts.type, op.out.type
    static = parts.has_static_shape and out.has_static_shape
    if static and parts.rank and list(parts.shape)[1:] == list(out.shape):
        return None
    return {"parts": parts, "out": out}


@verify(
    SumPartsOp,
    "types",
    "tc",
    "parts must be of f32 with out of f32, f16 or bf16, or both of i32, got {parts} and {out}",
    bad={"4x8x4096xf32": "4x8x4096xf16"},
    good={"8x4096xf16": "8x4096xbf16"},
)
def _(op: SumPartsOp) -> Broken:
    parts, out = (str(value.type.element_type) for value in (op.parts, op.out))
    return None if out in SUMMED_TYPES.get(parts, ()) else {"parts": parts, "out": out}


def _with(sizes: str) -> dict[str, str]:
    """Changes to the example: sizes of groups of this type."""
    return {
        '"(%parts) :': '"(%parts, %sizes) :',
        "%parts: tensor<4x8x4096xf32>": f"%parts: tensor<4x8x4096xf32>, %sizes: {sizes}",
        "(tensor<4x8x4096xf32>)": f"(tensor<4x8x4096xf32>, {sizes})",
    }


@verify(
    SumPartsOp,
    "sizes",
    "tc",
    "sizes must be tensor<Gxi32> for out of rank 2, or of rank 3 with the G groups in front, got "
    "{got} for {out}",
    bad=_with("tensor<8xi64>"),
    good=_with("tensor<8xi32>"),
)
def _(op: SumPartsOp) -> Broken:
    if op.sizes is None:
        return None
    out, got = op.out.type, op.sizes.type
    vector = got.has_static_shape and got.rank == 1 and str(got.element_type) == "i32"
    legal = vector and (out.rank == 2 or (op.masked and out.shape[0] == got.shape[0]))
    return None if legal else {"got": got, "out": out}
