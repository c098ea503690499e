"""Scaled dot-product attention on tensors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tcir._mlir import ext, ir
from tcir.dialect.attributes import optional_integer, optional_number, string
from tcir.dialect.limits import FP8, Legal
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, verify

QUERY_LAYOUTS = ("bhmd", "bmhd")
"""Orders of the dimensions of queries and results: batch, head, row, element of a head."""
KEY_LAYOUTS = ("bhnd", "bnhd")
"""Orders of the dimensions of keys and values."""
FAR = 1024.0
"""Exponents of two beyond which a product of score and scale, rounded to f32, is too coarse: of
scores that far from 0 differences are multiplied."""
LN_2, LOG2_E = math.log(2), math.log2(math.e)
PERIOD = 16
"""Columns of scores of which the last ones may have exponentials by `POLYNOMIAL`."""
POLYNOMIAL = (0.6932829022407532, 0.24221096932888031, 0.055008899420499802)
"""c1, c2, c3 in f32 of ``1 + c1 f + c2 f^2 + c3 f^3``, which is 2^f on [-1/2, 1/2] but for a part
of `POLYNOMIAL_ERROR`: the least possible of degree 3 with 1 at 0."""
POLYNOMIAL_ERROR = 1.014e-4
"""Largest relative error over all f of 24 bits, with every fma rounded."""
LEAST_EXPONENT = -127.0
"""An exponent of two whose power is 0 in f32, as of all below it."""
TO_WHOLE = 1.5 * 2**23 + 127
"""An f32 whose sum with an exponent of two x is rounded to a whole number; the low bits of the sum
are those of the exponent of 2^x in f32."""
LENGTHS = 3
"""Operand that is the numbers of keys, or these and the pages of keys and values; with sequences,
the ends of their rows, after which come those of their keys."""
SEQUENCE_LIMITS = 2
"""Operands from `LENGTHS` on if rows and keys are those of sequences."""
MOST_SEQUENCES = 1024
"""Each thread reads the ends one after another."""
ALIGNED_ENDS = "aligned_ends"
PAGE = Legal(range(16, 1 << 20, 16), "keys", "a box of TMA fills whole swizzle atoms of rows")
"""Keys of a page."""
ATTENTION_TYPES = ("f16", "bf16")
"""Types of queries, keys and values, and of results; e4m3 and e5m2 (`FP8`) are types of the former
only."""
EIGHT_BIT_POWERS = "f8E4M3FN"
"""Type of the exponentials that multiply values of 8 bits: the one with more digits."""
LIFT = 8
"""Powers of two by which the largest exponential of 8 bits is above 1: e4m3 has numbers up to 448,
and loses those below 2^-9."""


def powers_type(value: str) -> str:
    """Type to which exponentials are rounded before they multiply values, if the values have the
    type `value`."""
    return EIGHT_BIT_POWERS if value in FP8 else value


def by_polynomial(columns: int, polynomial: int) -> list[int]:
    """Numbers of the columns, out of `columns`, whose exponentials are computed by a polynomial:
    the last `polynomial` columns of every `PERIOD`."""
    return [n for n in range(columns) if n % PERIOD >= PERIOD - polynomial]


@dataclass(frozen=True)
class Band:
    """The keys that each row has: row i has the keys j with ``i + first <= j <= i + last``.

    first, last: the attributes ``window_offset`` and ``causal_offset``; None means no limit
    """

    first: int | None = None
    last: int | None = None

    @staticmethod
    def of(op: ir.OpView) -> "Band":
        """Returns the band that an op's attributes describe."""
        return Band(optional_integer(op, "window_offset"), optional_integer(op, "causal_offset"))

    def give(self, op: ir.OpView) -> None:
        """Sets the attributes of `op` that describe this band."""
        integer = ir.IntegerType.get_signless(64)
        for name, offset in (("window_offset", self.first), ("causal_offset", self.last)):
            if offset is not None:
                op.attributes[name] = ir.IntegerAttr.get(integer, offset)

    def scores(self, rows: range, keys: int) -> int:
        """Number of scores that the rows `rows` have in the band if the keys are numbered 0 to
        `keys` - 1."""
        first = -max(rows.stop, keys) if self.first is None else self.first
        last = keys if self.last is None else self.last
        return sum(max(min(row + last + 1, keys) - max(row + first, 0), 0) for row in rows)

    @property
    def limits(self) -> bool:
        """Whether the band leaves out keys, so that rows have different keys."""
        return self != Band()

    def __str__(self) -> str:
        ends = [
            f"{word} row {offset:+d}"
            for word, offset in (("from", self.first), ("up to", self.last))
            if offset is not None
        ]
        return f"keys {' '.join(ends)}" if ends else "no mask"


def broken_band(op: ir.OpView) -> Broken:
    """Values for the error message if the attributes of an op's band are illegal; else None."""
    given = [op.attributes.get(name, None) for name in ("causal_offset", "window_offset")]
    if all(isinstance(each, ir.IntegerAttr | None) for each in given):
        band = Band.of(op)
        if band.first is None or band.last is None or band.first <= band.last:
            return None
    return {"got": ", ".join(map(str, given))}


class AttentionOp(
    Op,
    name="attention",
    lowered_by=("tile-attention",),
    counted=True,
    traits=[ir.NoTerminatorTrait],
):
    """Scaled dot-product attention: ``out = softmax(scale * f(q * k^T)) * v`` for each head.

    ``q`` is ``[b, h, m, d]`` (``q_layout = "bhmd"``) or ``[b, m, h, d]`` (``"bmhd"``), ``k`` is
    ``[b, g, n, d]`` and ``v`` is ``[b, g, n, e]`` (``kv_layout = "bhnd"``), or n is before g in
    both (``"bnhd"``). ``out`` has the shape of ``q`` with e instead of d, and its own
    ``out_layout``. h is a multiple of g: head i reads the keys and values of head ``i div (h /
    g)``. ``scale`` is positive.

    With ``causal_offset``, row i has only the keys j <= i + causal_offset: 0 aligns the first row
    with the first key, n - m the last row with the last key. With ``window_offset``, it has only
    the keys j >= i + window_offset. ``limits``, if present, is ``[b]`` of i32: for each batch a
    number of keys from 0 to n. The rows of that batch have only the keys below this number; the
    keys from this number on are padding, or a part of a cache that is not filled. Values of keys
    that a row does not have must be finite: they may be multiplied by zero. A row without keys is
    0.

    With ``limits`` of ``[b, 1 + p]``, keys and values are in pages: the first dimension of ``k``
    and ``v`` is the number of pages, and n is the number of keys in a page. Each row of this table
    holds the number of keys of a batch, which fit in p pages, and then the numbers of its p pages.
    Entries beyond the page of the batch's last key are not used.

    f is the body: it takes a sum of products and ends in ``tc.yield`` of an f32. It may read
    elements of other tensors with ``tc.element``, whose map takes the indices ``[b, h, m, n]``. If
    it yields -inf, the row does not have that key. An empty body leaves the sums as they are.

    With two ``limits``, each ``[s + 1]`` of i32, rows and keys of s sequences follow each other
    without gaps, and b is 1: sequence i has the rows from element i of the first tensor up to
    element i + 1, and the second tensor gives its keys in the same way. In each tensor elements do
    not decrease, from 0 to m (rows) or n (keys). A row has only keys of its sequence. Offsets apply
    to the numbers of rows and keys in their sequence; with ``aligned_ends`` the last row of a
    sequence has the number of its last key. A body may only read elements that depend on the head
    alone.

    Scores and sums are f32; exponentials are rounded to the type of ``v``, and results are rounded
    to the type of ``out``. ``q``, ``k`` and ``v`` may each be e4m3 or e5m2; exponentials are then
    up to 2^8 and rounded to e4m3. Scale factors of ``q`` and ``k`` are part of ``scale``; the scale
    factor of ``v`` is part of ``out_scale``, an optional factor of the results. The result ``lse``
    is the natural logarithm of each row's sum of exponentials, ``[b, h, m]`` of f32, -inf for a row
    without keys.

    With ``key_part`` each result covers a part of the keys: part i has ``key_part`` keys, from ``i
    * key_part`` on. ``out``, of f32, and ``lse`` have the parts as their first dimension
    (``tc.combine_parts``).
    """

    example = """
    #keys = affine_map<(b, h, m, n) -> (b, 0, 0, n)>
    func.func @example(%q: tensor<2x8x256x64xf16>, %k: tensor<2x4x512x64xf16>,
                       %v: tensor<2x4x512x128xf16>, %mask: tensor<2x1x1x512xi1>) {
      %o, %lse = "tc.attention"(%q, %k, %v) ({
      ^bb0(%sum: f32):
        %none = arith.constant 0xFF800000 : f32
        %kept = "tc.element"(%mask) {map = #keys} : (tensor<2x1x1x512xi1>) -> i1
        %masked = arith.select %kept, %sum, %none : f32
        "tc.yield"(%masked) : (f32) -> ()
      }) {scale = 0.125 : f32, q_layout = "bhmd", kv_layout = "bhnd", out_layout = "bhmd",
          causal_offset = 256 : i64, window_offset = -300 : i64}
          : (tensor<2x8x256x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x128xf16>)
          -> (tensor<2x8x256x128xf16>, tensor<2x8x256xf32>)
      return
    }
    """

    q: ext.Operand[ir.RankedTensorType]
    k: ext.Operand[ir.RankedTensorType]
    v: ext.Operand[ir.RankedTensorType]
    limits: Sequence[ext.Operand[ir.RankedTensorType]]
    scale: ir.FloatAttr
    q_layout: ir.StringAttr
    kv_layout: ir.StringAttr
    out_layout: ir.StringAttr
    body: ext.Region
    out: ext.Result[ir.RankedTensorType]
    lse: ext.Result[ir.RankedTensorType]

    @property
    def factor(self) -> float:
        """Factor by which scores are multiplied."""
        return float(ir.FloatAttr(self.attributes["scale"]).value)

    @property
    def out_factor(self) -> float:
        """Factor by which results are multiplied."""
        factor = optional_number(self, "out_scale")
        return 1.0 if factor is None else factor

    @property
    def powers(self) -> str:
        """Type to which exponentials are rounded before they multiply values."""
        return powers_type(str(self.v.type.element_type))

    @property
    def band(self) -> Band:
        """The band of keys that each row has; it relates the number of a row to the numbers of its
        keys."""
        return Band.of(self)

    @property
    def lengths(self) -> ir.Value | None:
        """Number of keys of each batch; None if all rows have n keys."""
        return next(iter(self.limits), None)

    @property
    def sequences(self) -> int:
        """Number of sequences that rows and keys are divided into; 0 if they are not divided."""
        return int(self.limits[0].type.shape[0]) - 1 if len(self.limits) == SEQUENCE_LIMITS else 0

    @property
    def aligned_ends(self) -> bool:
        """Whether the last row of a sequence has the number of its last key."""
        return ALIGNED_ENDS in self.attributes

    @property
    def pages(self) -> int | None:
        """Largest number of pages of a batch; None if keys and values are not in pages."""
        rows = [each.type.shape for each in self.limits if each.type.rank > 1]
        return int(rows[0][1]) - 1 if rows else None

    @property
    def page(self) -> int | None:
        """Number of keys in a page; None if keys and values are not in pages."""
        layout = string(self, "kv_layout")
        return int(self.k.type.shape[layout.index("n")]) if self.pages is not None else None

    @property
    def key_part(self) -> int | None:
        """Number of keys in a part; None if each result covers all keys."""
        return optional_integer(self, "key_part")

    @property
    def parts(self) -> int:
        """Number of parts into which the keys are divided."""
        return -(-self.extents()["n"] // self.key_part) if self.key_part else 1

    @property
    def modified(self) -> bool:
        """Whether the op has a body, which modifies the scores."""
        return len(self.body.blocks) > 0

    @property
    def elements(self) -> Sequence[ir.OpView]:
        """The body's ``tc.element`` ops, which read other tensors."""
        block = self.body.blocks[0] if self.modified else ()
        return [op for op in block if op.operation.name == "tc.element"]

    @property
    def rank(self) -> int:
        """Number of dimensions of the scores, the domain of ``tc.element``'s maps."""
        return 4

    @property
    def shape(self) -> list[int]:
        """Extents of the scores."""
        return [self.extents()[letter] for letter in "bhmn"]

    def extents(self) -> dict[str, int]:
        """The sizes b, h, m and d of the queries, g and n of the keys, and e of the values."""
        q = dict(zip(string(self, "q_layout"), self.q.type.shape, strict=True))
        k = dict(zip(string(self, "kv_layout"), self.k.type.shape, strict=True))
        v = dict(zip(string(self, "kv_layout"), self.v.type.shape, strict=True))
        count = 1 if self.pages is None else self.pages
        return {**q, "g": k["h"], "n": k["n"] * count, "e": v["d"]}

    def scores(self) -> int:
        """Number of scores of a head that are not masked: one for each row and each key that the
        row has. Sequences are counted as if all of them had the same length."""
        extents, band, count = self.extents(), self.band, max(self.sequences, 1)
        rows, keys = -(-extents["m"] // count), -(-extents["n"] // count)
        if not band.limits:
            return count * rows * keys
        return count * band.scores(
            range(keys - rows, keys) if self.aligned_ends else range(rows), keys
        )


@verify(
    AttentionOp,
    "layouts",
    "tc",
    "q_layout and out_layout must be one of {queries}, kv_layout one of {keys}, got {got}",
    bad={'kv_layout = "bhnd"': 'kv_layout = "bhdn"'},
    good={'q_layout = "bhmd"': 'q_layout = "bmhd"', "2x8x256x64xf16": "2x256x8x64xf16"},
)
def _(op: AttentionOp) -> Broken:
    got = [string(op, name) for name in ("q_layout", "out_layout", "kv_layout")]
    if all(each in QUERY_LAYOUTS for each in got[:2]) and got[2] in KEY_LAYOUTS:
        return None
    return {"queries": QUERY_LAYOUTS, "keys": KEY_LAYOUTS, "got": got}


@verify(
    AttentionOp,
    "key-part",
    "tc",
    "key_part must be an i64 of at least 1, or left out, got {got}",
    bad={"scale =": "key_part = 0 : i64, scale ="},
    good={
        "scale =": "key_part = 512 : i64, scale =",
        "2x8x256x128xf16": "1x2x8x256x128xf32",
        "2x8x256xf32": "1x2x8x256xf32",
    },
)
def _(op: AttentionOp) -> Broken:
    got = op.attributes.get("key_part", None)
    legal = got is None or (isinstance(got, ir.IntegerAttr) and got.value > 0)
    return None if legal else {"got": got}


@verify(
    AttentionOp,
    "types",
    "tc",
    "q, k and v must be static, of rank 4 and of one type, f16 or bf16, out of that type or f32, "
    "or each f8E4M3FN or f8E5M2, out f16, bf16 or f32 (f32 with key_part), lse of f32 and rank 3 "
    "(out and lse one more with key_part), got {got}: the tensor core multiplies no mixed 16-bit "
    "types",
    bad=(
        {"2x4x512x128xf16": "2x4x512x128xbf16"},
        {"2x4x512x128xf16": "2x4x512x128xf8E4M3FN"},
    ),
    good=(
        {"2x8x256x128xf16": "2x8x256x128xf32"},
        {
            "2x8x256x64xf16": "2x8x256x64xf8E4M3FN",
            "2x4x512x64xf16": "2x4x512x64xf8E5M2",
            "2x4x512x128xf16": "2x4x512x128xf8E4M3FN",
        },
    ),
)
def _(op: AttentionOp) -> Broken:
    types = [value.type for value in (op.q, op.k, op.v, op.out, op.lse)]
    static = all(each.has_static_shape for each in types)
    more = op.key_part is not None
    ranks = [each.rank for each in types] == [4, 4, 4, 4 + more, 3 + more]
    q, k, v, out, lse = (str(each.element_type) for each in types)
    eight = {q, k, v} <= set(FP8)
    legal = eight or (q == k == v and q in ATTENTION_TYPES)
    results = ("f32",) if more else (*(ATTENTION_TYPES if eight else (q,)), "f32")
    if static and ranks and legal and out in results and lse == "f32":
        return None
    return {"got": ", ".join(map(str, types))}


@verify(
    AttentionOp,
    "shapes",
    "tc",
    "expected q [b, h, m, d], k [b, g, n, d], v [b, g, n, e], out [b, h, m, e] and lse [b, h, m] "
    "in their layouts, h a multiple of g, out and lse with a part for every key_part of the n keys "
    "in front, got {got}",
    bad=(
        {"2x4x512x64xf16": "2x3x512x64xf16"},
        {"2x8x256xf32": "2x8x512xf32"},
        {
            "scale =": "key_part = 200 : i64, scale =",
            "2x8x256x128xf16": "2x2x8x256x128xf32",
            "2x8x256xf32": "2x2x8x256xf32",
        },
    ),
    good={
        "scale =": "key_part = 200 : i64, scale =",
        "2x4x512x64xf16": "2x1x512x64xf16",
        "2x4x512x128xf16": "2x1x512x128xf16",
        "2x8x256x128xf16": "3x2x8x256x128xf32",
        "2x8x256xf32": "3x2x8x256xf32",
    },
)
def _(op: AttentionOp) -> Broken:
    of, front = op.extents(), [op.parts] if op.key_part else []
    shape = list(op.out.type.shape)
    out = dict(zip(string(op, "out_layout"), shape[len(front) :], strict=True))
    k = dict(zip(string(op, "kv_layout"), op.k.type.shape, strict=True))
    v = dict(zip(string(op, "kv_layout"), op.v.type.shape, strict=True))
    batches, keys = (of["b"], of["n"]) if op.page is None else (k["b"], op.page)
    fits = (
        k == {"b": batches, "h": of["g"], "n": keys, "d": of["d"]}
        and v == {**k, "d": of["e"]}
        and out == {"b": of["b"], "h": of["h"], "m": of["m"], "d": of["e"]}
        and shape[: len(front)] == front
        and list(op.lse.type.shape) == [*front, of["b"], of["h"], of["m"]]
    )
    if fits and of["g"] and of["h"] % of["g"] == 0:
        return None
    return {"got": [list(v.type.shape) for v in (op.q, op.k, op.v, op.out, op.lse)]}


def _sequences(batch: int = 1, ends: tuple[int, int] = (9, 9)) -> dict[str, str]:
    """Changes of the example to sequences."""
    rows, keys = (f"tensor<{count}xi32>" for count in ends)
    return {
        "(%q, %k, %v)": "(%q, %k, %v, %rows, %keys)",
        "%mask: tensor<2x1x1x512xi1>)": (
            f"%mask: tensor<1x8x1x1xi1>, %rows: {rows}, %keys: {keys})"
        ),
        "tensor<2x1x1x512xi1>": "tensor<1x8x1x1xi1>",
        "(b, 0, 0, n)": "(0, h, 0, 0)",
        "2x8x256x64xf16": f"{batch}x8x256x64xf16",
        "2x4x512x64xf16": f"{batch}x4x512x64xf16",
        "2x4x512x128xf16>)": f"{batch}x4x512x128xf16>, {rows}, {keys})",
        "2x4x512x128xf16": f"{batch}x4x512x128xf16",
        "2x8x256x128xf16": f"{batch}x8x256x128xf16",
        "2x8x256xf32": f"{batch}x8x256xf32",
    }


@verify(
    AttentionOp,
    "lengths",
    "tc",
    "expected nothing after q, k and v, or numbers of keys, tensor<{batch}xi32>, or a table of "
    "these and of pages, tensor<{batch}x(1 + pages)xi32>, or the ends of rows and of keys of up to "
    "{most} sequences, two of tensor<(sequences + 1)xi32>, got {got}",
    bad=(
        {
            "(%q, %k, %v)": "(%q, %k, %v, %mask)",
            "2x4x512x128xf16>)": "2x4x512x128xf16>, tensor<2x1x1x512xi1>)",
        },
        _sequences(ends=(9, 8)),
    ),
    good=_sequences(),
)
def _(op: AttentionOp) -> Broken:
    kinds = [each.type for each in op.limits]
    batch = dict(zip(string(op, "q_layout"), op.q.type.shape, strict=True))["b"]
    static = all(each.has_static_shape and str(each.element_type) == "i32" for each in kinds)
    shapes = [list(each.shape) for each in kinds]
    if len(kinds) == SEQUENCE_LIMITS:
        ends = range(2, MOST_SEQUENCES + 2)
        fits = shapes[0] == shapes[1] and len(shapes[0]) == 1 and shapes[0][0] in ends
    else:
        fits = len(kinds) < 2 and all(len(x) in (1, 2) and x[0] == batch for x in shapes)
    if static and fits:
        return None
    return {"batch": batch, "most": MOST_SEQUENCES, "got": ", ".join(map(str, kinds))}


@verify(
    AttentionOp,
    "sequences",
    "tc",
    "rows and keys of sequences must be of f16 or bf16, with a batch of 1, no key_part, and a body "
    "whose elements depend on the head only; aligned_ends is for such an op, got {got}",
    bad=(
        _sequences(batch=2),
        {"scale =": "aligned_ends, scale ="},
    ),
    good={**_sequences(), "scale =": "aligned_ends, scale ="},
)
def _(op: AttentionOp) -> Broken:
    if not op.sequences:
        return {"got": "aligned_ends without sequences"} if op.aligned_ends else None
    if (batch := op.extents()["b"]) != 1:
        return {"got": f"a batch of {batch}"}
    if op.powers in FP8:
        return {"got": "elements of 8 bits"}
    if op.key_part is not None:
        return {"got": f"key_part of {op.key_part}"}
    maps = [each.attributes["map"] for each in op.elements if {*each.dims} - {1, None}]
    return {"got": f"an element by {maps[0]}"} if maps else None


def _paged(page: int, pages: int) -> dict[str, str]:
    """Changes of the example to keys and values in nine pages."""
    table = f"tensor<2x{1 + pages}xi32>)"
    return {
        "(%q, %k, %v)": "(%q, %k, %v, %table)",
        "%mask: tensor<2x1x1x512xi1>)": f"%mask: tensor<2x1x1x512xi1>, %table: {table}",
        "2x4x512x64xf16": f"9x4x{page}x64xf16",
        "2x4x512x128xf16>)": f"9x4x{page}x128xf16>, {table}",
        "2x4x512x128xf16": f"9x4x{page}x128xf16",
    }


@verify(
    AttentionOp,
    "page",
    "tc",
    "the number of keys in a page must be {legal}, got {got}; take pages of 16 or more",
    bad=_paged(8, 64),
    good=_paged(128, 4),
)
def _(op: AttentionOp) -> Broken:
    return None if op.page is None or op.page in PAGE else {"legal": PAGE, "got": op.page}


@verify(
    AttentionOp,
    "scale",
    "tc",
    "scale must be a positive f32, got {got}: of a negative one the least score, not the largest, "
    "would have the largest exponential; negate q",
    bad={"0.125": "-0.125"},
    good={"0.125": "1.0"},
)
def _(op: AttentionOp) -> Broken:
    attribute = op.attributes["scale"]
    legal = isinstance(attribute, ir.FloatAttr) and str(attribute.type) == "f32"
    return None if legal and 0 < attribute.value < float("inf") else {"got": attribute}


@verify(
    AttentionOp,
    "out-scale",
    "tc",
    "out_scale must be a finite f32, or left out, got {got}",
    bad={"scale = 0.125 : f32": "scale = 0.125 : f32, out_scale = 2.0 : f64"},
    good={"scale = 0.125 : f32": "scale = 0.125 : f32, out_scale = 2.0 : f32"},
)
def _(op: AttentionOp) -> Broken:
    got = op.attributes.get("out_scale", None)
    legal = isinstance(got, ir.FloatAttr) and str(got.type) == "f32" and math.isfinite(got.value)
    return None if got is None or legal else {"got": got}


@verify(
    AttentionOp,
    "band",
    "tc",
    "causal_offset and window_offset must be i64, the second no larger than the first, got {got}",
    bad=({"256 : i64": "256.0 : f32"}, {"-300 : i64": "257 : i64"}),
    good={"256 : i64": "0 : i64", ", window_offset = -300 : i64": ""},
)
def _(op: AttentionOp) -> Broken:
    return broken_band(op)
