"""Scaled dot-product attention of block-scaled queries and keys."""

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integer, string
from tcir.dialect.limits import FP8
from tcir.dialect.ops.attention import (
    ATTENTION_TYPES,
    KEY_LAYOUTS,
    QUERY_LAYOUTS,
    AttentionOp,
)
from tcir.dialect.ops.block_scaled import (
    KINDS,
    SCALE_LAYOUTS,
    SOURCE,
    kinds_of,
    packed_kind,
    scales_shape,
)
from tcir.dialect.ops.epilogue import EpilogueOp
from tcir.dialect.rules import Broken, same_rules, verify


class BlockScaledAttentionOp(
    AttentionOp, name="block_scaled_attention", lowered_by=("tile-attention",), counted=True
):
    """``tc.attention`` whose scores are sums of products of scaled elements.

    ``out = softmax(scale * f(sum_d (q * q_scales) * (k * k_scales))) * v`` for each head: a scale
    belongs to ``block`` elements of a row. ``q``, ``k`` and their scales have the types of the
    operands of ``tc.block_scaled_matmul``, and the scales its layout ``"blocked_128x4"``:
    ``q_scales`` is ``[b, h, ceil(m / 128), ceil(d / block / 4), 512]`` and ``k_scales`` ``[b, g,
    ceil(n / 128), ceil(d / block / 4), 512]``. ``q`` is ``[b, h, m, d]`` and ``k`` is ``[b, g, n,
    d]``; ``v`` is ``[b, g, n, e]`` of f16, bf16, e4m3 or e5m2. Padding of the scales does not
    affect results: it may be anything. A NaN scale makes every score that depends on it NaN.

    ``limits`` is empty, or ``[b]`` of i32, the number of keys of each batch. Everything else is as
    in ``tc.attention``. Global scales of tensors are part of ``scale``. PTX ISA 9.7.16.10.7.
    """

    example = """
    #heads = affine_map<(b, h, m, n) -> (0, h, 0, 0)>
    func.func @example(%q: tensor<2x8x256x64xf8E4M3FN>, %k: tensor<2x4x512x64xf8E4M3FN>,
                       %v: tensor<2x4x512x128xf16>, %limits: tensor<2xi32>,
                       %sq: tensor<2x8x2x1x512xf8E8M0FNU>, %sk: tensor<2x4x4x1x512xf8E8M0FNU>,
                       %bias: tensor<1x8x1x1xf32>) {
      %o, %lse = "tc.block_scaled_attention"(%q, %k, %v, %limits, %sq, %sk) ({
      ^bb0(%sum: f32):
        %slope = "tc.element"(%bias) {map = #heads} : (tensor<1x8x1x1xf32>) -> f32
        %biased = arith.addf %sum, %slope : f32
        "tc.yield"(%biased) : (f32) -> ()
      }) {scale = 0.125 : f32, q_layout = "bhmd", kv_layout = "bhnd", out_layout = "bhmd",
          causal_offset = 256 : i64, window_offset = -300 : i64, block = 32 : i64}
          : (tensor<2x8x256x64xf8E4M3FN>, tensor<2x4x512x64xf8E4M3FN>, tensor<2x4x512x128xf16>,
             tensor<2xi32>, tensor<2x8x2x1x512xf8E8M0FNU>, tensor<2x4x4x1x512xf8E8M0FNU>)
          -> (tensor<2x8x256x128xf16>, tensor<2x8x256xf32>)
      return
    }
    """

    q_scales: ext.Operand[ir.RankedTensorType]
    k_scales: ext.Operand[ir.RankedTensorType]
    block: ir.IntegerAttr

    @property
    def scaled_kind(self) -> str:
        """The kind of tcgen05.mma that multiplies queries by keys."""
        return packed_kind(_kinds(self))


def _kinds(op: BlockScaledAttentionOp) -> list[str]:
    values = (op.q, op.k, op.q_scales, op.k_scales)
    q, k, q_scale, k_scale = (str(each.type.element_type) for each in values)
    return kinds_of(q, k, q_scale, k_scale, integer(op, "block"))


_PARTS = {
    "scale =": "key_part = 512 : i64, scale =",
    "2x8x256x128xf16": "1x2x8x256x128xf32",
    "2x8x256xf32": "1x2x8x256xf32",
}


def _of(
    d: int = 64, q: str = "f8E4M3FN", k: str = "f8E4M3FN", scale: str = "f8E8M0FNU", block: int = 32
) -> dict[str, str]:
    """Changes of the example to queries and keys of these types, of heads of `d` elements."""
    sets = -(-d // block // 4)
    return {
        "2x8x256x64xf8E4M3FN": f"2x8x256x{d}x{q}",
        "2x4x512x64xf8E4M3FN": f"2x4x512x{d}x{k}",
        "2x8x2x1x512xf8E8M0FNU": f"2x8x2x{sets}x512x{scale}",
        "2x4x4x1x512xf8E8M0FNU": f"2x4x4x{sets}x512x{scale}",
        "block = 32": f"block = {block}",
    }


same_rules(
    BlockScaledAttentionOp,
    AttentionOp,
    {"key-part": {"scale =": "key_part = 0 : i64, scale ="}},
    {"key-part": _PARTS},
)


@verify(
    BlockScaledAttentionOp,
    "layouts",
    "tc",
    "q_layout must be {queries}, kv_layout {keys} and out_layout one of {results}, got {got}: 128 "
    "rows of a head share a block of scales; transpose q or k",
    bad=({'q_layout = "bhmd"': 'q_layout = "bmhd"'}, {'"bhnd"': '"bnhd"'}),
    good={'out_layout = "bhmd"': 'out_layout = "bmhd"', "2x8x256x128xf16": "2x256x8x128xf16"},
)
def _(op: BlockScaledAttentionOp) -> Broken:
    q, k, out = (string(op, name) for name in ("q_layout", "kv_layout", "out_layout"))
    if (q, k) == (QUERY_LAYOUTS[0], KEY_LAYOUTS[0]) and out in QUERY_LAYOUTS:
        return None
    legal = {"queries": QUERY_LAYOUTS[0], "keys": KEY_LAYOUTS[0], "results": QUERY_LAYOUTS}
    return {**legal, "got": [q, k, out]}


@verify(
    BlockScaledAttentionOp,
    "kind",
    SOURCE,
    "no kind of tcgen05.mma multiplies {types}, block {block}; there are: {kinds}",
    bad=(
        {"block = 32": "block = 16"},
        _of(scale="f8E4M3FN"),
        _of(q="f16"),
        {"2x4x4x1x512xf8E8M0FNU": "2x4x4x1x512xf8E4M3FN"},
    ),
    good=(
        _of(q="f8E5M2"),
        _of(256, "f8E5M2", "f4E2M1FN"),
        _of(128, "f4E2M1FN", "f4E2M1FN"),
        _of(128, "f4E2M1FN", "f4E2M1FN", "f8E4M3FN", 16),
    ),
)
def _(op: BlockScaledAttentionOp) -> Broken:
    if _kinds(op):
        return None
    values = (op.q, op.k, op.q_scales, op.k_scales)
    q, k, q_scale, k_scale = (each.type.element_type for each in values)
    types = f"{q} by {k} with scales {q_scale} and {k_scale}"
    return {"types": types, "block": integer(op, "block"), "kinds": "; ".join(map(str, KINDS))}


@verify(
    BlockScaledAttentionOp,
    "types",
    "tc",
    "all operands must be static, q, k and v of rank 4, v of f16 or bf16, out then of that type "
    "or f32, or v of f8E4M3FN or f8E5M2, out then of f16, bf16 or f32 (f32 with key_part), lse of "
    "f32 and rank 3 (out and lse one more with key_part), got {got}",
    bad=(
        {"2x4x512x128xf16": "2x4x512x128xf32"},
        {"2x8x256x128xf16": "2x8x256x128xbf16"},
        {"2x8x256xf32": "2x8x256xf16"},
    ),
    good=(
        {"2x4x512x128xf16": "2x4x512x128xf8E5M2"},
        {"2x8x256x128xf16": "2x8x256x128xf32"},
    ),
)
def _(op: BlockScaledAttentionOp) -> Broken:
    types = [value.type for value in (op.q, op.k, op.v, op.out, op.lse)]
    more = op.key_part is not None
    ranks = [each.rank for each in types] == [4, 4, 4, 4 + more, 3 + more]
    static = all(each.type.has_static_shape for each in (*op.operands, op.out, op.lse))
    v, out, lse = (str(each.element_type) for each in types[2:])
    results = (*(ATTENTION_TYPES if v in FP8 else (v,)), "f32")
    legal = v in (*ATTENTION_TYPES, *FP8) and out in (("f32",) if more else results)
    return None if static and ranks and legal and lse == "f32" else {"got": [*map(str, types)]}


same_rules(
    BlockScaledAttentionOp,
    AttentionOp,
    {
        "shapes": {"2x4x512x64xf8E4M3FN": "2x3x512x64xf8E4M3FN"},
        "lengths": {"tensor<2xi32>": "tensor<3xi32>"},
        "scale": {"0.125": "-0.125"},
        "out-scale": {"scale = 0.125 : f32": "scale = 0.125 : f32, out_scale = 2.0 : f64"},
        "band": {"-300 : i64": "257 : i64"},
        "body": {"^bb0(%sum: f32)": "^bb0(%sum: f32, %x: f32)"},
    },
)
same_rules(
    BlockScaledAttentionOp,
    EpilogueOp,
    {"scalar-ops": {"arith.addf": "arith.remf"}},
)


@verify(
    BlockScaledAttentionOp,
    "limits",
    "tc",
    "limits must be empty or numbers of keys, tensor<{batch}xi32>, got {got}: pages and sequences "
    "begin inside of blocks of scales",
    bad={"tensor<2xi32>": "tensor<2x5xi32>"},
    good={"%v, %limits, %sq": "%v, %sq", "2x4x512x128xf16>, tensor<2xi32>,": "2x4x512x128xf16>,"},
)
def _(op: BlockScaledAttentionOp) -> Broken:
    got = [each.type for each in op.limits]
    batch = op.extents()["b"]
    fits = len(got) <= 1 and all(list(each.shape) == [batch] for each in got)
    return None if fits else {"batch": batch, "got": ", ".join(map(str, got))}


@verify(
    BlockScaledAttentionOp,
    "scale-shapes",
    "tc",
    "d must be a multiple of the block {block}, and q_scales and k_scales {want}, in the layout "
    "blocked_128x4, got d = {d} and {got}; tc.scales_to_blocked makes it from rows of scales",
    bad=(
        {"2x4x4x1x512xf8E8M0FNU": "2x4x512x2xf8E8M0FNU"},
        {"2x8x2x1x512xf8E8M0FNU": "2x8x1x2x512xf8E8M0FNU"},
        _of(144),
    ),
    good=_of(256),
)
def _(op: BlockScaledAttentionOp) -> Broken:
    of, block, want = op.extents(), integer(op, "block"), []
    for letters in ("bhmd", "bgnd"):
        *outer, rows, k = (of[letter] for letter in letters)
        want.append([*outer, *scales_shape([rows, k], block, SCALE_LAYOUTS[1])])
    got = [list(each.type.shape) for each in (op.q_scales, op.k_scales)]
    if got == want and of["d"] % block == 0:
        return None
    return {"block": block, "want": want, "d": of["d"], "got": got}
