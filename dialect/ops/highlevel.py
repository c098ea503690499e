"""Contractions on tensors."""

from typing import Any

from tcir._mlir import ext, ir
from tcir.dialect.attributes import (
    integer,
    integers,
    is_integer,
    not_arrays,
    optional_integer,
    string,
)
from tcir.dialect.indexing import BATCH, Index, IndexedOperand, Indexing, K, M, N
from tcir.dialect.limits import FP8
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, one_of, same_rules, unsigned_problem, verify

OPERAND_TYPES = ("f16", "bf16")
RESULT_TYPES = ("f32", "f16", "bf16")


class Conv2dOp(
    Op,
    name="conv2d",
    arithmetic="products",
    lowered_by=("tile-conv-implicit-gemm", "tile-conv-shift-reuse", "tile-conv-smem-offset"),
):
    """2-D convolution, channels last, padding folded in, f32 accumulation.

    ``out[n,p,q,k] = sum_{r,s,c} x[n, p*sh - pt + r*dh, q*sw - pl + s*dw, c] * w(r,s,c,k)``, where
    ``x`` is zero outside its bounds. The sum is then rounded once (RNE) to the element type of
    ``out``.

    f32 operands are multiplied as tf32: their low 13 bits are ignored. i8 operands are signed
    unless ``unsigned`` (``array<i64: x, w>``, 0 or 1 each) says otherwise; their sums are i32 and
    wrap.

    ``filter`` is ``"hwcf"`` (``w[r,s,c,k]``) or ``"fhwc"`` (``w[k,r,s,c]``); ``strides``,
    ``dilations`` are ``[h, w]``; ``pads`` is ``[top, bottom, left, right]``.

    ``groups`` (left out: 1) divides the channels of ``x`` and of ``out`` into equal groups:
    channels of ``out`` sum over the channels of ``x`` in the same group, and ``w`` has the input
    channels of one group.

    With ``k_part`` the sums stay in parts: part i sums over ``k_part`` of the elements (r, s, c) of
    a filter in their order, from ``i * k_part`` on, and ``out``, of f32 or i32, has the
    parts as its first dimension (``tc.sum_parts``).
    """

    example = """
    func.func @example(%x: tensor<1x56x56x64xf16>, %w: tensor<3x3x64x64xf16>) {
      %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
          pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
          : (tensor<1x56x56x64xf16>, tensor<3x3x64x64xf16>) -> tensor<1x56x56x64xf32>
      return
    }
    """

    x: ext.Operand[ir.RankedTensorType]
    w: ext.Operand[ir.RankedTensorType]
    strides: Any
    dilations: Any
    pads: Any
    filter: ir.StringAttr
    out: ext.Result[ir.RankedTensorType]

    def indexing(self) -> Indexing:
        """Factors of the op's products; the loops n, p, q, k, r, s, c index them."""
        n, k, r, s, c = ((loop, 1) for loop in (0, 3, 4, 5, 6))
        channels = None if "groups" in self.attributes else c
        filters = (k, r, s, c) if string(self, "filter") == "fhwc" else (r, s, c, k)
        x = IndexedOperand(self.x, (n, None, None, channels))
        factors = (x, IndexedOperand(self.w, filters))
        return Indexing(factors, frozenset(range(4)), windows=True)


class MatmulOp(
    Op, name="matmul", arithmetic="products", lowered_by=("tile-gemm", "tile-matmul-warp")
):
    """Matrix product with f32 accumulation, rounded once to the element type of ``out``.

    f32 operands are multiplied as tf32: their low 13 bits are ignored. i8 operands are signed
    unless ``unsigned`` (``array<i64: a, b>``, 0 or 1 each) says otherwise; their sums are i32 and
    wrap.

    ``a`` is ``[M,K]`` (``a_layout = "mk"``) or ``[K,M]`` (``"km"``), ``b`` is ``[K,N]``
    (``"kn"``) or ``[N,K]`` (``"nk"``), ``out`` is ``[M,N]``, or ``[N,M]`` with ``out_layout =
    "nm"`` (left out: ``"mn"``); All three have the same leading batch dimension, or none of them
    has one; or only ``b`` has none, and the whole batch is multiplied by the same ``b``.

    With ``k_part`` the sums stay in parts: part p sums over ``k_part`` elements of K from ``p *
    k_part`` on, and ``out``, of f32 or i32, has the parts as its first dimension
    (``tc.sum_parts``).
    """

    example = """
    func.func @example(%a: tensor<512x256xbf16>, %b: tensor<384x256xbf16>) {
      %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"}
          : (tensor<512x256xbf16>, tensor<384x256xbf16>) -> tensor<512x384xf32>
      return
    }
    """

    a: ext.Operand[ir.RankedTensorType]
    b: ext.Operand[ir.RankedTensorType]
    a_layout: ir.StringAttr
    b_layout: ir.StringAttr
    out: ext.Result[ir.RankedTensorType]

    def indexing(self) -> Indexing:
        """Factors of the op's products and the loops of a matrix product that index them. A `b`
        without a batch dimension serves the whole batch."""
        factors = []
        for value, loop, last in (
            (self.a, M, string(self, "a_layout") == "mk"),
            (self.b, N, string(self, "b_layout") == "nk"),
        ):
            inner: list[Index] = [(loop, 1), (K, 1)] if last else [(K, 1), (loop, 1)]
            outer: list[Index] = [(BATCH, 1)] * (value.type.rank - 2)
            factors.append(IndexedOperand(value, (*outer, *inner)))
        return Indexing(tuple(factors), frozenset((BATCH, M, N)))


OUT_LAYOUTS = ("mn", "nm")
"""Orders of a product's rows and columns in its result."""


def out_layout(op: ir.OpView) -> str:
    """The order of the dimensions of a product's result: ``"mn"`` or ``"nm"``."""
    return string(op, "out_layout") if "out_layout" in op.attributes else "mn"


def _static(*tensors: ir.Value) -> Broken:
    dynamic = next((t.type for t in tensors if not t.type.has_static_shape), None)
    return None if dynamic is None else {"got": dynamic}


def types_problem(x: ir.Value, w: ir.Value, out: ir.Value) -> Broken:
    """Values for the error message `TYPES` if no tensor core computes a result of this type from
    operands of these types; else None."""
    a, b, c = (str(v.type.element_type) for v in (x, w, out))
    same = a == b and a in (*OPERAND_TYPES, "f32")
    if (same or (a in FP8 and b in FP8)) and c in RESULT_TYPES:
        return None
    return None if (a, b, c) == ("i8", "i8", "i32") else {"a": a, "b": b, "out": c}


def _shape(value: ir.Value) -> list[int]:
    return list(value.type.shape)


TYPES = (
    "expected f16, bf16 or f32 (as tf32) of one type, or f8E4M3FN and f8E5M2 in any mix, -> f32, "
    "f16 or bf16, or i8 x i8 -> i32, got {a} x {b} -> {out}: tensor cores multiply no others; "
    "convert one operand first"
)


@verify(
    Conv2dOp,
    "attributes",
    "tc",
    "expected strides, dilations and pads as array<i64> of 2, 2 and 4 values, got {got}",
    bad={"pads = array<i64: 1, 1, 1, 1>": "pads = array<i64: 1, 1>"},
)
def _(op: Conv2dOp) -> Broken:
    got = not_arrays(op, strides=2, dilations=2, pads=4)
    return None if got is None else {"got": got}


@verify(
    Conv2dOp,
    "attribute-values",
    "tc",
    "strides and dilations must be >= 1 and pads >= 0, got strides {strides}, dilations "
    "{dilations}, pads {pads}; a negative pad is a slice of x",
    bad={"pads = array<i64: 1, 1, 1, 1>": "pads = array<i64: 0, -1, 0, 0>"},
    good={
        "pads = array<i64: 1, 1, 1, 1>": "pads = array<i64: 0, 0, 0, 0>",
        "1x56x56x64xf32": "1x54x54x64xf32",
    },
)
def _(op: Conv2dOp) -> Broken:
    strides, dilations, pads = (integers(op, a) for a in ("strides", "dilations", "pads"))
    if min(strides + dilations) >= 1 and min(pads) >= 0:
        return None
    return {"strides": strides, "dilations": dilations, "pads": pads}


@verify(
    Conv2dOp,
    "filter",
    "tc",
    'filter must be "hwcf" (w[r,s,c,k]) or "fhwc" (w[k,r,s,c]), got "{got}"',
    bad={'filter = "hwcf"': 'filter = "fchw"'},
    good={"3x3x64x64xf16": "64x3x3x64xf16", '"hwcf"': '"fhwc"'},
)
def _(op: Conv2dOp) -> Broken:
    got = string(op, "filter")
    return None if got in ("hwcf", "fhwc") else {"got": got}


@verify(
    Conv2dOp,
    "k-part",
    "tc",
    "k_part must be an integer of at least 1, or left out, got {got}",
    bad={'"hwcf"': '"hwcf", k_part = 0 : i64'},
    good={'"hwcf"': '"hwcf", k_part = 288 : i64', "1x56x56x64xf32": "2x1x56x56x64xf32"},
)
def _(op: Conv2dOp | MatmulOp) -> Broken:
    if is_integer(op, "k_part") and (k_part(op) is None or integer(op, "k_part") > 0):
        return None
    return {"got": op.attributes["k_part"]}


same_rules(
    MatmulOp,
    Conv2dOp,
    {"k-part": {'"nk"': '"nk", k_part = 0 : i64'}},
    {"k-part": {'"nk"': '"nk", k_part = 100 : i64', "512x384xf32": "3x512x384xf32"}},
)


@verify(
    Conv2dOp,
    "rank",
    "tc",
    "x [n,h,w,c], w and out [n,p,q,k] must have rank 4 (out one more with k_part), got {got}",
    bad=({'"hwcf"': '"hwcf", k_part = 48 : i64'}, {"1x56x56x64xf32": "56x56x64xf32"}),
)
def _(op: Conv2dOp) -> Broken:
    ranks = [v.type.rank for v in (op.x, op.w, op.out)]
    more = k_part(op) is not None
    return None if ranks == [4, 4, 4 + more] else {"got": ", ".join(map(str, ranks))}


@verify(
    Conv2dOp,
    "static",
    "tc",
    "shapes must be static, got {got}: tensor maps and the grid are fixed at compile time",
    bad={"1x56x56x64xf16": "?x56x56x64xf16"},
)
def _(op: Conv2dOp) -> Broken:
    return _static(op.x, op.w, op.out)


@verify(
    Conv2dOp,
    "types",
    "PTX ISA 9.7.16.2, table 39",
    TYPES,
    bad={"3x3x64x64xf16": "3x3x64x64xbf16"},
    good={"1x56x56x64xf16": "1x56x56x64xbf16", "3x3x64x64xf16": "3x3x64x64xbf16"},
)
def _(op: Conv2dOp) -> Broken:
    return types_problem(op.x, op.w, op.out)


@verify(
    Conv2dOp,
    "unsigned",
    "PTX ISA 9.7.16.2, table 39",
    "unsigned must be array<i64: x, w> of 0 or 1 on i8 operands, got {got} on {element}: only "
    "integers come unsigned",
    bad=(
        {'"hwcf"': '"hwcf", unsigned = array<i64: 1, 0>'},
        {
            "1x56x56x64xf16": "1x56x56x64xi8",
            "3x3x64x64xf16": "3x3x64x64xi8",
            '"hwcf"': '"hwcf", unsigned = array<i64: 2, 0>',
            "1x56x56x64xf32": "1x56x56x64xi32",
        },
    ),
    good={
        "1x56x56x64xf16": "1x56x56x64xi8",
        "3x3x64x64xf16": "3x3x64x64xi8",
        '"hwcf"': '"hwcf", unsigned = array<i64: 1, 0>',
        "1x56x56x64xf32": "1x56x56x64xi32",
    },
)
@verify(
    MatmulOp,
    "unsigned",
    "PTX ISA 9.7.16.2, table 39",
    "unsigned must be array<i64: a, b> of 0 or 1 on i8 operands, got {got} on {element}: only "
    "integers come unsigned",
    bad={'"nk"': '"nk", unsigned = array<i64: 0, 1>'},
    good={
        "512x256xbf16": "512x256xi8",
        "384x256xbf16": "384x256xi8",
        '"nk"': '"nk", unsigned = array<i64: 0, 1>',
        "512x384xf32": "512x384xi32",
    },
)
def _(op: Conv2dOp | MatmulOp) -> Broken:
    return unsigned_problem(op, str(op.operation.operands[0].type.element_type))


@verify(
    Conv2dOp,
    "part-type",
    "tc",
    "out must be of f32 or i32 with k_part, got {got}: parts are rounded after they are summed",
    bad={'"hwcf"': '"hwcf", k_part = 288 : i64', "1x56x56x64xf32": "2x1x56x56x64xf16"},
    good={
        "1x56x56x64xf16": "1x56x56x64xi8",
        "3x3x64x64xf16": "3x3x64x64xi8",
        '"hwcf"': '"hwcf", k_part = 288 : i64',
        "1x56x56x64xf32": "2x1x56x56x64xi32",
    },
)
def _(op: Conv2dOp | MatmulOp) -> Broken:
    got = op.out.type.element_type
    return None if k_part(op) is None or str(got) in ("f32", "i32") else {"got": got}


same_rules(
    MatmulOp,
    Conv2dOp,
    {"part-type": {'"nk"': '"nk", k_part = 64 : i64', "512x384xf32": "4x512x384xf16"}},
    {
        "part-type": {
            "512x256xbf16": "512x256xi8",
            "384x256xbf16": "384x256xi8",
            '"nk"': '"nk", k_part = 100 : i64',
            "512x384xf32": "3x512x384xi32",
        }
    },
)


def _filter_shape(op: Conv2dOp) -> tuple[int, int, int, int]:
    """``(r, s, c, k)`` of the filter."""
    w = _shape(op.w)
    r, s, c, k = w if string(op, "filter") == "hwcf" else (*w[1:], w[0])
    return r, s, c, k


def conv_groups(op: ir.OpView) -> int:
    """Number of groups into which the channels of a ``tc.conv2d`` are divided."""
    groups = optional_integer(op, "groups")
    return 1 if groups is None else groups


@verify(
    Conv2dOp,
    "groups",
    "tc",
    "groups must be an integer of at least 1 that divides the channels of out, or left out, got "
    "{got} for {out} channels",
    bad={'"hwcf"': '"hwcf", groups = 3 : i64'},
    good={"3x3x64x64xf16": "64x3x3x32xf16", '"hwcf"': '"fhwc", groups = 2 : i64'},
)
def _(op: Conv2dOp) -> Broken:
    out = _filter_shape(op)[3]
    if is_integer(op, "groups") and conv_groups(op) >= 1 and out % conv_groups(op) == 0:
        return None
    return {"got": op.attributes["groups"], "out": out}


@verify(
    Conv2dOp,
    "channels",
    "tc",
    "x must have the channels of w for each group, got {x} in x and {w} in w (filter "
    '"{filter}") in groups of {groups}',
    bad={"3x3x64x64xf16": "3x3x32x64xf16"},
)
def _(op: Conv2dOp) -> Broken:
    x, w, groups = _shape(op.x)[3], _filter_shape(op)[2], conv_groups(op)
    if x == w * groups:
        return None
    return {"x": x, "w": w, "filter": string(op, "filter"), "groups": groups}


@verify(
    Conv2dOp,
    "filter-fits",
    "tc",
    "the dilated filter must fit the padded image, got filter {filter} and image {image} (h, w)",
    bad={"dilations = array<i64: 1, 1>": "dilations = array<i64: 29, 29>"},
    good={
        "dilations = array<i64: 1, 1>": "dilations = array<i64: 28, 28>",
        "1x56x56x64xf32": "1x2x2x64xf32",
    },
)
def _(op: Conv2dOp) -> Broken:
    image, window, _ = _extents(op)
    if all(a >= b for a, b in zip(image, window, strict=True)):
        return None
    return {"filter": window, "image": image}


@verify(
    Conv2dOp,
    "out-shape",
    "tc",
    "out must be {want} for these operands, got {got}",
    bad=(
        {"1x56x56x64xf32": "1x56x56x32xf32"},
        {"strides = array<i64: 1, 1>": "strides = array<i64: 2, 1>"},
        {'"hwcf"': '"hwcf", k_part = 288 : i64', "1x56x56x64xf32": "3x1x56x56x64xf32"},
    ),
    good={
        "strides = array<i64: 1, 1>": "strides = array<i64: 2, 1>",
        "1x56x56x64xf32": "1x28x56x64xf32",
    },
)
def _(op: Conv2dOp) -> Broken:
    out, got, part = _extents(op)[2], _shape(op.out), k_part(op)
    r, s, c, k = _filter_shape(op)
    parts = [] if part is None else [-(-r * s * c // part)]
    want = [*parts, _shape(op.x)[0], *out, k]
    return None if got == want else {"want": want, "got": got}


def _extents(op: Conv2dOp) -> tuple[list[int], list[int], list[int]]:
    """Padded image, dilated filter and output extents, each ``[h, w]``."""
    strides, dilations = integers(op, "strides"), integers(op, "dilations")
    pads = integers(op, "pads")
    image = [_shape(op.x)[1 + d] + pads[2 * d] + pads[2 * d + 1] for d in (0, 1)]
    window = [(_filter_shape(op)[d] - 1) * dilations[d] + 1 for d in (0, 1)]
    out = [(image[d] - window[d]) // strides[d] + 1 for d in (0, 1)]
    return image, window, out


@verify(
    MatmulOp,
    "layouts",
    "tc",
    'a_layout must be "mk" or "km" and b_layout "kn" or "nk", got "{a}" and "{b}"',
    bad={'b_layout = "nk"': 'b_layout = "nm"'},
)
def _(op: MatmulOp) -> Broken:
    a, b = string(op, "a_layout"), string(op, "b_layout")
    return None if a in ("mk", "km") and b in ("kn", "nk") else {"a": a, "b": b}


@verify(
    MatmulOp,
    "out-layout",
    "tc",
    'out_layout must be "mn" or "nm", or left out, got {got}',
    bad={'"nk"': '"nk", out_layout = "km"'},
    good={'"nk"': '"nk", out_layout = "nm"', "512x384xf32": "384x512xf32"},
)
def _(op: MatmulOp) -> Broken:
    return one_of(op, "out_layout", OUT_LAYOUTS)


def k_part(op: ir.OpView) -> int | None:
    """Elements of K in one part of a product's sums; None if the sums are not divided into
    parts."""
    return optional_integer(op, "k_part")


def k_parts(op: ir.OpView) -> int | None:
    """Number of parts of a product's sums; None if the sums are not divided into parts."""
    return None if k_part(op) is None else int(op.out.type.shape[0])


@verify(
    MatmulOp,
    "rank",
    "tc",
    "a, b and out must all have rank 2, or rank 3 with a leading batch dimension (b with or "
    "without one, out one more with k_part), got {got}",
    bad={"512x384xf32": "1x512x384xf32"},
)
def _(op: MatmulOp) -> Broken:
    ranks = [v.type.rank for v in (op.a, op.b, op.out)]
    more = k_part(op) is not None
    legal = [[a, b, a + more] for a, b in ((2, 2), (3, 3), (3, 2))]
    return None if ranks in legal else {"got": ", ".join(map(str, ranks))}


@verify(
    MatmulOp,
    "static",
    "tc",
    "shapes must be static, got {got}: tensor maps and the grid are fixed at compile time",
    bad={"512x256xbf16": "?x256xbf16"},
)
def _(op: MatmulOp) -> Broken:
    return _static(op.a, op.b, op.out)


@verify(
    MatmulOp,
    "types",
    "PTX ISA 9.7.14.5 and 9.7.16.2",
    TYPES,
    bad={"512x256xbf16": "512x256xf32", "384x256xbf16": "384x256xf16"},
    good={"512x256xbf16": "512x256xf16", "384x256xbf16": "384x256xf16"},
)
def _(op: MatmulOp) -> Broken:
    return types_problem(op.a, op.b, op.out)


def _dims(op: MatmulOp) -> tuple[dict[str, int], dict[str, int]]:
    """Extents of ``a`` and ``b`` by the letters of their layouts."""
    a = dict(zip(string(op, "a_layout"), _shape(op.a)[-2:], strict=True))
    b = dict(zip(string(op, "b_layout"), _shape(op.b)[-2:], strict=True))
    return a, b


@verify(
    MatmulOp,
    "k",
    "tc",
    'a and b must have the same K, got {a} (a_layout "{a_layout}") and {b} (b_layout "{b_layout}")',
    bad={'b_layout = "nk"': 'b_layout = "kn"'},
)
def _(op: MatmulOp) -> Broken:
    a, b = _dims(op)
    if a["k"] == b["k"]:
        return None
    layouts = {name: string(op, name) for name in ("a_layout", "b_layout")}
    return {"a": a["k"], "b": b["k"], **layouts}


@verify(
    MatmulOp,
    "out-shape",
    "tc",
    "out must be {want} for these operands, got {got} (batches of a and b: {batches})",
    bad=(
        {
            "512x256xbf16": "2x512x256xbf16",
            "384x256xbf16": "3x384x256xbf16",
            "512x384xf32": "2x512x384xf32",
        },
        {'"nk"': '"nk", out_layout = "nm"'},
        {'"nk"': '"nk", k_part = 100 : i64', "512x384xf32": "2x512x384xf32"},
    ),
    good={
        "512x256xbf16": "2x512x256xbf16",
        "384x256xbf16": "2x384x256xbf16",
        "512x384xf32": "2x512x384xf32",
    },
)
def _(op: MatmulOp) -> Broken:
    a, b = _dims(op)
    batches = [_shape(v)[:-2] for v in (op.a, op.b)]
    rows_columns = {"m": a["m"], "n": b["n"]}
    part = k_part(op)
    parts = [] if part is None else [-(-a["k"] // part)]
    want = [*parts, *batches[0], *(rows_columns[d] for d in out_layout(op))]
    got = _shape(op.out)
    if got == want and batches[1] in (batches[0], []):
        return None
    return {"want": want, "got": got, "batches": " and ".join(map(str, batches))}
