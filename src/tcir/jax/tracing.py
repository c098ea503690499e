"""Converts a function to StableHLO: JAX traces it for the shapes and types of its arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.export
import numpy as np
from jax.extend.core import Jaxpr, Literal, Var
from jax.interpreters.mlir import make_ir_context
from jax.tree_util import PyTreeDef
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func

from tcir.errors import Error, InputError
from tcir.interp.types import Array
from tcir.jax.calls import Call
from tcir.jax.widening import evaluate, primitives

Result = int | Array
"""A result of a function: the number of a result of the program, -1 - n for argument n returned
unchanged, or a constant."""


@dataclass(frozen=True)
class TracedFunction:
    """A traced function.

    stablehlo:  the program
    primitives: names of its primitives
    results:    results of the function
    tree:       structure of the results
    """

    stablehlo: str
    primitives: tuple[str, ...]
    results: tuple[Result, ...]
    tree: PyTreeDef


def traced(function: Callable[..., object], call: Call) -> TracedFunction:
    """Traces a function for the arguments of a call. Raises InputError for a function that JAX
    cannot trace, such as one with an `if` on array values, and for a function that computes
    nothing.
    """
    trees: list[PyTreeDef] = []

    def flat(*arrays: jax.Array) -> list[object]:
        args, kwargs = call.with_arrays(arrays)
        leaves, tree = jax.tree_util.tree_flatten(function(*args, **kwargs))
        trees.append(tree)
        return leaves

    try:
        closed = jax.make_jaxpr(flat)(*call.specs)
    except Error:
        raise
    except Exception as error:  # the function's own, and JAX's
        said = str(error).strip().splitlines() or [""]
        raise InputError(
            f"JAX cannot trace the function: {type(error).__name__}: {said[0]}"
        ) from error
    jaxpr = closed.jaxpr
    results, kept = _results(jaxpr)
    if not kept:
        raise InputError("expected a function that computes something, got one without a primitive")

    def program(*arrays: jax.Array) -> list[jax.Array]:
        found = evaluate(jaxpr, closed.consts, arrays)
        return [found[number] for number in kept]

    exported = jax.export.export(jax.jit(program, keep_unused=True), platforms=["cpu"])
    text = _text(exported(*call.specs).mlir_module())
    return TracedFunction(text, tuple(primitives(jaxpr)), results, trees[-1])


def _results(jaxpr: Jaxpr) -> tuple[tuple[Result, ...], list[int]]:
    """The results of the function, and the numbers of those that the program computes, without
    repetition."""
    arguments = {variable: -1 - number for number, variable in enumerate(jaxpr.invars)}
    places: dict[Var, int] = {}
    results: list[Result] = []
    kept: list[int] = []
    for number, atom in enumerate(jaxpr.outvars):
        if isinstance(atom, Literal):
            results.append(np.asarray(atom.val))
        elif atom in arguments:
            results.append(arguments[atom])
        else:
            if atom not in places:
                places[atom] = len(kept)
                kept.append(number)
            results.append(places[atom])
    return tuple(results), kept


def _text(exported: str) -> str:
    """The module with calls in place of composites, which torch-mlir's passes do not lower. The
    location of each op is the line of the function that created it."""
    composites: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        place = re.search(r'"([^"]*)":(\d+):(\d+)', str(op.location))
        if place:
            op.location = ir.Location.file(place[1], int(place[2]), int(place[3]))
        if op.name == "stablehlo.composite":
            composites.append(op)
        return ir.WalkResult.ADVANCE

    with make_ir_context():
        module = ir.Module.parse(exported)
        module.operation.walk(visit)
        for op in composites:
            with ir.InsertionPoint(op), op.location:
                call = func.CallOp(
                    [each.type for each in op.results],
                    op.attributes["decomposition"],
                    list(op.operands),
                )
            for old, new in zip(op.results, call.results, strict=True):
                old.replace_all_uses_with(new)
            op.erase()
        return str(module.operation.get_asm(enable_debug_info=True))
