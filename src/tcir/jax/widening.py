"""Converts a jaxpr to the form that is lowered. Calls are inlined, short loops are unrolled, and
branches become selects. Products and sums of f16 and bf16 are computed in f32 and rounded once.

`jnp.sum` and similar functions sum in f32 by themselves. A product `a @ b` of f16 has type f16 in
StableHLO: XLA may add in f32 or in f16, whereas `linalg` would add in f16.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax._src.source_info_util import (  # not public; there is no other way
    register_exclusion,
    user_context,
    user_frame,
)
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from tcir.jax.rewrites import MOST_STEPS, REWRITES, unrolled

register_exclusion(str(Path(__file__).parent))  # lines of this folder are nobody's function
MOST_ELEMENTS = 1 << 16
"""Maximum number of elements of a constant that is computed at compile time."""
NARROW = (jnp.float16, jnp.bfloat16)
PRODUCTS = ("dot_general", "conv_general_dilated")
SUMMED_IN_F32 = (lax.DotAlgorithmPreset.F16_F16_F32, lax.DotAlgorithmPreset.BF16_BF16_F32)
"""Algorithms of a product, as `jax.nn.dot_product_attention` requests them, that every product of
16 bits has here: JAX lowers them for some platforms only."""
SUMS = ("reduce_sum", "reduce_prod", "cumsum", "cumprod", "cumlogsumexp", "reduce_window_sum")
CALLS = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "remat": "jaxpr",
    "checkpoint": "jaxpr", "remat2": "jaxpr",
}  # fmt: skip
"""Primitives that call another jaxpr once, which is inlined; the value is the name of the parameter
with that jaxpr."""


def evaluate(jaxpr: Jaxpr, constants: Sequence[Array], arguments: Sequence[Array]) -> list[Array]:
    """The results of a jaxpr, evaluated with calls inlined and sums of narrow types in f32."""
    values: dict[Var, Array] = dict(zip(jaxpr.constvars, constants, strict=True))
    values.update(zip(jaxpr.invars, arguments, strict=True))

    def read(atom: Var | Literal) -> Array:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        with _at(equation.source_info.traceback):
            results = _results(equation, [read(atom) for atom in equation.invars])
        values.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _at(traceback: object) -> AbstractContextManager[None]:
    """Context that sets locations to the user's line; inside a function of jnp, to the line that
    calls it."""
    found = traceback is not None and user_frame(traceback) is not None
    return user_context(traceback) if found else nullcontext()


def _results(equation: JaxprEqn, inputs: list[Array]) -> Sequence[Array]:
    name, params = equation.primitive.name, equation.params
    inner = params.get(CALLS.get(name, ""))
    if inner is not None:
        return _called(inner, inputs)
    if name == "cond":  # all branches, and a choice: they have no effects
        results = [_called(branch, inputs[1:]) for branch in params["branches"]]
        return [_chosen(inputs[0], each) for each in zip(*results, strict=True)]
    if name == "scan" and params["length"] <= MOST_STEPS:
        return unrolled(lambda given: _called(params["jaxpr"], given), inputs, params)
    if not any(isinstance(each, jax.core.Tracer) for each in inputs) and _is_small(equation):
        with jax.ensure_compile_time_eval():  # positions, tables
            return _bound(equation, inputs)
    return _bound(equation, inputs)


def _is_small(equation: JaxprEqn) -> bool:
    return all(each.aval.size <= MOST_ELEMENTS for each in equation.outvars)


def _called(inner: ClosedJaxpr | Jaxpr, inputs: Sequence[Array]) -> list[Array]:
    if isinstance(inner, ClosedJaxpr):
        return evaluate(inner.jaxpr, inner.consts, inputs)
    return evaluate(inner, (), inputs)


def _chosen(branch: Array, results: Sequence[Array]) -> Array:
    """The result of branch number `branch`, clamped to the first and the last branch."""
    chosen = results[-1]
    for number in reversed(range(len(results) - 1)):
        last = jnp.broadcast_to(branch <= number, chosen.shape)
        chosen = jax.lax.select(last, results[number], chosen)
    return chosen


def _bound(equation: JaxprEqn, inputs: list[Array]) -> list[Array]:
    """The results of one primitive, in the types that the jaxpr gives them."""
    name, params = equation.primitive.name, equation.params
    kinds = [each.aval.dtype for each in equation.outvars]
    narrow = any(kind in NARROW for kind in kinds)
    if params.get("precision") in SUMMED_IN_F32:
        params = {**params, "precision": None}
    if narrow and name in PRODUCTS:
        params = {**params, "preferred_element_type": jnp.dtype(jnp.float32)}
    elif narrow and name in SUMS:
        inputs = [each.astype(jnp.float32) if each.dtype in NARROW else each for each in inputs]
    if name in REWRITES:
        found = REWRITES[name](*inputs, **params)
    else:
        found = equation.primitive.bind(*inputs, **equation.primitive.get_bind_params(params))
    results = found if equation.primitive.multiple_results else [found]
    return [
        each.astype(kind) if each.dtype != kind else each
        for each, kind in zip(results, kinds, strict=True)
    ]


def primitives(jaxpr: Jaxpr) -> list[str]:
    """The names of all primitives in order; a call is replaced by the primitives of its jaxpr."""
    names: list[str] = []
    for equation in jaxpr.eqns:
        inner = equation.params.get(CALLS.get(equation.primitive.name, ""))
        if inner is None:
            names.append(equation.primitive.name)
        else:
            names += primitives(inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner)
    return names
