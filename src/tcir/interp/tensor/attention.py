"""Rules of ``tc.attention``, which is computed in float64 and rounded once, as contractions are,
and of ``tc.combine_parts``, which is computed in f32 step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tcir.dialect import tc
from tcir.dialect.attributes import integer, string
from tcir.errors import InputError
from tcir.interp import online_softmax
from tcir.interp.bands import allowed
from tcir.interp.tensor.arith import convert
from tcir.interp.tensor.block_scaled import row_major, widened
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.tensor.math import fma
from tcir.interp.types import Array, dtype_of


def by_heads(array: Array, layout: str) -> Array:
    """Converts an array between `layout` and [..., h, m, d], in which the dimension of heads comes
    before that of rows.
    """
    return array if layout[1] == "h" else array.swapaxes(-3, -2)


def keys_of(op: tc.AttentionOp, *limits: Array) -> Array:
    """Mask [b or 1, 1, m, n] of the keys to which each row attends. InputError for a length outside
    0 to n, or for invalid ends of sequences.
    """
    of = op.extents()
    if op.sequences:
        return _keys_of_sequences(op, *limits)[None, None]
    keys = allowed(of["m"], of["n"], of["n"], op.band)[None, None]
    if not limits:
        return keys
    lengths = limits[0].reshape(len(limits[0]), -1)[:, 0]
    for batch in np.flatnonzero((lengths < 0) | (lengths > of["n"]))[:1]:
        raise InputError(
            f"tc.attention: expected numbers of keys from 0 to {of['n']}, got {lengths[batch]} "
            f"for batch {batch}"
        )
    return keys & (np.arange(of["n"]) < np.asarray(lengths)[:, None, None, None])


def _keys_of_sequences(op: tc.AttentionOp, *limits: Array) -> Array:
    """Mask [m, n] of the keys of each row's sequence."""
    of, keys = op.extents(), np.zeros(op.shape[2:], bool)
    for ends, letter, what in zip(limits, "mn", ("rows", "keys"), strict=True):
        if problem := wrong_ends(ends, of[letter], what):
            raise InputError(f"tc.attention: {problem}")
    for (row, row_end), (key, key_end) in zip(*map(pairwise, limits), strict=True):
        rows, count = int(row_end - row), int(key_end - key)
        first = count - rows if op.aligned_ends else 0
        own = allowed(rows, count, count, op.band, (first, 0))
        keys[row:row_end, key:key_end] = own
    return keys


def wrong_ends(ends: Array, count: int, what: str) -> str:
    """Reason why `ends` do not divide `count` rows or keys into sequences; "" if they do."""
    rule = f"expected ends of {what} from 0 to {count} that never decrease, got"
    for place in np.flatnonzero(np.diff(ends) < 0)[:1]:
        return f"{rule} {ends[place + 1]} after {ends[place]} for sequence {place}"
    if ends[0] != 0 or ends[-1] != count:
        return f"{rule} {ends[0]} at first and {ends[-1]} at last"
    return ""


def attended(scores: Array, v: Array) -> tuple[Array, Array]:
    """Computes, in float64, the results of the attention and the logarithms of its sums of
    exponentials.

    scores: float64 [..., m, n], -inf where a row does not attend to the key; v: float64 [..., n, e]
    """
    with np.errstate(all="ignore"):
        most = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
        powers = np.exp(scores - np.where(most == -np.inf, 0, most))
        total = powers.sum(axis=-1, keepdims=True)
        weights = np.where(total == 0, 0, powers / np.where(total == 0, 1, total))
        lse = np.where(total == 0, -np.inf, np.log(total) + most)
        return weights @ v + 0.0, lse[..., 0]  # sums begin with +0


def of_pages(op: tc.AttentionOp, array: Array, *limits: Array) -> Array:
    """Returns keys or values as [b, g, n, d]. If the op has pages, they are gathered from pages
    [pages, g, page, d]. For an invalid page number, the gathered rows are zeros if the batch has no
    keys in that page; otherwise raises InputError.
    """
    if op.page is None:
        return array
    (rows,) = limits
    counts, table = rows[:, 0], rows[:, 1:]
    used = np.arange(table.shape[1]) * op.page < counts[:, None]
    some = (table >= 0) & (table < len(array))
    for batch, number in np.argwhere(used & ~some)[:1]:
        raise InputError(
            f"tc.attention: expected page numbers from 0 to {len(array) - 1}, got "
            f"{table[batch, number]} for page {number} of batch {batch}"
        )
    found = array[np.where(some, table, 0)]
    found[~some] = 0
    found = found.swapaxes(1, 2)
    return found.reshape(*found.shape[:2], -1, found.shape[-1])


@evaluate(tc.AttentionOp)
def attention(
    interpreter: Interpreter, op: tc.AttentionOp, q: Array, k: Array, v: Array, *limits: Array
) -> Sequence[Array]:
    of = op.extents()
    q = by_heads(q, string(op, "q_layout")).astype(np.float64)
    k, v = (by_heads(each, string(op, "kv_layout")).astype(np.float64) for each in (k, v))
    k, v = (of_pages(op, each, *limits) for each in (k, v))
    k, v = (np.repeat(each, of["h"] // of["g"], axis=1) for each in (k, v))
    with np.errstate(all="ignore"):
        sums = q @ k.swapaxes(-1, -2)
        if op.modified:
            (sums,) = interpreter.region(op, [sums.astype(np.float32)])
            sums = np.broadcast_to(sums, op.shape).astype(np.float64)
        scores = np.where(keys_of(op, *limits), sums * op.factor, -np.inf)
    part = op.key_part or of["n"]
    places = [slice(first, first + part) for first in range(0, of["n"], part)]
    parts = [attended(scores[..., at], v[..., at, :]) for at in places]
    out, lse = (np.stack(each) for each in zip(*parts, strict=True))
    out = out * np.float64(op.out_factor)
    if op.key_part is None:
        out, lse = out[0], lse[0]
    found = zip((by_heads(out, string(op, "out_layout")), lse), op.operation.results, strict=True)
    return [
        convert(np.ascontiguousarray(each, np.float32), dtype_of(result.type))
        for each, result in found
    ]


@evaluate(tc.BlockScaledAttentionOp)
def block_scaled_attention(
    interpreter: Interpreter, op: tc.BlockScaledAttentionOp, *operands: Array
) -> Sequence[Array]:
    block = integer(op, "block")
    q, k, *others, q_scales, k_scales = operands
    wide = (
        widened(each, row_major(scales, each.shape, False, block), block)
        for each, scales in ((q, q_scales), (k, k_scales))
    )
    return attention(interpreter, op, *wide, *others)


@evaluate(tc.CombinePartsOp)
def combine_parts(
    _: Interpreter, op: tc.CombinePartsOp, parts: Array, sums: Array
) -> Sequence[Array]:
    layout, most = string(op, "layout"), np.fmax.reduce(sums, axis=0)
    reference = np.where(most == -np.inf, np.float32(0), most)
    total = np.zeros(most.shape, np.float32)
    out = np.zeros((*most.shape, parts.shape[-1]), np.float32)
    with np.errstate(all="ignore"):
        for part, logarithm in zip(by_heads(parts, layout), sums, strict=True):
            weight = online_softmax.weight(logarithm, reference)
            total, out = total + weight, fma(part, weight[..., None], out)
        out = out * online_softmax.inverse_sum(total)[..., None]
    found = (by_heads(out, layout), online_softmax.combined_sum(reference, total))
    return [
        convert(np.ascontiguousarray(each), dtype_of(result.type))
        for each, result in zip(found, op.operation.results, strict=True)
    ]
