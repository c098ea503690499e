"""Bounds on the error of the attention that a kernel computes, element by element.

A kernel computes the scores S of a row in f32, and from the scores (`tcir.interp.online_softmax`)

    p_j = 2^((S_j - r) c),   l = sum p_j,   O = sum P_j v_j,   out = O / l

P is p rounded to the type of v. The reference r is within a few powers of two of the largest score
so far, so it changes from block to block of keys; whatever r is, it cancels in out. Let s, w, v and
o be the scores, weights, values and result in exact arithmetic, b_j the relative error of p_j, and
h_j the further error of P_j. Then

    out - o = (sum w_j b_j (v_j - o) + h_j v_j) / (1 + sum w_j b_j)

The relative error b is the sum of these terms:

    ln2 c |S_j - s_j|                    the scores, and the operands of which they are computed
    ln2 2^-24 (4 (|x_j| + TAU) + |r c|)  x = (s - r) c: the constant c, the product with r, which is
                                         rounded once for a row, the fma, and the factors of earlier
                                         sums, whose exponents add up to x at most
    2^-22 (1 + blocks)                   ex2.approx (PTX ISA 9.7.3.21), in p and in these factors;
                                         2^-13.26 + 2^-22 blocks where a kernel computes the
                                         exponentials of some keys by a polynomial

Where keys are divided into parts, whose results are combined (``tc.combine_parts``), b also has the
error of a part's weight 2^((L - most) log2(e)), where L = (r c + log2 l) ln2 is computed in f32 and
most is the largest L. With n keys the terms of this error are:

    ln2 2^-24 (4 (|r c| + log2 n) + 3 (|x_j| + log2 n))  L, the difference, its product
    2^-22 (1 + log2 n)                                   lg2.approx, and ex2.approx

The error h is by far the largest term. It is 2^-11 (f16), 2^-8 (bf16) or 2^-4 (e4m3, for values of
8 bits) of p, or half of the smallest number of the type; for e4m3 it is 2^-8 of that half, because
p is up to 2^8 there. Added to it are the errors of l (an f32 sum over keys and blocks in any
order), of O (`tcir.validation.bounds`), of the factors by which O is multiplied, and of rcp.approx
(2^-23).

In the worst case, all roundings of P go in one direction. The mean square treats roundings as
independent, except those of keys with the same P, which are rounded alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

from tcir.dialect import tc
from tcir.dialect.attributes import integer, string
from tcir.dialect.ops.attention import LIFT, POLYNOMIAL_ERROR
from tcir.interp.online_softmax import log2_scale
from tcir.interp.tensor.attention import attended, by_heads, keys_of, of_pages
from tcir.interp.tensor.block_scaled import row_major
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, DType
from tcir.validation.bounds import ROUNDING
from tcir.validation.rules import RULES, Known, overflow

if TYPE_CHECKING:
    from tcir._mlir import ir

Side: TypeAlias = tuple[Known, ...]
"""Elements, and their scales, if they have any: a scale for each element."""
Products: TypeAlias = Callable[[Side, Side], Known]
"""Sums of products of rows with columns, in f32, by a tensor core."""
Scores: TypeAlias = Callable[[Known], Known]
"""Scores of sums of products."""
Body: TypeAlias = Callable[[tuple[int, int]], Scores]
"""Scores of the sums of a batch and a head."""
TAU = 8
"""Most that the reference may be below the largest score, as an exponent of two."""
LEAST_BLOCK = 16
"""Least keys of a block, those of one instruction."""
EX2, HALF = 2.0**-22, 2.0**-24
"""Relative error of ex2.approx, plus half a unit of f32."""


class Powers(NamedTuple):
    """Largest relative error of an exponential of base two, and the root mean square of the
    error.
    """

    most: float
    mean: float


BY_EX2 = Powers(EX2, EX2 / 4)
BY_POLYNOMIAL = Powers(POLYNOMIAL_ERROR, POLYNOMIAL_ERROR)
"""Alike for keys with the same exponent: none of the errors is taken to cancel another."""


class Factors(NamedTuple):
    """The exponentials P, rounded to the type of the values, by which the values are multiplied.

    dtype: type of P
    lift:  largest P that occurs, while the unrounded p is at most 1
    least: exponent of the smallest p that certainly does not round to zero
    """

    dtype: DType
    lift: float
    least: int


FACTORS = {
    "f16": Factors(np.dtype(np.float16), 1.0, -24),
    "bf16": Factors(np.dtype(ml_dtypes.bfloat16), 1.0, -100),
    "f8E4M3FN": Factors(np.dtype(ml_dtypes.float8_e4m3fn), 2.0**LIFT, -9 - LIFT),
}
"""By the type of P (`tc.AttentionOp.powers`)."""
FLUSHED = 2.0**-126
"""Exponentials below it are zeros."""
MOST = 80.0
"""Exponent errors beyond this are equivalent: the weights are then arbitrary."""


def attention(
    op: tc.AttentionOp,
    operands: Sequence[Known],
    products: Products,
    body: Body | None,
    values: Mapping[ir.Value, Array],
    powers: Powers = BY_EX2,
) -> list[Known]:
    """Computes the results of ``tc.attention`` and bounds on their errors. values: the tensors that
    its body reads. powers: the errors of exponentials
    """
    of = op.extents()
    q = operands[0].like(partial(by_heads, layout=string(op, "q_layout")))
    k, v = (each.like(partial(by_heads, layout=string(op, "kv_layout"))) for each in operands[1:3])
    limits = [each.value for each in operands[3 : 3 + len(op.limits)]]
    k, v = (each.like(lambda array: of_pages(op, array, *limits)) for each in (k, v))
    sides: list[Side] = [(q,), (k,)]
    if isinstance(op, tc.BlockScaledAttentionOp):
        block = integer(op, "block")
        sides = [
            (each, scales.like(partial(_of_elements, shape=each.value.shape, block=block)))
            for each, scales in zip((q, k), operands[-2:], strict=True)
        ]
    keys = keys_of(op, *limits)
    keys = np.broadcast_to(keys, (of["b"], *keys.shape[1:]))[:, 0]
    rows, group = (of["b"], of["h"], of["m"]), of["h"] // of["g"]
    out, lse = (Known(*(np.zeros(shape) for _ in range(3))) for shape in ((*rows, of["e"]), rows))
    for batch in range(of["b"]):
        for head in range(of["h"]):
            own, shared = (batch, head), (batch, head // group)
            own_q, own_k = (
                tuple(each.like(itemgetter(at)) for each in side)
                for side, at in zip(sides, (own, shared), strict=True)
            )
            own_v = v.like(itemgetter(shared))
            scores = body(own) if body is not None else None
            mine = keys[batch]
            found = _Head(
                own_q,
                own_k,
                own_v,
                op.factor,
                mine,
                products,
                scores,
                powers,
                op.out_factor,
                FACTORS[op.powers],
            ).results()
            for whole, part in zip((out, lse), found, strict=True):
                for name in ("value", "error", "square"):
                    getattr(whole, name)[own] = getattr(part, name)
    reals = out.like(partial(by_heads, layout=string(op, "out_layout"))), lse
    interpreter = Interpreter()
    interpreter.values = dict(values)
    results = evaluate[op.operation.name](interpreter, op, *(each.value for each in operands))
    return [RULES["arith.truncf"](a, b) for a, b in zip(results, reals, strict=True)]


def _of_elements(scales: Array, shape: Sequence[int], block: int) -> Array:
    """Scales in the 128x4 layout as one for each element of an array of this shape; the sign of
    f8E4M3FN is ignored."""
    return np.abs(np.repeat(row_major(scales, shape, False, block), block, axis=-1))


def _reached(row: _Exponentials, size: Array, step: int = 1) -> Array:
    """Largest sum [m, e] of any of the first keys, or the last: an exponential that later keys
    outweigh is 1 as long as its score is the largest."""
    x = np.where(row.p > 0, row.x, -np.inf)
    top, sums = np.full((len(x), 1), -np.inf), np.zeros((len(x), size.shape[1]))
    reached = sums
    for key in range(x.shape[1])[::step]:
        higher = np.maximum(top, x[:, key, None])
        with np.errstate(invalid="ignore"):
            sums = sums * np.nan_to_num(np.exp2(top - higher))
            sums = sums + np.nan_to_num(np.exp2(x[:, key, None] - higher)) * size[key]
        top, reached = higher, np.maximum(reached, sums)
    return reached


@dataclass(frozen=True)
class _Head:
    """Queries [m, d], keys [n, d] and values [n, e] of one head; keys: mask of the keys that each
    row has; body: scores of the sums, if other; powers: what exponentials are off; times: factor of
    the results; factors: the exponentials that multiply values."""

    q: Side
    k: Side
    v: Known
    scale: float
    keys: Array
    products: Products
    body: Scores | None
    powers: Powers
    times: float
    factors: Factors

    def results(self) -> tuple[Known, Known]:
        """Computes the result [m, e] and the logarithms [m] of the sums of exponentials, before
        they are rounded.
        """
        q, k, v = (reduce(np.multiply, (x.wide for x in y)) for y in (self.q, self.k, (self.v,)))
        transposed = tuple(each.like(np.transpose) for each in self.k)
        scores, exact = self.products(self.q, transposed), q @ k.T
        if self.body is not None:
            scores = self.body(scores)
            exact = np.asarray(scores.value, np.float64)
        with np.errstate(all="ignore"):
            out, lse = attended(np.where(self.keys, exact * self.scale, -np.inf), v)
        certain = np.isnan(scores.wide) | np.isposinf(scores.wide)
        nan = np.logical_or.reduce(self.keys & certain & ~scores.open, axis=-1)
        open_ = np.logical_or.reduce(self.keys & scores.open, axis=-1) & ~nan
        none = ~self.keys | np.isneginf(scores.wide) | (nan | open_)[:, None]
        row = _Exponentials.of(
            np.where(none, 0.0, exact),
            scores,
            none,
            float(log2_scale(self.scale)),
            self.powers,
            self.factors.least,
        )
        known, class_ = self._sums(row, out), self._classes(row, nan, open_)
        return self._times(known).opened(class_), row.logarithms(lse).opened(open_)

    def _times(self, known: Known) -> Known:
        """Results multiplied by their factor, by way of a row's inverse sum, which is rounded."""
        if self.times == 1:
            return known
        size, half = abs(self.times), HALF * np.abs(self.times * known.finite().value)
        errors = size * (1 + 2.0**-10) * known.error + half, size**2 * known.square + half**2
        return Known(self.times * known.value, *errors)

    def _sums(self, row: _Exponentials, out: Array) -> Known:
        """Error of the results, where they are finite."""
        v = self.v.finite()
        o, size = np.abs(np.where(np.isfinite(out), out, 0.0)), v.size
        lift = self.factors.lift
        rounded = (row.p * lift).astype(self.factors.dtype)
        sums, total = self.products((Known.exact(rounded),), (v,)), row.total * lift
        weights = row.p / row.total
        half = np.where(row.whole, 0.0, _halves(row.p * lift, rounded)) / total
        kept = np.where(sums.open, 0.0, sums.error / total)

        def scaled(parts: Array) -> Array:
            return (weights * parts) @ size + o * (weights * parts).sum(axis=-1, keepdims=True)

        more = row.most.max(axis=-1, keepdims=True, initial=0)
        error = scaled(row.most) + o * (row.order * HALF + 4 * HALF)
        error += (1 + more) * (half @ size + kept + row.blocks * HALF * (weights @ size))
        error /= np.maximum(1 - row.sum_error, 1 / 2)
        limit = 2 * (1 + 2.0**-5) * size.max(axis=0, initial=0)  # both are means of the values
        error = np.where(row.sum_error < 1 / 2, np.minimum(error * (1 + 2.0**-10), limit), limit)

        square = (_alike(rounded) * half**2) @ size**2 + scaled(row.mean) ** 2
        square += np.where(sums.open, 0.0, sums.square) / total**2
        square += row.blocks * (HALF * (weights @ size)) ** 2 + (row.order + 4) * (HALF * o) ** 2
        most = overflow(np.dtype(np.float32)) / (2.0**TAU * (1 + 2.0**-5))
        over = size.sum(0) >= most
        if over.any():
            over = np.maximum(_reached(row, size), _reached(row, size, step=-1)) >= most
        known = Known(
            out, *(np.where(row.dead, 0.0, e) for e in (error, np.minimum(square, limit**2)))
        )
        return known.opened(over | sums.open)

    def _classes(self, row: _Exponentials, nan: Array, open_: Array) -> Array:
        """Mask of the results that may be anything because of NaN and infinities.

        A key that a row does not have is multiplied by zero, or not at all. An infinity is one of
        the result where its P is certainly no zero.
        """
        v, keys = self.v, self.keys
        sure = keys & (row.x - row.most / math.log(2) > self.factors.least) & (row.p > 0)

        def any_(rows: Array, columns: Array) -> Array:
            return (rows * 1.0) @ (columns * 1.0) > 0

        ends = [any_(sure, (v.wide == end) & ~v.open) for end in (np.inf, -np.inf)]
        certain = nan[:, None] | any_(keys, v.nan) | (ends[0] & ends[1])
        unsure = any_(~sure, np.isinf(v.wide) & ~v.open) | any_(~keys, v.nan)
        return ~certain & (open_[:, None] | unsure | v.open.any(axis=0))


@dataclass(frozen=True)
class _Exponentials:
    """The exponentials of the scores of a head, relative to the largest of each row.

    x, p:       exponents of two, -inf where there is no weight, and the exponentials
    total:      their sums, a column; dead: rows that have none
    most, mean: parts that an exponential may be off, and the root of the mean square
    far:        most that a natural exponent may be off, without a cap, a column
    largest:    |r c|, a column
    order:      additions of a sum, a column
    blocks:     most blocks of keys
    power:      part that an exponential is off by how it is computed, at most
    least:      exponent of the smallest power of two of the type of P
    """

    x: Array
    p: Array
    total: Array
    dead: Array
    most: Array
    mean: Array
    far: Array
    largest: Array
    order: Array
    blocks: int
    power: float
    least: int

    @staticmethod
    def of(
        exact: Array, scores: Known, none: Array, c: float, powers: Powers, least: int
    ) -> _Exponentials:
        """Computes the exponentials of scores and their errors.

        exact:  scores in float64
        scores: scores as a kernel computes them
        none:   mask of the keys without weight
        powers: errors of the exponentials
        least:  exponent of the smallest power of two of the type of P
        """
        with np.errstate(all="ignore"):
            error, square = (np.where(none, 0.0, e) for e in (scores.error, scores.square))
            away = np.where(none, 0.0, np.abs(exact - scores.wide))
        x = np.where(none, -np.inf, exact * c)
        most = x.max(axis=-1, keepdims=True, initial=-np.inf)
        x = x - np.where(np.isneginf(most), 0.0, most)
        p = np.exp2(x)
        largest = np.max(
            (np.abs(exact) + error) * c, axis=-1, keepdims=True, initial=0, where=~none
        )
        blocks = -(-exact.shape[-1] // LEAST_BLOCK)
        near, bits = np.abs(np.where(none, 0.0, x)), math.log2(exact.shape[-1])
        products = 4 * (near + TAU) + largest + 4 * (largest + bits) + 3 * (near + bits)
        products, calls = np.where(none, 0.0, products), 1 + blocks + bits

        def exponents(off: Array, half: float) -> Array:
            return np.where(none, 0.0, math.log(2) * (c * off + half * products))

        def parts(off: Array, half: float, computed: float) -> Array:
            capped = np.minimum(exponents(off, half), MOST)
            return np.where(none, 0.0, np.expm1(capped) + computed)

        factors = math.sqrt(calls) * BY_EX2.mean
        dead = np.logical_and.reduce(none, axis=-1, keepdims=True)
        return _Exponentials(
            x, p, np.maximum(p.sum(axis=-1, keepdims=True), 1), dead,
            parts(error + away, HALF, powers.most + calls * EX2) * (1 + 2.0**-10),
            parts(np.sqrt(square) + away, HALF / 2, math.hypot(powers.mean, factors)),
            exponents(error + away, HALF).max(axis=-1, keepdims=True, initial=0),
            largest, (~none).sum(axis=-1, keepdims=True) + 2 * blocks, blocks, powers.most, least,
        )  # fmt: skip

    @property
    def whole(self) -> Array:
        """Mask of the exponentials in rows that consist only of powers of two which every type
        represents, whichever of the scores is the reference r. The errors of these exponentials are
        below half a unit, so that P is exact.
        """
        near = np.where(np.isneginf(self.x), 0.0, self.x)
        rows = np.logical_and.reduce(near == np.rint(near), axis=-1, keepdims=True)
        certain: Array = rows & (near >= max(self.least, -24)) & (self.most < 2.0**-12)
        return certain

    @property
    def sum_error(self) -> Array:
        """Largest relative error of the sum of exponentials of each row, as a column."""
        parts = (self.p * self.most).sum(axis=-1, keepdims=True)
        return parts / self.total + self.order * HALF

    def logarithms(self, lse: Array) -> Known:
        """The logarithms of the sums and their errors. The error of lg2.approx is 2^-22 of the
        logarithm, or 2^-22 if the logarithm is below 1; it counts once more where parts are
        combined.
        """
        bits = np.abs(np.log2(self.total)) + TAU + 1
        size = np.abs(np.where(np.isfinite(lse), lse, 0.0))[:, None]
        last = 2 * (math.log(2) * (EX2 * bits + HALF * self.largest) + 4 * HALF * size)
        far = self.far + self.power + EX2 * (1 + self.blocks) + self.order * HALF
        off = self.sum_error
        sums = np.where(off < 1 / 2, -np.log1p(-np.minimum(off, 1 / 2)), far)
        mean = (self.p * self.mean).sum(axis=-1, keepdims=True) / self.total
        square = mean**2 + self.order * HALF**2 + last**2
        known = (np.where(self.dead, 0.0, each)[:, 0] for each in (sums + last, square))
        return Known(lse, *known)


def _halves(p: Array, rounded: Array) -> Array:
    """The most that P may be off from p."""
    part, least = ROUNDING[rounded.dtype.name]
    return np.minimum(p, np.maximum(part * p, max(least, FLUSHED)))


def _alike(rounded: Array) -> Array:
    """For each element of a row, the number of elements of the row that are equal to it."""
    numbers = rounded.view(f"u{rounded.dtype.itemsize}").astype(np.int64)
    keyed = numbers + (np.arange(len(rounded), dtype=np.int64) << 16)[:, None]
    _, where, counts = np.unique(keyed, return_inverse=True, return_counts=True)
    return counts[where].reshape(rounded.shape)
