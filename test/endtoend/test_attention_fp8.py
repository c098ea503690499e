"""Attention of e4m3 and e5m2 on both cores: every level, beside numpy; breaks; refusals."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir import codegen
from tcir.passmanager.pipeline import Pipeline, as_pipeline

from .attention_text import Attention
from .breaking import Broken, Caught, Edit, change_operand, change_text, erase, noticed, pick
from .breaking import set_attribute as set_
from .test_attention_wgmma import _bypass, _plus

HOPPER, BLACKWELL = "sm_90a", "sm_100a"
TARGETS = (HOPPER, BLACKWELL)
E4, E5 = "f8E4M3FN", "f8E5M2"
DTYPES: dict[str, Any] = {E4: ml_dtypes.float8_e4m3fn, E5: ml_dtypes.float8_e5m2}
ALL = (E4, E4, E4)
CASES = [
    Attention(h=1, m=64, n=128, d=32, kinds=ALL),
    Attention(m=130, n=200, kinds=ALL),
    Attention(m=200, n=300, causal=100, kinds=(E4, E5, E4)),
    Attention(n=128, d=128, kinds=(E5, E4, E5), element="bf16"),
    Attention(h=2, m=64, d=96, g=2, n=384, e=32, q="bmhd", kv="bnhd", out="bmhd", kinds=ALL),
    Attention(n=200, causal=-100, kinds=ALL, times=0.3),
    Attention(b=2, h=8, m=1, g=2, n=256, d=128, causal=199, kinds=ALL, result="f32", times=-2.0),
    Attention(h=1, m=70, n=500, d=32, window=-60, causal=60, kinds=(E5, E5, E4)),
    Attention(b=2, h=2, m=40, n=160, lengths=(160, 31), kinds=ALL),
    Attention(h=2, m=64, n=96, body=("bias hmn f16", "softcap 5"), kinds=ALL),
]
BOTH = [(target, case) for target in TARGETS for case in CASES]


def operands(case: Attention, seed: int = 0) -> list[Any]:
    draw = np.random.default_rng(seed)
    found = [
        draw.standard_normal(case.shapes[name]).astype(DTYPES[kind])
        for name, kind in zip("qkv", case.elements, strict=True)
    ]
    for letters, kind, shape in case.beside:
        assert letters and kind == "f16"
        found.append(draw.standard_normal(shape).astype(np.float16))
    return found + ([np.array(case.lengths, np.int32)] if case.lengths else [])


def beside_numpy(kernel: Any, case: Attention) -> None:
    """A unit of e4m3 of the sum of weighted magnitudes."""
    arrays = operands(case)
    out, lse = kernel.run(*arrays)
    beside = arrays[3 : 3 + len(case.beside)]
    want, logarithms = case.computed(*arrays[:3], *beside)
    size, _ = case.computed(*arrays[:2], np.abs(arrays[2].astype(np.float64)), *beside)
    assert (np.abs(out.astype(np.float64) - want) <= 2.0**-4 * np.abs(size) + 1e-6).all()
    finite = np.isfinite(logarithms)
    assert np.array_equal(np.isneginf(lse), ~finite)
    assert np.allclose(lse[finite], logarithms[finite], rtol=0, atol=2e-3)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("target", "case"), BOTH, ids=str)
def test_every_level(target: str, case: Attention) -> None:
    """Within the bound after tiling, and bit for bit the same after every later pass."""
    kernel = tcir.compile(case.text, "attention", target=target, validate=True, inputs="random")
    kernel.report.check()
    lines = [line.compared for line in kernel.report.passes[5:]]
    assert all("bit for bit as before" in each for each in lines)
    beside_numpy(kernel, case)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "options", [{"keys": 32, "stages": 2}, {"split_kv": 3}, {"keys": 64, "rows": 128}], ids=str
)
def test_options(target: str, options: dict[str, Any]) -> None:
    case = Attention(h=1, m=100, n=384, d=32, kinds=ALL)
    kernel = tcir.compile(
        case.text, "attention", target=target, validate=True, inputs="random", **options
    )
    kernel.report.check()
    beside_numpy(kernel, case)


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("target", TARGETS)
def test_orders_and_draws(target: str) -> None:
    """Rows of one key, rising maxima, dead rows, large logits, special values; no hazard."""
    case = Attention(h=1, m=100, n=300, d=32, causal=120, kinds=(E4, E5, E4))
    report = tcir.validate(case.text, "attention", target=target, orders=6, stages=2)
    report.check()


@pytest.mark.timeout(1200)
def test_two_tiles_share_keys() -> None:
    case = Attention(h=1, m=200, n=256, d=128, kinds=ALL)
    kernel = tcir.compile(
        case.text, "attention", target=BLACKWELL, validate=True, inputs="random", rows=256
    )
    kernel.report.check()
    beside_numpy(kernel, case)


@pytest.mark.parametrize("options", [{}, {"keys": 32, "stages": 1, "split_kv": 1}], ids=str)
def test_whole_scores_are_exact_in_tensor_memory(options: dict[str, Any]) -> None:
    """Exponentials are powers of two that e4m3 has, and sums keep all bits of f32."""
    case = Attention(h=1, m=64, n=160, d=32, scale=math.log(2), kinds=(E4, E5, E4), result="f32")
    draw = np.random.default_rng(0)
    q = np.zeros(case.shapes["q"])
    for place in np.ndindex(*q.shape[:-1]):
        q[place][draw.choice(case.d, 3, replace=False)] = draw.choice([-1, 1], 3)
    k, v = draw.integers(-2, 3, case.shapes["k"]), draw.integers(-8, 9, case.shapes["v"])
    arrays = [x.astype(DTYPES[kind]) for x, kind in zip((q, k, v), case.elements, strict=True)]
    out, lse = tcir.compile(case.text, "attention", target=BLACKWELL, **options).run(*arrays)
    want, logarithms = case.computed(*arrays)
    np.testing.assert_allclose(out, want, rtol=2.0**-22, atol=2.0**-24)
    np.testing.assert_allclose(lse, logarithms, rtol=2.0**-21)


def test_values_with_keys_next_to_each_other_are_not_copied() -> None:
    """The transpose of a cache [b, g, e, n] is one launch on sm_90a, another cache two."""
    case = Attention(h=1, m=64, n=128, d=32, kinds=ALL)
    text = case.text.replace(
        '%o, %lse = "tc.attention"(%q, %k, %v)',
        "%e = tensor.empty() : tensor<1x1x128x32xf8E4M3FN>\n"
        "%w = linalg.transpose ins(%v : tensor<1x1x32x128xf8E4M3FN>) "
        "outs(%e : tensor<1x1x128x32xf8E4M3FN>) permutation = [0, 1, 3, 2]\n"
        '%o, %lse = "tc.attention"(%q, %k, %w)',
    ).replace("%v: tensor<1x1x128x32xf8E4M3FN>", "%v: tensor<1x1x32x128xf8E4M3FN>")
    kernel = tcir.compile(text, "attention", target=HOPPER)
    assert len(kernel.launches.launches) == 1
    assert len(tcir.compile(case.text, "attention", target=HOPPER).launches.launches) == 2
    q, k, v = operands(case)
    out, _ = kernel.run(q, k, np.ascontiguousarray(v.swapaxes(2, 3)))
    want, _ = case.computed(q, k, v)
    size, _ = case.computed(q, k, np.abs(v.astype(np.float64)))
    assert (np.abs(out.astype(np.float64) - want) <= 2.0**-4 * size).all()


@pytest.mark.parametrize("target", TARGETS)
def test_from_arrays(target: str) -> None:
    """Factors of tensors are part of the scale, and of the results."""
    case = Attention(h=1, m=64, n=96, d=32, scale=0.5 * 0.25 * 32**-0.5, times=3.0, kinds=ALL)
    q, k, v = operands(case)
    made = tcir.compile_attention(q, k, v, factors=(0.5, 0.25, 3.0), target=target)
    out = made.run(q, k, v)
    want, _ = case.computed(q, k, v)
    size, _ = case.computed(q, k, np.abs(v.astype(np.float64)))
    assert out.dtype == np.float16
    assert (np.abs(out.astype(np.float64) - want) <= 2.0**-4 * size).all()


@pytest.mark.parametrize(
    ("target", "case"),
    [(HOPPER, Attention(n=1024, d=128, kinds=ALL)), (HOPPER, Attention(n=1024, kinds=ALL)),
     (HOPPER, Attention(n=1024, d=128, causal=0, kinds=ALL)),
     (BLACKWELL, Attention(m=256, n=2048, d=128, kinds=ALL)),
     (BLACKWELL, Attention(m=256, n=2048, d=128, causal=0, kinds=ALL)),
     (BLACKWELL, Attention(m=256, n=512, d=256, kinds=ALL))],
    ids=str,
)  # fmt: skip
def test_nothing_spills(target: str, case: Attention) -> None:
    kernel = tcir.compile(case.text, "attention", target=target)
    assert codegen.assemble(kernel.ptx, target=target).spill_bytes == 0


# --- breaks ------------------------------------------------------------------------------------

BROKEN = Attention(h=1, m=64, d=32, n=288, causal=230, kinds=(E4, E5, E4), times=3.0)
UNORDERED = ("hazard", "deadlock", "illegal")
VALUE = ("difference",)


def _other(name: str, operand: int) -> Edit:
    """Replaces the result of an op by one of its operands."""
    return lambda module: (
        pick(module, name).results[0].replace_all_uses_with(pick(module, name).operands[operand])
    )


BREAKS: list[tuple[str, str, str, Edit, tuple[str, ...]]] = [
    ("values not transposed", HOPPER, "transpose-values",
     change_text(r"array<i64: 0, 1, 3, 2>(.*)x32x288xf8", r"array<i64: 0, 1, 2, 3>\1x288x32xf8"),
     VALUE),
    ("sums of blocks before forgotten", HOPPER, "tile-attention", _other("tc.add_fragment", 1),
     VALUE),
    ("a block's sums forgotten", HOPPER, "tile-attention", _other("tc.add_fragment", 0), VALUE),
    ("sums not rescaled", HOPPER, "tile-attention", _bypass("tc.scale_fragment"), VALUE),
    ("exponentials too large", HOPPER, "tile-attention",
     set_("tc.online_max", "below", "80.0 : f32"), VALUE),
    ("factor of the results forgotten", HOPPER, "tile-attention",
     set_("tc.invert_rows", "times", "1.0 : f32"), VALUE),
    ("values 16 keys further", HOPPER, "tile-attention",
     change_operand("tc.tma_load", 1, _plus(16), 2), VALUE),
    ("a product not waited for", HOPPER, "skew-attention",
     set_("tc.wgmma_wait", "pending", "1 : i64", 2), UNORDERED),
    ("a wait removed", HOPPER, "assign-roles", erase("tc.mbarrier_wait", 1), UNORDERED),
    ("bytes of the values", HOPPER, "place-barriers",
     set_("tc.mbarrier_expect_tx", "nbytes", "2048 : i64", 2), UNORDERED),
    ("lanes keep their own bytes", HOPPER, "convert-tc-to-nvvm", _other("nvvm.shfl.sync", 1), ()),
    ("exponentials too large", BLACKWELL, "tile-attention",
     set_("tc.row_online_max", "below", "80.0 : f32"), VALUE),
    ("factor of the results forgotten", BLACKWELL, "tile-attention",
     set_("tc.row_inverse_sum", "times", "1.0 : f32"), VALUE),
    ("another slice of the exponentials", BLACKWELL, "tile-attention",
     set_("tc.mma", "a_slice", "0 : i64", 2), VALUE),
    ("scale of the exponentials", BLACKWELL, "tile-attention",
     set_("tc.row_exponentials", "scale", "0.125 : f32"), VALUE),
    ("a wait removed", BLACKWELL, "assign-roles", erase("tc.mbarrier_wait", 1), UNORDERED),
]  # fmt: skip
BREAKS = [each for each in BREAKS if each[4]]


def caught(target: str, at: str, edit: Edit) -> Caught:
    whole = as_pipeline("attention", stages=2)
    passes = list(whole.passes)[: whole.index(at) + 1]
    return noticed(BROKEN.text, Pipeline([*passes[:-1], Broken(passes[-1], edit)]), target)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("what", "target", "at", "edit", "by"),
    BREAKS,
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_breaks_are_caught(
    what: str, target: str, at: str, edit: Edit, by: tuple[str, ...]
) -> None:
    found = caught(target, at, edit)
    assert found, f"nothing noticed: {what}"
    assert found.at == at, found.text
    assert found.by.startswith((*by, "refused")), found.text


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "case", "options", "message"),
    [
        (HOPPER, Attention(d=48, kinds=ALL), {}, "a multiple of 32 elements, 32 to 128, got 48"),
        (HOPPER, Attention(d=256, kinds=ALL), {}, "sums of 13 bits of at most 128 products"),
        (BLACKWELL, Attention(d=80, kinds=ALL), {}, "a multiple of 32 elements, 32 to 256"),
        (BLACKWELL, Attention(kinds=ALL), {"keys": 16}, "keys must be a multiple of 32"),
        (HOPPER, Attention(kinds=ALL), {"keys": 48}, "keys must be a multiple of 32"),
        (
            HOPPER,
            Attention(kinds=ALL),
            {"tau": 8.0},
            "tau must be 0 for operands of 8 bits, got 8.0",
        ),
        (BLACKWELL, Attention(kinds=(E4, E4, "f16")), {}, "the tensor core multiplies no mixed"),
        (BLACKWELL, Attention(kinds=ALL, result=E4), {}, "out f16, bf16 or f32"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_refusals(target: str, case: Attention, options: dict[str, Any], message: str) -> None:
    with pytest.raises(tcir.Error, match=message):
        tcir.compile(case.text, "attention", target=target, **options)


def test_refused_arrays() -> None:
    q = np.zeros((1, 1, 8, 32), np.float16)
    eight = q.astype(DTYPES[E4])
    with pytest.raises(tcir.InputError, match="each one of f8E4M3FN, f8E5M2"):
        tcir.compile_attention(q, eight, eight)
