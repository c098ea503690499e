"""Functions of JAX in any floating type, and shapes for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Array = jax.Array


def mlp(params: dict[str, Array], x: Array) -> Array:
    hidden = jax.nn.gelu(x @ params["up"] + params["bias"])
    return hidden @ params["down"]


def layer_norm(x: Array, scale: Array, bias: Array) -> Array:
    spread = x - x.mean(-1, keepdims=True)
    return spread * lax.rsqrt((spread**2).mean(-1, keepdims=True) + 1e-5) * scale + bias


def rms_norm(x: Array, scale: Array) -> Array:
    return x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5) * scale


def attention(q: Array, k: Array, v: Array) -> Array:
    scores = jnp.einsum("bqd,bkd->bqk", q, k) / 4
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[1:], bool)), scores, -jnp.inf)
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores), v)


def segments(q: Array, k: Array, v: Array) -> Array:
    """Rows have the keys whose number is theirs."""
    row, key = ((x[:, :, 0, 0] > 0).astype(jnp.int32) for x in (q, k))
    mask = row[:, None, :, None] == key[:, None, None, :]
    return jax.nn.dot_product_attention(q, k, v, mask=mask)


def rope(x: Array) -> Array:
    length, width = x.shape
    angles = jnp.arange(length)[:, None] / 100 ** (jnp.arange(width // 2) / (width // 2))
    a, b = jnp.split(x, 2, axis=-1)
    sin, cos = jnp.sin(angles).astype(x.dtype), jnp.cos(angles).astype(x.dtype)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def conv(x: Array, w: Array) -> Array:
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return lax.reduce_window(
        jax.nn.relu(y), jnp.array(0, y.dtype), lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
    )


def decoder(x: Array, even: Array, odd: Array) -> Array:
    """Transposed convolutions: without zeros between pixels, and with them."""
    shapes = ("NHWC", "HWIO", "NHWC")
    y = jax.nn.relu(lax.conv_transpose(x, even, (2, 2), "SAME", dimension_numbers=shapes))
    return lax.conv_transpose(y, odd, (2, 2), "VALID", dimension_numbers=shapes)


def swiglu(x: Array, gate: Array, up: Array, down: Array) -> Array:
    return (jax.nn.silu(x @ gate) * (x @ up)) @ down


def gradient(w: Array, x: Array) -> Array:
    return jax.grad(lambda w: jnp.tanh(x @ w).sum())(w)


def recurrent(w: Array, xs: Array) -> Array:
    def step(state: Array, x: Array) -> tuple[Array, None]:
        return jnp.tanh(state @ w + x), None

    return lax.scan(step, jnp.zeros_like(xs[0]), xs)[0]


def classifier(batch: dict[str, Array]) -> dict[str, Any]:
    """Two results of numbers, one that came in, and a constant."""
    logits = batch["x"] @ batch["w"]
    return {
        "best": logits.argmax(-1),
        "chances": jax.nn.log_softmax(logits),
        "x": batch["x"],
        "classes": 16,
    }


FUNCTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "mlp": (mlp, ({"up": (64, 128), "bias": (128,), "down": (128, 32)}, (16, 64))),
    "layer norm": (layer_norm, ((16, 128), (128,), (128,))),
    "rms norm": (rms_norm, ((16, 128), (128,))),
    "attention": (attention, ((2, 16, 32), (2, 16, 32), (2, 16, 32))),
    "segments": (segments, ((1, 64, 2, 32),) * 3),
    "rope": (rope, ((16, 32),)),
    "conv": (conv, ((1, 8, 8, 16), (3, 3, 16, 16))),
    "decoder": (decoder, ((1, 4, 5, 16), (4, 4, 16, 16), (3, 3, 16, 8))),
    "swiglu": (swiglu, ((16, 64), (64, 96), (64, 96), (96, 64))),
    "gradient": (gradient, ((64, 32), (16, 64))),
    "recurrent": (recurrent, ((16, 16), (3, 8, 16))),
    "classifier": (classifier, ({"x": (16, 64), "w": (64, 16)},)),
}
"""Functions, and the shapes of their arguments."""
