"""The ops that follow a layer's sums: bias, residual, activation, one rounding."""

from __future__ import annotations

import re

from tcir.arrays.text import FunctionBuilder, TensorValue
from tcir.errors import InputError
from tcir.interp.types import Array

# Lines on %x in f32, whose result is %y; constants stand in braces.
ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "relu": ("%y = arith.maximumf %x, {0.0} : f32",),
    "gelu": (
        "%s = arith.mulf %x, {0.7071067811865476} : f32",
        "%e = math.erf %s : f32",
        "%p = arith.addf %e, {1.0} : f32",
        "%h = arith.mulf %p, {0.5} : f32",
        "%y = arith.mulf %x, %h : f32",
    ),
    "silu": (
        "%m = arith.negf %x : f32",
        "%e = math.exp %m : f32",
        "%p = arith.addf %e, {1.0} : f32",
        "%y = arith.divf %x, %p : f32",
    ),
    "sigmoid": (
        "%m = arith.negf %x : f32",
        "%e = math.exp %m : f32",
        "%p = arith.addf %e, {1.0} : f32",
        "%y = arith.divf {1.0}, %p : f32",
    ),
    "tanh": ("%y = math.tanh %x : f32",),
}
"""Ops of each activation, by name: relu, gelu (with erf), silu, sigmoid, tanh."""
RESULTS = ("f32", "f16", "bf16")


def finish(
    function: FunctionBuilder,
    sums: TensorValue,
    out: str,
    bias: Array | None,
    residual: Array | None,
    activation: str | None,
) -> TensorValue:
    """Adds the ops of act(sums + bias + residual), rounded once to the element type `out`.

    bias:     a vector along the last dimension, f32, f16 or bf16
    residual: an array of the shape of the sums, f32, f16 or bf16

    Raises InputError for another activation, shape or type.
    """
    if activation is not None and not (isinstance(activation, str) and activation in ACTIVATIONS):
        raise InputError(
            f"{function.name}: activation: expected {', '.join(ACTIVATIONS)} or None, "
            f"got {activation!r}"
        )
    if bias is None and residual is None and activation is None and out == sums.element:
        return sums
    if sums.element != "f32":
        raise InputError(
            f"{function.name}: a bias, a residual, an activation or another result type needs sums "
            f"of floats, got {sums.element}: sums of i8 are returned unchanged"
        )
    dims = [f"d{n}" for n in range(len(sums.shape))]
    whole, last = ", ".join(dims), dims[-1]
    operands, maps = [sums], [f"({whole})"]
    for name, array, shape, read in (
        ("bias", bias, sums.shape[-1:], f"({last})"),
        ("residual", residual, sums.shape, f"({whole})"),
    ):
        if array is None:
            continue
        value = function.argument(name, array)
        if value.shape != shape or value.element not in RESULTS:
            raise InputError(
                f"{function.name}: {name}: expected {list(shape)} of {', '.join(RESULTS)}, "
                f"got {list(value.shape)} of {value.element}"
            )
        operands.append(value)
        maps.append(read)
    body = _body(function, operands, activation, out)
    empty = function.empty(sums.shape, out)
    named = ", ".join(f"affine_map<({whole}) -> {read}>" for read in [*maps, f"({whole})"])
    kinds = ", ".join(['"parallel"'] * len(dims))
    block = ", ".join(f"%i{n}: {each.element}" for n, each in enumerate(operands))
    text = (
        f"linalg.generic {{indexing_maps = [{named}], iterator_types = [{kinds}]}}\n"
        f"      ins({', '.join(map(str, operands))} : {', '.join(v.type for v in operands)})\n"
        f"      outs({empty} : {empty.type}) {{\n"
        f"  ^bb0({block}, %o: {out}):\n"
        + "\n".join(f"    {line}" for line in body)
        + "\n  } -> {type}"
    )
    return function.op(text, sums.shape, out)


def _body(
    function: FunctionBuilder, operands: list[TensorValue], activation: str | None, out: str
) -> list[str]:
    lines, value = [], "%i0"
    for number, operand in enumerate(operands[1:], 1):
        added = f"%i{number}"
        if operand.element != "f32":
            lines.append(f"%w{number} = arith.extf {added} : {operand.element} to f32")
            added = f"%w{number}"
        lines.append(f"%a{number} = arith.addf {value}, {added} : f32")
        value = f"%a{number}"
    if activation is not None:
        steps = ACTIVATIONS[activation]
        for spelled in sorted({found for step in steps for found in re.findall("{(.*?)}", step)}):
            name = function.constant(float(spelled), "f32")
            steps = tuple(step.replace(f"{{{spelled}}}", name) for step in steps)
        lines += [step.replace("%x", value) for step in steps]
        value = "%y"
    if out != "f32":
        lines.append(f"%r = arith.truncf {value} : f32 to {out}")
        value = "%r"
    return [*lines, f"linalg.yield {value} : {out}"]
