"""`compile_attention`: scaled dot-product attention from arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tcir.arrays.block_scaled import Scaled, global_scale, scaled_operand
from tcir.arrays.kernel import ArrayKernel, build
from tcir.arrays.text import FunctionBuilder, TensorValue, element_of
from tcir.dialect.limits import FP8
from tcir.dialect.ops.attention import ATTENTION_TYPES
from tcir.dialect.ops.block_scaled import SCALE_LAYOUTS, scales_shape
from tcir.errors import InputError, check_flags
from tcir.formats import BlockScaled
from tcir.interp.types import Array
from tcir.target import DEFAULT_TARGET

NAME = "attention"
MASKS = ("i1", "f16", "bf16", "f32")
"""Types of masks: booleans, or numbers that are added."""
SCORES = "bhmn"


def compile_attention(
    q: Array | Scaled,
    k: Array | Scaled,
    v: Array,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    mask: Array | None = None,
    key_lengths: Array | None = None,
    pages: Array | None = None,
    softcap: float | None = None,
    lse: bool = False,
    factors: tuple[float, float, float] = (1.0, 1.0, 1.0),
    out: DTypeLike | str | None = None,
    pipeline: str = NAME,
    target: str = DEFAULT_TARGET.name,
    **options: Any,
) -> ArrayKernel:
    """Compiles softmax(scale q kᵀ) v for all heads to one kernel, in which scores stay on the SM.

    q:       [B, H, M, D]. Either of f16 or bf16, with D a multiple of 16 from 16 to 256; or of
             ml_dtypes fp8 (e4m3 or e5m2), with D a multiple of 32, and at most 128 on sm_90a
    k, v:    [B, G, N, D] and [B, G, N, E] of the type of q, or of either fp8 type. H is a multiple
             of G: H / G consecutive query heads share a head of keys and values

    Instead of arrays, q and k may both be results of `tcir.formats.quantise` (NVFP4, MXFP4, MXFP8),
    or pairs of arrays, elements and scales, [B, H, M, D / block], as in
    `tcir.compile_block_scaled_matmul`. On sm_100a the tensor core then multiplies scaled elements.
    In this case D is a multiple of 32 (fp8) or 64 (fp4), v is of f16, bf16 or fp8, and `pages` is
    not allowed.

    scale:   factor of the scores, positive; 1 / sqrt(D) by default
    causal:  whether row i attends only to keys up to number i + N - M, so that the last row attends
             to all keys
    window:  (before, after): numbers of keys before and after its own key to which a row attends;
             None: all
    mask:    an array that broadcasts to [B, H, M, N]: of booleans, where True keeps a key, or of
             f32, f16 or bf16, which is added to the scores
    key_lengths: numbers of keys, [B] of int32, each from 0 to N: rows of batch b attend only to the
        keys below key_lengths[b]. Later keys may be loaded, so their values must be finite
    pages:   instead of key_lengths, a table [B, 1 + P] of int32: for each batch, the number of
             keys, then the numbers of the pages that contain them. k and v are then [pages, G,
             page, D] and [pages, G, page, E], page is a multiple of 16, and N is P * page
    softcap: scores become softcap tanh(score / softcap), before the mask
    lse:     whether the logarithms of the sums of exponentials, [B, H, M] of f32, are also a result
    factors: scale factors of the fp8 tensors q, k and v; those of q and k are positive
    out:     type of the result: by default that of v, or f16 if v is fp8; f32 is always allowed,
             and bf16 is allowed if v is fp8
    options: options of the pipeline, as in `tcir.compile`

    Raises InputError for other shapes, types or numbers.
    """
    function = FunctionBuilder(NAME)
    operands, scales = _operands(function, q, k, v)
    _check(operands, pages, bool(scales))
    (batch, heads, rows, depth), keys = operands[0].shape, operands[1].shape[2]
    keys *= 1 if pages is None else pages.shape[1] - 1
    factor = 1 / math.sqrt(depth) if scale is None else as_number(NAME, "scale", scale)
    three = list(factors) if np.shape(factors) == (3,) else ()
    if len(three) != 3:
        raise InputError(f"{NAME}: factors: expected three numbers, got {factors!r:.80}")
    of_q, of_k, of_v = (as_number(NAME, "factors", each) for each in three)
    check_flags(NAME, causal=causal, lse=lse)
    factor *= of_q * of_k * global_scale(q) * global_scale(k)
    check_positive(NAME, scale=factor, softcap=softcap)
    results = _results(operands[2])
    element = element_of(NAME, results[0] if out is None else out, results)
    body, factor = attention_body(function, mask, softcap, factor, (batch, heads, rows, keys))
    band = attention_band(causal, window, keys - rows)
    if of_v != 1:
        band += f", out_scale = {of_v!r} : f32"
    result = TensorValue("%o", (*operands[0].shape[:3], operands[2].shape[3]), element)
    sums = TensorValue("%lse", (batch, heads, rows), "f32")
    if key_lengths is not None:
        operands.append(_lengths(function, key_lengths, batch))
    if pages is not None:
        operands.append(_table(function, pages, batch, key_lengths))
    name, block = NAME, ""
    if scales:
        size = depth // scales[0].shape[-1]
        name, block = "block_scaled_attention", f", block = {size} : i64"
        operands += [_blocked(function, each) for each in scales]
    names, types = (", ".join(map(str, operands)), ", ".join(each.type for each in operands))
    function.lines.append(
        f'{result}, {sums} = "tc.{name}"({names}) ({{{body}}}) {{scale = {factor!r} : f32{block}, '
        f'q_layout = "bhmd", kv_layout = "bhnd", out_layout = "bhmd"{band}}} : ({types}) -> '
        f"({result.type}, {sums.type})"
    )
    return build(function, (result, sums) if lse else (result,), pipeline, target, options)


def _operands(
    function: FunctionBuilder, q: Array | Scaled, k: Array | Scaled, v: Array
) -> tuple[list[TensorValue], list[TensorValue]]:
    """Arguments for queries, keys and values, and for the scales of the first two, if they have
    any."""
    if not any(isinstance(each, BlockScaled | tuple | list) for each in (q, k)):
        return [function.argument(n, x, (4,)) for n, x in (("q", q), ("k", k), ("v", v))], []
    elements, scales = zip(
        *(scaled_operand(function, name, each) for name, each in (("q", q), ("k", k))), strict=True
    )
    found = [*elements, function.argument("v", v, (4,))]
    for each, of in zip(elements, scales, strict=True):
        if of.shape[:-1] != each.shape[:-1] or len(each.shape) != 4 or each.shape[3] % of.shape[-1]:
            raise InputError(
                f"{NAME}: {each.name[1:]}: expected elements of four dimensions, [.., D], and "
                f"scales [.., D / block], got {list(each.shape)} and {list(of.shape)}"
            )
    return found, list(scales)


def _blocked(function: FunctionBuilder, scales: TensorValue) -> TensorValue:
    """Scales in the layout of the tensor core."""
    *outer, rows, count = scales.shape
    text = f'"tc.scales_to_blocked"({scales}) : ({scales.type}) -> {{type}}'
    shape = scales_shape([rows, count], 1, SCALE_LAYOUTS[1])
    return function.op(text, (*outer, *shape), scales.element)


def _results(v: TensorValue) -> tuple[str, ...]:
    """The types that results may have, the default first."""
    return (*ATTENTION_TYPES, "f32") if v.element in FP8 else (v.element, "f32")


def _check(operands: list[TensorValue], pages: Array | None, scaled: bool) -> None:
    q, k, v = operands
    if pages is not None and getattr(pages, "ndim", 0) != 2:
        raise InputError(
            f"{NAME}: pages: expected an array of int32, [B, 1 + P], got {type(pages).__name__} of "
            f"{getattr(pages, 'ndim', 0)} dimensions"
        )
    kinds = {each.element for each in operands}
    if (
        not scaled
        and not kinds <= set(FP8)
        and (q.element not in ATTENTION_TYPES or kinds != {q.element})
    ):
        raise InputError(
            f"{NAME}: q, k and v must have the same type, one of {', '.join(ATTENTION_TYPES)}, or "
            f"each one of {', '.join(FP8)} (the tensor core multiplies no others), got "
            f"{q.element}, {k.element} and {v.element}"
        )
    shared = k.shape[1]
    fits = (
        k.shape[:3] == v.shape[:3]
        and q.shape[3] == k.shape[3]
        and (q.shape[0] == k.shape[0] or pages is not None)
        and shared
        and q.shape[1] % shared == 0
    )
    if not fits:
        raise InputError(
            f"{NAME}: expected q of [B, H, M, D], k of [B, G, N, D] and v of [B, G, N, E], H a "
            f"multiple of G, got {list(q.shape)}, {list(k.shape)} and {list(v.shape)}"
        )


def as_number(function: str, name: str, given: float) -> float:
    """Returns the given number. Raises InputError for anything that is not a number."""
    try:
        return float(given)
    except (TypeError, ValueError):
        raise InputError(f"{function}: {name}: expected a number, got {given!r:.80}") from None


def check_positive(function: str, **numbers: float | None) -> None:
    """Raises InputError for a number that is not positive and finite; None is accepted."""
    for name, number in numbers.items():
        if number is not None and not 0 < as_number(function, name, number) < math.inf:
            raise InputError(f"{function}: {name}: expected a positive number, got {number}")


def attention_band(causal: bool, window: object, last: int) -> str:
    """Text of the attributes for a causal mask and a window. Under a causal mask the last row
    attends to all keys.
    """
    pair = window if isinstance(window, tuple | list) else (None, None)
    numbers = [n for n in pair if n is not None]
    sound = len(pair) == 2 and all(isinstance(n, int | np.integer) and n >= 0 for n in numbers)
    if not sound or (window is not None and pair is not window):
        raise InputError(
            f"{NAME}: window: expected numbers of keys before and after a row's own, from 0 on, or "
            f"None for all, got {window!r:.80}"
        )
    before, after = pair
    if causal:
        after = 0 if after is None else min(after, 0)
    found = "" if after is None else f", causal_offset = {last + after} : i64"
    return found if before is None else f"{found}, window_offset = {last - before} : i64"


def attention_body(
    function: FunctionBuilder,
    mask: Array | None,
    softcap: float | None,
    scale: float,
    shape: tuple[int, ...],
) -> tuple[str, float]:
    """The text of the op's body ("" if it has none), and the scale that the op itself applies to
    the scores.
    """
    lines, score = ["^bb0(%sum: f32):"], "%sum"

    def op(text: str) -> str:
        lines.append(f"%s{len(lines)} = {text} : f32")
        return f"%s{len(lines) - 1}"

    if softcap is not None:
        score = op(f"math.tanh {op(f'arith.mulf {score}, {op(_constant(scale / softcap))}')}")
        scale = softcap
    if mask is not None:
        tensor = _mask(function, mask, shape)
        at = ", ".join(x if n > 1 else "0" for x, n in zip(SCORES, tensor.shape))
        lines.append(
            f'%e = "tc.element"({tensor}) {{map = affine_map<({", ".join(SCORES)}) -> ({at})>}} '
            f": ({tensor.type}) -> {tensor.element}"
        )
        if tensor.element == "i1":
            score = op(f"arith.select %e, {score}, {op('arith.constant 0xFF800000')}")
        else:
            score = op(f"arith.mulf {score}, {op(_constant(scale))}")
            added = "%e"
            if tensor.element != "f32":
                lines.append(f"%w = arith.extf %e : {tensor.element} to f32")
                added = "%w"
            score, scale = op(f"arith.addf {score}, {added}"), 1.0
    if score == "%sum":
        return "", scale
    return "\n".join([*lines, f'"tc.yield"({score}) : (f32) -> ()']), scale


def _constant(number: float) -> str:
    return f"arith.constant {number!r}"


def _lengths(function: FunctionBuilder, lengths: Array, batch: int) -> TensorValue:
    """The argument of numbers of keys."""
    tensor = function.argument("key_lengths", lengths, (1,))
    if (tensor.element, tensor.shape) != ("i32", (batch,)):
        raise InputError(
            f"{NAME}: key_lengths: expected int32 of shape [{batch}], a number for each batch, got "
            f"{tensor.element} of {list(tensor.shape)}"
        )
    return tensor


def _table(
    function: FunctionBuilder, pages: Array, batch: int, lengths: Array | None
) -> TensorValue:
    """The argument of a table of pages."""
    tensor = function.argument("pages", pages, (2,))
    if tensor.element != "i32" or tensor.shape[0] != batch or lengths is not None:
        raise InputError(
            f"{NAME}: pages: expected int32 of shape [{batch}, 1 + P], the number of keys of each "
            f"batch and its pages, without key_lengths, got {tensor.element} of "
            f"{list(tensor.shape)}{' with key_lengths' if lengths is not None else ''}"
        )
    return tensor


def _mask(function: FunctionBuilder, mask: Array, shape: tuple[int, ...]) -> TensorValue:
    """The argument of a mask, with four dimensions."""
    if getattr(mask, "ndim", 0) in range(1, len(shape)):
        mask = mask.reshape((1,) * (len(shape) - mask.ndim) + mask.shape)
    tensor = function.argument("mask", mask, (len(shape),))
    if tensor.element not in MASKS:
        raise InputError(
            f"{NAME}: mask: expected one of {', '.join(MASKS)}, got {tensor.element}; i1 (bool) "
            "leaves keys, numbers are added to scores"
        )
    if any(n not in (1, whole) for n, whole in zip(tensor.shape, shape, strict=True)):
        raise InputError(
            f"{NAME}: mask: expected a shape that broadcasts to [B, H, M, N], here "
            f"{list(shape)}, got {list(tensor.shape)}"
        )
    return tensor
