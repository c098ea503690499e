"""Attention as JAX writes it becomes the fused kernel, whatever the mask."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("jax") is None:
    pytest.skip("jax is not installed", allow_module_level=True)

import jax
import jax.numpy as jnp
from tiers import slow

import tcir.jax
from tcir.dialect.ops.attention import AttentionOp
from tcir.dialect.walk import walk
from tcir.imported.stablehlo import linalg
from tcir.jax.calls import Call
from tcir.jax.tracing import traced
from tcir.passes.raising.raise_attention import RaiseAttention
from tcir.program.source import load_module, mlir_context
from tcir.session.session import set_target

Array = jax.Array
Function = Callable[..., Array]
KEYS = 144
COUNTS = (30, 141)


def by_hand(q: Array, k: Array, v: Array, mask: Array) -> Array:
    """Scores, a softmax and a product."""
    scores = jnp.einsum("bmhd,bnhd->bhmn", q, k).astype(jnp.float32) * 0.25
    weights = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1)
    return jnp.einsum("bhmn,bnhd->bmhd", weights.astype(q.dtype), v)


def _up_to(counts: Array) -> Array:
    return (jnp.arange(KEYS)[None] < counts[:, None])[:, None, None, :]


def _causal() -> Array:
    return jnp.arange(KEYS)[:, None] >= jnp.arange(KEYS)[None]


dot_product = jax.nn.dot_product_attention
LENGTHS, MASK = jnp.array(COUNTS, jnp.int32), jnp.ones((2, 1, 1, KEYS), bool)
CASES: dict[str, tuple[Function, tuple[Array, ...], dict[str, int], bool, bool]] = {
    "lengths": (lambda q, k, v, n: by_hand(q, k, v, _up_to(n)), (LENGTHS,), {}, True, False),
    "lengths and causal": (
        lambda q, k, v, n: by_hand(q, k, v, _up_to(n) & _causal()),
        (LENGTHS,), {"last": 0}, True, False,
    ),
    "of JAX": (lambda q, k, v: dot_product(q, k, v), (), {}, False, False),
    "of JAX, lengths and causal": (
        lambda q, k, v, n: dot_product(q, k, v, key_value_seq_lengths=n, is_causal=True),
        (LENGTHS,), {}, False, True,
    ),
    "of JAX, a window": (
        lambda q, k, v: dot_product(q, k, v, is_causal=True, local_window_size=(19, 0)),
        (), {"first": -19, "last": 0}, False, False,
    ),
    "of JAX, a mask": (
        lambda q, k, v, mask: dot_product(q, k, v, mask=mask), (MASK,), {}, False, True
    ),
}  # fmt: skip
"""Function, operands after q, k and v, band, whether there are numbers of keys, and a body."""


def _heads(element: Any) -> list[Array]:
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.standard_normal((2, KEYS, 2, 16)), element) for _ in range(3)]


@pytest.mark.parametrize("element", [jnp.float16, jnp.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("name", CASES)
def test_masks_are_raised(name: str, element: Any) -> None:
    function, more, band, counted, modified = CASES[name]
    if band and element == jnp.bfloat16 and name.startswith("of JAX"):
        band, modified = {}, True  # scores of bf16 may be below the number that JAX masks with
    call = Call.of((*_heads(element), *more), {}).without_data()
    with mlir_context() as context:
        module = load_module(linalg(traced(function, call).stablehlo), context)
        set_target(module, "sm_90a")
        RaiseAttention().run(module)
        (op,) = [op for op in walk(module.operation) if isinstance(op, AttentionOp)]
        assert {n: x for n, x in vars(op.band).items() if x is not None} == band
        assert (op.lengths is not None, op.modified) == (counted, modified)


QUICK = ["lengths and causal"]


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", [n if n in QUICK else slow(n) for n in CASES])
def test_results_are_those_of_jax(name: str, target: str) -> None:
    """Within two units of f16 at the size of the largest value."""
    function, more, *_ = CASES[name]
    given = [*_heads(jnp.float16), *more]
    got = tcir.jax.compile(function, *given, target=target)(*given)
    wide = [each.astype(jnp.float32) for each in given[:3]]
    want = np.asarray(function(*wide, *more))
    assert np.abs(np.asarray(got, np.float32) - want).max() <= 2.0**-9 * np.abs(want).max()
