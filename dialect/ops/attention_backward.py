"""Gradients of scaled dot-product attention on tensors."""

from tcir._mlir import ext, ir
from tcir.dialect.attributes import string
from tcir.dialect.operation import Op
from tcir.dialect.ops.attention import (
    ATTENTION_TYPES,
    KEY_LAYOUTS,
    QUERY_LAYOUTS,
    Band,
    broken_band,
)
from tcir.dialect.rules import Broken, verify

GRADIENTS = {"q": ("q",), "kv": ("k", "v")}
"""Operands whose gradients an op returns, by its attribute ``of``."""


class AttentionBackwardOp(
    Op,
    name="attention_backward",
    lowered_by=("tile-attention-backward",),
):
    """Gradients of the queries (``of = "q"``), or of the keys and values (``of = "kv"``), of a
    ``tc.attention`` without a body.

    With ``s = scale * q * k^T``, and ``p = exp(s - lse)`` for the keys that a row has, else 0::

        dp = dout * v^T;  ds = p * (dp - delta)
        dq = scale * ds * k
        dk = scale * ds^T * q;  dv = p^T * dout

    ``q``, ``k``, ``v`` and the masks are those of ``tc.attention``. ``dout`` is the gradient of its
    result, and ``lse`` is its second result; ``delta`` is the sum over e of ``dout * out``. ``lse``
    and ``delta`` are ``[b, h, m]`` of f32. Gradients have the shape of their operand; ``dk`` and
    ``dv`` are sums over the query heads of a group. p and ds are rounded to the type of the
    operands before these products; sums are f32. A row whose ``lse`` is -inf has no key and
    contributes to no gradient; the ``lse`` of other rows must be finite.
    """

    example = """
    func.func @example(%q: tensor<2x8x256x64xf16>, %k: tensor<2x4x512x64xf16>,
                       %v: tensor<2x4x512x128xf16>, %dout: tensor<2x8x256x128xf16>,
                       %lse: tensor<2x8x256xf32>, %delta: tensor<2x8x256xf32>) {
      %dk, %dv = "tc.attention_backward"(%q, %k, %v, %dout, %lse, %delta) {of = "kv",
          scale = 0.125 : f32, q_layout = "bhmd", kv_layout = "bhnd", causal_offset = 256 : i64}
          : (tensor<2x8x256x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x128xf16>,
             tensor<2x8x256x128xf16>, tensor<2x8x256xf32>, tensor<2x8x256xf32>)
          -> (tensor<2x4x512x64xf16>, tensor<2x4x512x128xf16>)
      return
    }
    """

    q: ext.Operand[ir.RankedTensorType]
    k: ext.Operand[ir.RankedTensorType]
    v: ext.Operand[ir.RankedTensorType]
    dout: ext.Operand[ir.RankedTensorType]
    lse: ext.Operand[ir.RankedTensorType]
    delta: ext.Operand[ir.RankedTensorType]
    of: ir.StringAttr
    scale: ir.FloatAttr
    q_layout: ir.StringAttr
    kv_layout: ir.StringAttr
    first: ext.Result[ir.RankedTensorType]
    second: ext.Result[ir.RankedTensorType] | None = None

    @property
    def gradients(self) -> list[ir.Value]:
        """The results of the op, which are the gradients."""
        return list(self.operation.results)

    @property
    def of_queries(self) -> bool:
        """Whether the op computes the gradient of the queries instead of those of the keys and
        values."""
        return string(self, "of") == "q"

    @property
    def factor(self) -> float:
        """Factor by which scores are multiplied."""
        return float(ir.FloatAttr(self.attributes["scale"]).value)

    @property
    def band(self) -> Band:
        """The band of keys that each row has; it relates the number of a row to the numbers of its
        keys."""
        return Band.of(self)

    @property
    def element(self) -> ir.Type:
        """Type of the queries, keys and values."""
        return self.q.type.element_type

    def extents(self) -> dict[str, int]:
        """The sizes b, h, m and d of the queries, g and n of the keys, and e of the values."""
        q = dict(zip(string(self, "q_layout"), self.q.type.shape, strict=True))
        k = dict(zip(string(self, "kv_layout"), self.k.type.shape, strict=True))
        v = dict(zip(string(self, "kv_layout"), self.v.type.shape, strict=True))
        return {**q, "g": k["h"], "n": k["n"], "e": v["d"]}


@verify(
    AttentionBackwardOp,
    "attributes",
    "tc",
    "of must be one of {of}, q_layout one of {queries}, kv_layout one of {keys}, scale a positive "
    "f32, got {got}",
    bad=({'of = "kv"': 'of = "v"'}, {'"bhnd"': '"bhdn"'}, {"0.125 : f32": "-0.125 : f32"}),
    good={
        'q_layout = "bhmd"': 'q_layout = "bmhd"',
        "2x8x256x64xf16": "2x256x8x64xf16",
        "2x8x256x128xf16": "2x256x8x128xf16",
    },
)
def _(op: AttentionBackwardOp) -> Broken:
    of, q, kv = (string(op, name) for name in ("of", "q_layout", "kv_layout"))
    scale = op.attributes["scale"]
    positive = str(scale.type) == "f32" and 0 < scale.value < float("inf")
    if of in GRADIENTS and q in QUERY_LAYOUTS and kv in KEY_LAYOUTS and positive:
        return None
    got = f"{of}, {q}, {kv}, {scale}"
    return {"of": tuple(GRADIENTS), "queries": QUERY_LAYOUTS, "keys": KEY_LAYOUTS, "got": got}


@verify(
    AttentionBackwardOp,
    "types",
    "tc",
    "q, k, v, dout and the gradients must be static, of rank 4 and all of f16 or all of bf16, lse "
    "and delta of f32 and rank 3, got {got}: the tensor core multiplies no mixed types",
    bad=({"2x8x256x128xf16": "2x8x256x128xbf16"}, {"2x8x256xf32": "2x8x256xf16"}),
    good={
        "2x8x256x64xf16": "2x8x256x64xbf16",
        "2x4x512x64xf16": "2x4x512x64xbf16",
        "2x4x512x128xf16": "2x4x512x128xbf16",
        "2x8x256x128xf16": "2x8x256x128xbf16",
    },
)
def _(op: AttentionBackwardOp) -> Broken:
    whole = [each.type for each in (op.q, op.k, op.v, op.dout, *op.gradients)]
    sums = [op.lse.type, op.delta.type]
    static = all(each.has_static_shape for each in (*whole, *sums))
    ranks = {each.rank for each in whole} == {4} and {each.rank for each in sums} == {3}
    kinds = {str(each.element_type) for each in whole}
    legal = len(kinds) == 1 and kinds <= set(ATTENTION_TYPES)
    if static and ranks and legal and all(str(each.element_type) == "f32" for each in sums):
        return None
    return {"got": ", ".join(map(str, (*whole, *sums)))}


@verify(
    AttentionBackwardOp,
    "shapes",
    "tc",
    "expected q [b, h, m, d], k [b, g, n, d], v [b, g, n, e], dout [b, h, m, e], lse and delta "
    "[b, h, m], in the order of the layouts, h a multiple of g, and the gradients of {of} with the "
    "shapes of these, got {got}",
    bad=({"2x8x256xf32": "2x8x512xf32"}, {"2x4x512x64xf16": "2x3x512x64xf16"}),
    good={"2x4x512x64xf16": "2x1x512x64xf16", "2x4x512x128xf16": "2x1x512x128xf16"},
)
def _(op: AttentionBackwardOp) -> Broken:
    of, names = op.extents(), GRADIENTS[string(op, "of")]
    dims = [
        dict(zip(string(op, layout), value.type.shape, strict=True))
        for layout, value in (("kv_layout", op.k), ("kv_layout", op.v), ("q_layout", op.dout))
    ]
    keys = {"b": of["b"], "h": of["g"], "n": of["n"]}
    fits = dims == [
        {**keys, "d": of["d"]},
        {**keys, "d": of["e"]},
        {"b": of["b"], "h": of["h"], "m": of["m"], "d": of["e"]},
    ]
    sums = all(list(x.type.shape) == [of[n] for n in "bhm"] for x in (op.lse, op.delta))
    same = [x.type for x in op.gradients] == [getattr(op, name).type for name in names]
    if fits and sums and same and of["g"] and of["h"] % of["g"] == 0:
        return None
    every = (op.q, op.k, op.v, op.dout, op.lse, op.delta, *op.gradients)
    return {"of": " and ".join(names), "got": [list(each.type.shape) for each in every]}


@verify(
    AttentionBackwardOp,
    "band",
    "tc",
    "causal_offset and window_offset must be i64, the second no larger than the first, got {got}",
    bad=({"256 : i64": "256.0 : f32"}, {"256 : i64": "256 : i64, window_offset = 257 : i64"}),
    good={"256 : i64": "0 : i64, window_offset = -300 : i64"},
)
def _(op: AttentionBackwardOp) -> Broken:
    return broken_band(op)
