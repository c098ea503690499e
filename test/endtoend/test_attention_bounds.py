"""Bounds on attention: what kernels may differ from the rule, and what they may not.

`kernel` is the algorithm of fused kernels in numpy, block after block, without our own code;
`mistake` plants one error in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tcir
from tcir._mlir import ir
from tcir.dialect.ops.attention import POLYNOMIAL
from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context
from tcir.validation import bounds, compare, propagation
from tcir.validation.attention_bounds import BY_EX2, BY_POLYNOMIAL, Powers
from tcir.validation.draws import Draws
from tcir.validation.settings import Settings

Array = np.ndarray[Any, Any]
F16, BF16, F32 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)


@dataclass(frozen=True)
class Case:
    """One head: rows m, keys n, elements d and e."""

    m: int = 32
    n: int = 96
    d: int = 32
    e: int = 16
    dtype: np.dtype[Any] = F16
    out: np.dtype[Any] = F16
    scale: float = 0.125
    offset: int | None = None

    @property
    def text(self) -> str:
        name = {F16: "f16", BF16: "bf16", F32: "f32"}
        t, o = name[self.dtype], name[self.out]
        causal = "" if self.offset is None else f", causal_offset = {self.offset} : i64"
        q, k, v, out, lse = (
            f"tensor<1x1x{rows}x{each}x{kind}>" if each else f"tensor<1x1x{rows}xf32>"
            for rows, each, kind in (
                (self.m, self.d, t),
                (self.n, self.d, t),
                (self.n, self.e, t),
                (self.m, self.e, o),
                (self.m, 0, t),
            )
        )
        return f"""func.func @f(%q: {q}, %k: {k}, %v: {v}) -> ({out}, {lse}) {{
          %o, %lse = "tc.attention"(%q, %k, %v) ({{}}) {{scale = {self.scale!r} : f32,
              q_layout = "bhmd", kv_layout = "bhnd", out_layout = "bhmd"{causal}}}
              : ({q}, {k}, {v}) -> ({out}, {lse})
          return %o, %lse : {out}, {lse}
        }}"""

    def normal(self, seed: int = 0, spread: float = 1.0) -> list[Array]:
        draw = np.random.default_rng(seed)
        sizes = (self.m, self.d), (self.n, self.d), (self.n, self.e)
        q, k, v = (draw.standard_normal(size) for size in sizes)
        return [each.astype(self.dtype) for each in (q * spread, k, v)]


@cache
def loaded(case: Case) -> ir.Module:
    """The program of a case; its tests read it, and ask for it a hundred times."""
    with mlir_context() as context:
        return load_module(case.text, context)


def known(case: Case, arrays: list[Array], powers: Powers = BY_EX2) -> list[propagation.Known]:
    """The results of the op, and what they may be off."""
    module = loaded(case)
    with module.context:
        (function,) = (op.operation for op in module.body.operations)
        inputs = [each[None, None] for each in arrays]
        found = propagation.carried(
            function, inputs, lambda types: bounds.Sums(), propagation.UNKNOWN, powers=powers
        )
    return [each.like(lambda a: a[0, 0]) for each in found]


@np.errstate(all="ignore")
def kernel(
    case: Case,
    arrays: list[Array],
    *,
    block: int = 32,
    tau: float = 8.0,
    last_first: bool = False,
    skip: bool = False,
    mistake: str = "",
    exp2: Callable[[Array], Array] = np.exp2,
) -> tuple[Array, Array]:
    """O and the logarithms of the sums, in f32 steps; skip: blocks of keys that no row has; exp2:
    of the exponentials."""
    q, k, v = (each.astype(np.float64) for each in arrays)
    c = np.float32(case.scale * np.log2(np.e))
    if mistake == "no log2(e)":
        c = np.float32(case.scale)
    offset = case.offset
    if offset is not None:
        offset += {"causal <": -1, "causal + 1": 1}.get(mistake, 0)
        offset = 0 if mistake == "causal from the top" else offset
    keys = np.ones((case.m, case.n), bool)
    if offset is not None:
        keys = np.arange(case.n) <= np.arange(case.m)[:, None] + offset
    scores = np.where(keys, (q @ k.T).astype(F32), np.float32(-np.inf))
    if mistake == "finite mask":
        scores = np.where(keys, scores, np.float32(-5e4))
    if mistake == "zeros behind the keys":
        scores = np.hstack([scores, np.zeros((case.m, block), F32)])
        v = np.vstack([v, np.zeros((block, case.e))])
    starts = list(range(0, scores.shape[1], block))[:: -1 if last_first else 1]
    if mistake == "block lost":
        starts = starts[:-1]
    if mistake == "block twice":
        starts = [*starts, starts[-1]]
    m, total = np.full(case.m, -np.inf, F32), np.zeros(case.m, F32)
    o, before = np.zeros((case.m, case.e), F32), np.zeros((case.m, block), case.dtype)
    for number, start in enumerate(starts):
        if skip and not keys[:, start : start + block].any():
            continue
        s = scores[:, start : start + block]
        after = np.fmax(m, s.max(1) if mistake != "maximum of half a row" else s[:, ::2].max(1))
        if mistake == "tau 30":
            tau = 30.0
        reference = after if mistake == "no guard of -inf" else np.where(after == -np.inf, 0, after)
        exponent = ((m - reference) * c).astype(F32)
        keeps = (exponent >= -tau) & (tau > 0)
        if mistake != "maximum moves alone":
            after, reference = np.where(keeps, m, after), np.where(keeps, m, reference)
        alpha = np.where(keeps, 1, np.exp2(exponent.astype(np.float64))).astype(F32)
        shift = (np.asarray(reference, F32) * c).astype(F32)
        p = exp2((s.astype(np.float64) * c - shift[:, None]).astype(F32)).astype(F32)
        rounded = p.astype(case.dtype)
        if mistake == "stale quarter of P" and number:
            rounded[:, -block // 4 :] = before[:, -block // 4 :]
        before = rounded
        of_l = np.ones_like(alpha) if mistake == "l not rescaled" and number else alpha
        of_o = np.ones_like(alpha) if mistake == "O not rescaled" and number else alpha
        of_o = np.roll(alpha, 1) if mistake == "factor of another row" and number else of_o
        part = p[:, ::4] if mistake == "l of one thread" else p
        if not (mistake == "last block not in l" and number == len(starts) - 1):
            total = (total * of_l + part.sum(1, dtype=F32)).astype(F32)
        at = starts[(number + 1) % len(starts)] if mistake == "V of another stage" else start
        product = rounded.astype(np.float64) @ v[at : at + rounded.shape[1]]
        o = ((o * of_o[:, None]).astype(F32) + product).astype(F32)
        m = after
    dead = (total == 0) | np.isnan(total)
    if mistake == "no guard of rows without keys":
        dead = np.zeros_like(dead)
    out = o * (np.float32(1) / np.where(dead, np.float32(1), total))[:, None]
    if mistake == "not divided":
        out = o
    lse = np.where(total == 0, -np.inf, m.astype(np.float64) * c + np.log2(total))
    lse = lse if mistake == "base 2" else lse * np.log(2)
    return out.astype(case.out), lse.astype(F32)


def beyond(expected: list[propagation.Known], got: tuple[Array, Array]) -> list[str]:
    """Results that are beyond what they may be off: of an element, or in the mean square."""
    found = []
    for name, each, array in zip(("out", "lse"), expected, got, strict=True):
        off = compare.errors(each.value, array)
        strange = np.isnan(each.value) != np.isnan(array)
        if ((off > each.error) | (strange & np.isfinite(each.error))).any():
            found.append(name)
        elif np.isfinite(each.error).all():
            limit = bounds.squares_limit(each.square, each.value)
            if compare.mean_squares([each.value], [array], [each.square])[0] > limit:
                found.append(f"{name}, mean")
    return found


def rising(case: Case, arrays: list[Array]) -> list[Array]:
    """Each block of 32 keys raises the maximum of its rows, by more than tau."""
    q, k, v = (each.copy() for each in arrays)
    q[:, 0], k[:, 0] = 8, 16 * (np.arange(case.n) // 32)
    return [q, k, v]


def falling(case: Case, arrays: list[Array]) -> list[Array]:
    q, k, v = rising(case, arrays)
    return [q, k[::-1].copy(), v]


def uneven(case: Case, arrays: list[Array]) -> list[Array]:
    """Every other key is far larger than those beside it."""
    q, k, v = (each.copy() for each in arrays)
    q[:, 0], k[1::2, 0] = 8, 16
    return [q, k, v]


def negative(case: Case, arrays: list[Array]) -> list[Array]:
    """Logits near -1e5."""
    q, k, v = (each.copy() for each in arrays)
    q[:, 0], k[:, 0] = 1000, -800
    return [q, k, v]


def ones(_: Case, arrays: list[Array]) -> list[Array]:
    return [*arrays[:2], np.ones_like(arrays[2])]


CASES = [
    Case(),
    Case(dtype=BF16, out=BF16),
    Case(dtype=BF16, out=F32),
    Case(offset=64),
    Case(offset=-5),
    Case(m=1, n=512, d=64, e=64),
    Case(m=64, n=256, d=64, e=64, out=F32, scale=0.4),
    Case(m=2, n=16384, d=16, e=16),
]
SCHEDULES = [
    {"block": 32, "tau": 8.0},
    {"block": 16, "tau": 0.0, "last_first": True},
    {"block": 64, "tau": 4.0},
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("change", [None, rising, falling, negative, ones])
def test_kernels_are_within_their_bound(case: Case, change: Any) -> None:
    arrays = case.normal()
    arrays = change(case, arrays) if change else arrays
    expected = known(case, arrays)
    for how in SCHEDULES:
        assert beyond(expected, kernel(case, arrays, **how)) == []


@given(
    case=st.builds(
        Case,
        m=st.integers(1, 12),
        n=st.integers(1, 80),
        d=st.just(16),
        e=st.integers(1, 4),
        dtype=st.sampled_from([F16, BF16]),
        out=st.just(F32),
        scale=st.floats(2.0**-6, 2.0, width=32),
        offset=st.none() | st.integers(-8, 80),
    ),
    seed=st.integers(0, 1 << 16),
    spread=st.sampled_from([0.0, 2.0**-9, 0.25, 1.0, 4.0, 16.0]),
    tau=st.sampled_from([0.0, 4.0, 8.0]),
    block=st.sampled_from([16, 32]),
    last_first=st.booleans(),
)
@settings(deadline=None, max_examples=25)
def test_any_kernel_is_within_its_bound(
    case: Case, seed: int, spread: float, tau: float, block: int, last_first: bool
) -> None:
    arrays = case.normal(seed, spread)
    got = kernel(case, arrays, block=block, tau=tau, last_first=last_first)
    assert [each for each in beyond(known(case, arrays), got) if "mean" not in each] == []


@pytest.mark.parametrize("case", [*CASES[:2], *CASES[3:5]], ids=str)
@pytest.mark.parametrize("number", range(3), ids="qkv")
@pytest.mark.parametrize("values", [(np.nan,), (np.inf,), (-np.inf,), (np.nan, np.inf, -np.inf)])
def test_infinities_and_nan(case: Case, number: int, values: tuple[float, ...]) -> None:
    """Results that these make are of one class with any schedule; others stay within the bound."""
    for seed in range(2):
        arrays = case.normal(seed, 4.0)
        draw = np.random.default_rng(seed)
        for value in values:
            at = tuple(draw.integers(0, size) for size in arrays[number].shape)
            arrays[number][at] = value
        expected = known(case, arrays)
        for how in SCHEDULES:
            for skip in (False, True):
                got = kernel(case, arrays, skip=skip, **how)
                assert [each for each in beyond(expected, got) if "mean" not in each] == []


def test_what_is_certain_beside_infinities() -> None:
    """A NaN of v is NaN in its column for rows that have the key; a row of k that is NaN is so in
    all of these; what rows without the key have is open, as kernels multiply it by zero or not."""
    case = Case(offset=64)
    q, k, v = case.normal()
    v[70, 3] = np.nan
    out, lse = known(case, [q, k, v])
    assert np.isnan(out.value[6:, 3]).all() and (out.error[6:, 3] == 0).all()
    assert np.isinf(out.error[:6, 3]).all() and np.isfinite(lse.error).all()
    assert np.isfinite(np.delete(out.error, 3, axis=1)).all()
    k[80, 0] = np.nan
    out, lse = known(case, [q, k, v])
    assert np.isnan(out.value[16:]).all() and (out.error[16:] == 0).all()
    assert np.isnan(lse.value[16:]).all() and (lse.error[16:] == 0).all()
    assert np.isfinite(lse.error[:16]).all()


def test_rows_without_keys_are_exact() -> None:
    case = Case(offset=-5)
    out, lse = known(case, case.normal())
    assert (out.value[:5] == 0).all() and (out.error[:5] == 0).all()
    assert np.isneginf(lse.value[:5]).all() and (lse.error[:5] == 0).all()
    assert (out.error[6:] > 0).any(axis=1).all()


def test_errors_of_operands_are_carried() -> None:
    """What comes from a sum that rounds is off before, and any scores within it give a result
    within the bound."""
    text = """func.func @f(%a: tensor<1x1x8x16xf16>, %k: tensor<1x1x32x16xf16>,
                           %v: tensor<1x1x32x16xf16>) -> tensor<1x1x8x16xf32> {
      %q = math.exp %a : tensor<1x1x8x16xf16>
      %o, %lse = "tc.attention"(%q, %k, %v) ({}) {scale = 1.0 : f32, q_layout = "bhmd",
          kv_layout = "bhnd", out_layout = "bhmd"}
          : (tensor<1x1x8x16xf16>, tensor<1x1x32x16xf16>, tensor<1x1x32x16xf16>)
          -> (tensor<1x1x8x16xf32>, tensor<1x1x8xf32>)
      return %o : tensor<1x1x8x16xf32>
    }"""
    draw = np.random.default_rng(0)
    a = draw.standard_normal((1, 1, 8, 16)).astype(F16)
    k, v = draw.standard_normal((2, 1, 1, 32, 16)).astype(F16)
    with mlir_context() as context:
        module = load_module(text, context)
        (function,) = (op.operation for op in module.body.operations)
        (found,) = propagation.carried(
            function, [a, k, v], lambda types: bounds.Sums(), propagation.UNKNOWN
        )
    q = np.exp(a.astype(np.float64)).astype(F16)
    case = Case(m=8, n=32, d=16, e=16, scale=1.0, out=F32)
    exact = known(case, [q[0, 0], k[0, 0], v[0, 0]])[0]
    assert (found.error[0, 0] > exact.error).all()
    for step in (-1, 1):  # a unit of f16, by which exp of any accuracy may round to another number
        bits = np.where(draw.random(q.shape) < 0.5, q.view(np.int16) + step, q.view(np.int16))
        moved = bits.astype(np.int16).view(F16)[0, 0].astype(np.float64)
        scores = moved @ k[0, 0].astype(np.float64).T
        weights = np.exp(scores - scores.max(1, keepdims=True))
        out = weights / weights.sum(1, keepdims=True) @ v[0, 0].astype(np.float64)
        assert (np.abs(out - found.value[0, 0]) <= found.error[0, 0]).all()


NORMAL = {"plain": Case(), "causal": Case(offset=64), "dead": Case(offset=-5)}
MISTAKES = {
    "no log2(e)": ("plain", None),
    "causal <": ("causal", None),
    "causal + 1": ("causal", None),
    "causal from the top": ("causal", None),
    "finite mask": ("dead", negative),
    "zeros behind the keys": ("plain", None),
    "block lost": ("plain", None),
    "block twice": ("plain", None),
    "maximum of half a row": ("plain", uneven),
    "tau 30": ("plain", rising),
    "no guard of -inf": ("dead", None),
    "maximum moves alone": ("plain", None),
    "stale quarter of P": ("plain", None),
    "l not rescaled": ("plain", rising),
    "O not rescaled": ("plain", rising),
    "factor of another row": ("dead", None),
    "l of one thread": ("plain", None),
    "last block not in l": ("plain", None),
    "V of another stage": ("plain", None),
    "no guard of rows without keys": ("dead", None),
    "not divided": ("plain", None),
    "base 2": ("plain", None),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_beyond_the_bound(mistake: str) -> None:
    where, change = MISTAKES[mistake]
    case = NORMAL[where]
    arrays = case.normal()
    arrays = change(case, arrays) if change else arrays
    assert beyond(known(case, arrays), kernel(case, arrays)) == []
    assert beyond(known(case, arrays), kernel(case, arrays, mistake=mistake)) != []


def test_a_program_is_validated_within_its_bound() -> None:
    """The pass changes nothing; what counts is that the input has draws with a bound."""
    report = tcir.validate(Case(offset=64).text, "builtin.module(canonicalize)")
    assert report.ok and "random floats, special values, full range" in str(report)


def drawn(case: Case) -> dict[str, tuple[list[Array], bool]]:
    """What a program that is one attention is executed on besides random numbers; by its words the
    operands, and whether the result has to be exact."""
    text = case.text.replace(f"-> ({case.text.split('-> (')[1].split(')')[0]}) {{", "-> RESULT {")
    result = f"tensor<1x1x{case.m}x{case.e}x{'f16' if case.out == F16 else 'bf16'}>"
    text = text.replace("RESULT", result)
    text = text.replace(
        f"return %o, %lse : {result}, tensor<1x1x{case.m}xf32>", f"return %o : {result}"
    )
    with mlir_context() as context:
        module = load_module(text, context)
        draws = Draws.of(module, signature_of(module), Settings())
    return {draw.words: ([each[0, 0] for each in draw.inputs], draw.exact) for draw in draws.more}


@pytest.mark.parametrize(
    "case",
    [
        Case(n=512, scale=float(np.float32(np.log(2)))),
        Case(n=512, dtype=BF16, out=BF16, offset=400),
        Case(m=64, n=256, d=128, offset=-9),
    ],
    ids=str,
)
def test_draws_of_attention(case: Case) -> None:
    """Kernels are right on them; rows that have one key have its value exactly."""
    found = drawn(case)
    assert len(found) == 3 + (case.scale > 0.6)
    for words, (arrays, exact) in found.items():
        expected = known(case, arrays)
        reference = expected[0].value
        for how in SCHEDULES:
            got = kernel(case, arrays, skip=True, **how)
            assert beyond(expected, got) == [], words
            if exact:
                assert (got[0].view(np.uint16) == reference.view(np.uint16)).all()
    arrays, exact = found["rows of one key"]
    assert exact
    keys = allowed_keys(case)
    chosen = kernel(case, arrays)[0].astype(np.float64)
    of_row = (chosen[:, None] == arrays[2].astype(np.float64)).all(-1)
    assert (of_row.sum(1) == keys.any(1)).all() and not (of_row & ~keys).any()


def allowed_keys(case: Case) -> Array:
    if case.offset is None:
        return np.ones((case.m, case.n), bool)
    return np.arange(case.n) <= np.arange(case.m)[:, None] + case.offset


def test_exact_powers_of_two_show_a_lost_key() -> None:
    case = Case(m=16, n=128, d=16, e=16, scale=float(np.float32(np.log(2))))
    arrays = drawn(case)["powers of two"][0]
    q, k, v = arrays
    expected, seen = known(case, arrays), 0
    for key in range(case.n):
        less = Case(m=16, n=127, d=16, e=16, scale=case.scale)
        fewer = [q, np.delete(k, key, 0), np.delete(v, key, 0)]
        seen += beyond(expected, kernel(less, fewer)) != []
    assert seen == case.n


SEEN_BY = {
    "no log2(e)": "powers of two",
    "causal <": "rows of one key",
    "causal + 1": "maxima that rise",
    "causal from the top": "rows of one key",
    "finite mask": "logits near -1e5",
    "zeros behind the keys": "logits near -1e5",
    "block lost": "rows of one key",
    "block twice": "powers of two",
    "tau 30": "maxima that rise",
    "no guard of -inf": "rows of one key",
    "maximum moves alone": "maxima that rise",
    "stale quarter of P": "rows of one key",
    "l not rescaled": "maxima that rise",
    "O not rescaled": "maxima that rise",
    "factor of another row": "maxima that rise",
    "l of one thread": "rows of one key",
    "last block not in l": "maxima that rise",
    "V of another stage": "rows of one key",
    "no guard of rows without keys": "rows of one key",
    "not divided": "maxima that rise",
}


@pytest.mark.parametrize("mistake", SEEN_BY)
def test_a_mistake_shows_on_the_draws_of_a_program(mistake: str) -> None:
    """In the result alone: no program here returns the logarithms."""
    plain = Case(m=64, n=256, d=64, scale=float(np.float32(np.log(2))))
    case = Case(m=64, n=256, d=64, offset=190) if "causal" in mistake else plain
    case = Case(m=64, n=256, d=64, offset=-9) if "guard" in mistake or "finite" in mistake else case
    arrays, exact = drawn(case)[SEEN_BY[mistake]]
    right, wrong = kernel(case, arrays)[0], kernel(case, arrays, mistake=mistake)[0]
    reference = known(case, arrays)[0]
    if exact:
        assert (right == reference.value).all() and (wrong != reference.value).any()
    else:
        assert "out" in beyond(known(case, arrays), (wrong, right[..., 0]))[0]


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    "case", [Case(m=256, n=128, d=64, e=64, offset=-130), Case(m=300, n=300, offset=-140)]
)
def test_scores_of_large_numbers_have_bounded_exponentials(case: Case, target: str) -> None:
    """Rows with few keys, whose scores are up to 65504^2 d: results are finite, and logarithms off
    by more than the largest exponent that a sum of weights can tell."""
    report = tcir.validate(case.text, tcir.Pipeline(["tile-attention"]), target=target)
    assert "full range" in str(report)
    assert report.ok, str(report)


def cubic(x: Array, first: float = POLYNOMIAL[0]) -> Array:
    """2^x, by the polynomial; first: the coefficient of its first power."""
    n = np.rint(x.astype(np.float64))
    f = x - n
    power = np.exp2(n) * (1 + f * (first + f * (POLYNOMIAL[1] + f * POLYNOMIAL[2])))
    return np.where(np.isneginf(x), 0, power)


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_powers_by_a_polynomial_have_a_bound_of_their_own(dtype: np.dtype[Any]) -> None:
    """The logarithms, which no rounding of P hides, are beyond the bound of ex2.approx, and beyond
    that of the polynomial where a coefficient is off by one percent."""
    case = Case(dtype=dtype, out=dtype)
    arrays = case.normal()
    got = kernel(case, arrays, exp2=cubic)
    expected = known(case, arrays, BY_POLYNOMIAL)
    assert beyond(expected, got) == []
    assert "lse" in beyond(known(case, arrays), got)
    assert beyond(expected, kernel(case, arrays, exp2=partial(cubic, first=0.7)))
    assert (expected[0].error >= known(case, arrays)[0].error).all()
