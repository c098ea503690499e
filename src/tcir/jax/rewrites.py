"""Rewrites primitives that StableHLO's own passes do not lower to linalg."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jax import Array, lax

Rule = Callable[..., Array]
MOST_STEPS = 64
"""Maximum number of steps of a scan that is unrolled."""


def _concatenate(*parts: Array, dimension: int) -> Array:
    """Concatenation: pads each part to the size of the result and selects it by position."""
    shape = list(parts[0].shape)
    shape[dimension] = sum(part.shape[dimension] for part in parts)
    place = lax.broadcasted_iota("int32", shape, dimension)
    zero, end = jnp.zeros((), parts[0].dtype), 0
    whole = jnp.zeros((), parts[0].dtype)
    for number, part in enumerate(parts):
        start, end = end, end + part.shape[dimension]
        around = [
            (start, shape[dimension] - end, 0) if d == dimension else (0, 0, 0)
            for d in range(len(shape))
        ]
        padded = lax.pad(part, zero, around)
        whole = jnp.where(place >= start, padded, whole) if number else padded
    return whole


def _select(which: Array, *cases: Array) -> Array:
    """`select_n` with the choice broadcast to one per element."""
    return lax.select_n(jnp.broadcast_to(which, cases[0].shape), *cases)


REWRITES: dict[str, Rule] = {"concatenate": _concatenate, "select_n": _select}
"""Rewrites by name of the primitive; each is called with the primitive's inputs and parameters."""


def unrolled(
    step: Callable[[Sequence[Array]], Sequence[Array]],
    inputs: Sequence[Array],
    params: dict[str, int],
) -> list[Array]:
    """The results of a `scan`, unrolled.

    step: body of the scan; its arguments are the constants, the carried values, and a slice
    """
    fixed, carried = params["num_consts"], params["num_carry"]
    constants, carry = inputs[:fixed], list(inputs[fixed : fixed + carried])
    rows = inputs[fixed + carried :]
    made: list[Sequence[Array]] = []
    order = range(params["length"])
    for number in reversed(order) if params["reverse"] else order:
        found = step([*constants, *carry, *(row[number] for row in rows)])
        carry = list(found[:carried])
        made.append(found[carried:])
    if params["reverse"]:
        made.reverse()
    return [*carry, *(_stacked(results) for results in zip(*made, strict=True))]


def _stacked(parts: Sequence[Array]) -> Array:
    return _concatenate(*(lax.expand_dims(part, [0]) for part in parts), dimension=0)
