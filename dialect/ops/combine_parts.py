"""Attention over all keys, combined from attention over parts of them."""

from tcir._mlir import ext, ir
from tcir.dialect.attributes import string
from tcir.dialect.operation import Op
from tcir.dialect.ops.attention import ATTENTION_TYPES, QUERY_LAYOUTS
from tcir.dialect.rules import Broken, verify


class CombinePartsOp(Op, name="combine_parts", lowered_by=("convert-to-simt",)):
    """Combines the results of ``tc.attention`` with ``key_part`` to attention over all keys.

    ``parts`` is ``[p, b, h, m, e]`` (``layout = "bhmd"``) or ``[p, b, m, h, e]`` (``"bmhd"``),
    and ``sums``, ``[p, b, h, m]``, are the natural logarithms of the parts' sums of exponentials.
    Let ``most`` be the largest of a row's logarithms, ``w_i = 2^((sums_i - most) log2(e))``, and
    ``total`` the sum of all w_i; then::

        out = (w_0 parts_0 + w_1 parts_1 + …) / total
        lse = most + ln(total)

    These are computed in f32. Parts are added in order, and ``out`` is rounded once to its type. A
    row that has no keys in any part is 0, and its logarithm is -inf.
    """

    example = """
    func.func @example(%parts: tensor<4x2x8x1x64xf32>, %sums: tensor<4x2x8x1xf32>) {
      %o, %lse = "tc.combine_parts"(%parts, %sums) {layout = "bhmd"}
          : (tensor<4x2x8x1x64xf32>, tensor<4x2x8x1xf32>)
          -> (tensor<2x8x1x64xf16>, tensor<2x8x1xf32>)
      return
    }
    """

    parts: ext.Operand[ir.RankedTensorType]
    sums: ext.Operand[ir.RankedTensorType]
    layout: ir.StringAttr
    out: ext.Result[ir.RankedTensorType]
    lse: ext.Result[ir.RankedTensorType]


@verify(
    CombinePartsOp,
    "types",
    "tc",
    "expected static tensors, parts, sums and lse of f32, out of f32, {narrow}, got {got}",
    bad={"tensor<4x2x8x1x64xf32>": "tensor<4x2x8x1x64xf16>"},
    good={"2x8x1x64xf16": "2x8x1x64xf32"},
)
def _(op: CombinePartsOp) -> Broken:
    values = (op.parts, op.sums, op.lse, op.out)
    *wide, out = (str(each.type.element_type) for each in values)
    static = all(each.type.has_static_shape for each in values)
    if static and set(wide) == {"f32"} and out in ("f32", *ATTENTION_TYPES):
        return None
    return {
        "narrow": " or ".join(ATTENTION_TYPES),
        "got": ", ".join(str(each.type) for each in values),
    }


@verify(
    CombinePartsOp,
    "shapes",
    "tc",
    "layout must be one of {layouts}, and shapes parts [p, *out], sums [p, b, h, m], out "
    "[b, h, m, e] in that layout, lse [b, h, m], got {got}",
    bad=({"4x2x8x1x64xf32": "4x2x8x2x64xf32"}, {'"bhmd"': '"bhnd"'}, {"2x8x1xf32": "2x1x8xf32"}),
    good={'"bhmd"': '"bmhd"', "4x2x8x1x64xf32": "4x2x1x8x64xf32", "2x8x1x64xf16": "2x1x8x64xf16"},
)
def _(op: CombinePartsOp) -> Broken:
    layout = string(op, "layout")
    parts, sums, out, lse = (list(v.type.shape) for v in (op.parts, op.sums, op.out, op.lse))
    if layout in QUERY_LAYOUTS and len(out) == 4:
        of = dict(zip(layout, out, strict=True))
        rows = [of[letter] for letter in "bhm"]
        if lse == rows and parts == [*parts[:1], *out] and sums == [*parts[:1], *rows]:
            return None
    return {"layouts": QUERY_LAYOUTS, "got": f"{layout}, {parts}, {sums}, {out}, {lse}"}
