"""`compile_attention_backward`: gradients of scaled dot-product attention from arrays."""

from __future__ import annotations

import math
from typing import Any

from tcir.arrays.attention import as_number, attention_band, check_positive
from tcir.arrays.kernel import ArrayKernel, build
from tcir.arrays.text import FunctionBuilder, TensorValue
from tcir.dialect.ops.attention import ATTENTION_TYPES
from tcir.dialect.ops.attention_backward import GRADIENTS
from tcir.errors import InputError, check_flags
from tcir.interp.types import Array
from tcir.target import DEFAULT_TARGET

NAME = "attention_backward"
NAMES = ("q", "k", "v", "out", "dout", "lse")


def compile_attention_backward(
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    dout: Array,
    lse: Array,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    pipeline: str = "layers",
    target: str = DEFAULT_TARGET.name,
    **options: Any,
) -> ArrayKernel:
    """Compiles the gradients dq, dk and dv of `compile_attention` to three launches: the row sums
    of dout · out, the gradient of the queries, and the gradients of keys and values.

    q, k, v:   as in `compile_attention`, of f16 or bf16, with D and E up to 128
    out, dout: [B, H, M, E] of the type of q: the result of attention, and its gradient
    lse:       [B, H, M] of f32: the logarithms that attention returned with ``lse=True``
    scale, causal, window, options: as in `compile_attention`

    The results have the shapes and the type of q, k and v. If several query heads share keys and
    values, the gradients of these keys and values are sums over the heads. The results do not
    depend on timing. Raises InputError for other shapes, types or numbers.
    """
    function = FunctionBuilder(NAME)
    arrays = zip(NAMES, (q, k, v, out, dout, lse), strict=True)
    given = {name: function.argument(name, x, (3 if name == "lse" else 4,)) for name, x in arrays}
    _check(given)
    (*rows, depth), keys = given["q"].shape, given["k"].shape[2]
    factor = 1 / math.sqrt(depth) if scale is None else as_number(NAME, "scale", scale)
    check_positive(NAME, scale=factor)
    check_flags(NAME, causal=causal)
    operands = [given[name] for name in ("q", "k", "v", "dout", "lse")]
    operands.append(_row_sums(function, given["dout"], given["out"]))
    names, types = (", ".join(map(str, operands)), ", ".join(each.type for each in operands))
    band, found = attention_band(causal, window, keys - rows[2]), []
    for of, parts in GRADIENTS.items():
        results = [TensorValue(f"%d{x}", given[x].shape, given[x].element) for x in parts]
        function.lines.append(
            f'{", ".join(map(str, results))} = "tc.attention_backward"({names}) {{of = "{of}", '
            f'scale = {factor!r} : f32, q_layout = "bhmd", kv_layout = "bhnd"{band}}} : ({types}) '
            f"-> ({', '.join(each.type for each in results)})"
        )
        found += results
    return build(function, tuple(found), pipeline, target, options)


def _check(given: dict[str, TensorValue]) -> None:
    kinds = {each.element for name, each in given.items() if name != "lse"}
    if given["q"].element not in ATTENTION_TYPES or len(kinds) > 1 or given["lse"].element != "f32":
        raise InputError(
            f"{NAME}: {', '.join(NAMES[:-1])} must have the same type, one of "
            f"{', '.join(ATTENTION_TYPES)} (the tensor core multiplies no others), lse f32, got "
            f"{', '.join(each.element for each in given.values())}"
        )
    (b, h, m, d), (_, g, n, _), e = given["q"].shape, given["k"].shape, given["v"].shape[3]
    want = [(b, h, m, d), (b, g, n, d), (b, g, n, e), (b, h, m, e), (b, h, m, e), (b, h, m)]
    if [each.shape for each in given.values()] != want or not g or h % g:
        raise InputError(
            f"{NAME}: expected q of [B, H, M, D], k of [B, G, N, D], v of [B, G, N, E], out and "
            "dout of [B, H, M, E] and lse of [B, H, M], H a multiple of G, got "
            f"{', '.join(str(list(each.shape)) for each in given.values())}"
        )


def _row_sums(function: FunctionBuilder, a: TensorValue, b: TensorValue) -> TensorValue:
    """Sums of a · b over the elements of a head, in f32."""
    whole, kept = "(b, h, m, e) -> (b, h, m, e)", "(b, h, m, e) -> (b, h, m)"
    maps = ", ".join(f"affine_map<{each}>" for each in (whole, whole, kept))
    zeros = function.zeros(a.shape[:3], "f32")
    kind = a.element
    text = (
        f"linalg.generic {{indexing_maps = [{maps}], iterator_types = "
        '["parallel", "parallel", "parallel", "reduction"]} '
        f"ins({a}, {b} : {a.type}, {b.type}) outs({zeros} : {zeros.type}) {{\n"
        f"  ^bb0(%x: {kind}, %y: {kind}, %s: f32):\n"
        f"    %wx = arith.extf %x : {kind} to f32\n    %wy = arith.extf %y : {kind} to f32\n"
        "    %xy = arith.mulf %wx, %wy : f32\n    %t = arith.addf %s, %xy : f32\n"
        "    linalg.yield %t : f32\n  } -> {type}"
    )
    return function.op(text, zeros.shape, "f32")
