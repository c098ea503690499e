"""Functions on tensors that reduce rows or columns, in linalg, and what they compute in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import scipy.special

Array = np.ndarray[Any, Any]

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32}
WIDE = {"f32": "f32", "f16": "f32", "bf16": "f32", "i32": "i32"}
LOW = {"f32": "0xFF800000", "i32": "-2147483648"}


def _head(rows: int, columns: int, element: str, result: str, more: str = "") -> str:
    wide = WIDE[element]
    zero, float_ = ("0", False) if wide == "i32" else ("0.0", True)
    matrix, across = f"{rows}x{columns}x{wide}", f"{rows}x{wide}"
    widened = (
        f"""
  %w = linalg.generic {{indexing_maps = [#mn, #mn], iterator_types = ["parallel", "parallel"]}} \
ins(%x : tensor<{rows}x{columns}x{element}>) outs(%em : tensor<{matrix}>) {{
  ^bb0(%a: {element}, %o: {wide}):
    %t = arith.extf %a : {element} to {wide}
    linalg.yield %t : {wide}
  }} -> tensor<{matrix}>"""
        if wide != element
        else f"""
  %w = linalg.copy ins(%x : tensor<{matrix}>) outs(%em : tensor<{matrix}>) -> tensor<{matrix}>"""
    )
    assert float_ or wide == "i32"
    return f"""#mn = affine_map<(m, n) -> (m, n)>
#m = affine_map<(m, n) -> (m)>
#n = affine_map<(m, n) -> (n)>
func.func @f(%x: tensor<{rows}x{columns}x{element}>{more}) -> {result} {{
  %zero = arith.constant {zero} : {wide}
  %low = arith.constant {LOW[wide]} : {wide}
  %em = tensor.empty() : tensor<{matrix}>
  %er = tensor.empty() : tensor<{across}>
  %ec = tensor.empty() : tensor<{columns}x{wide}>
  %zr = linalg.fill ins(%zero : {wide}) outs(%er : tensor<{across}>) -> tensor<{across}>
  %lr = linalg.fill ins(%low : {wide}) outs(%er : tensor<{across}>) -> tensor<{across}>
  %zc = linalg.fill ins(%zero : {wide}) outs(%ec : tensor<{columns}x{wide}>) \
-> tensor<{columns}x{wide}>{widened}"""


def _reduce(out: str, source: str, rows: int, columns: int, wide: str, op: str, dim: int) -> str:
    start = {"add": "z", "max": "l"}[op] + "rc"[1 - dim]
    name = (
        {"add": "add", "max": "maximum"}[op] if wide != "i32" else {"add": "add", "max": "maxs"}[op]
    )
    kind = "i" if wide == "i32" else "f"
    size = rows if dim else columns
    return f"""
  {out} = linalg.reduce ins({source} : tensor<{rows}x{columns}x{wide}>) \
outs(%{start} : tensor<{size}x{wide}>) dimensions = [{dim}] (%a: {wide}, %o: {wide}) {{
    %t = arith.{name}{kind} %a, %o : {wide}
    linalg.yield %t : {wide}
  }}"""


def _each(out: str, inputs: str, maps: str, rows: int, columns: int, body: str, last: str) -> str:
    """An elementwise op; inputs: name and type, by commas."""
    names, kinds = zip(*(each.split(":") for each in inputs.split(",")))
    numbers = [kind.strip().removesuffix(">").rpartition("x")[2] for kind in kinds]
    arguments = ", ".join(f"%a{n}: {kind}" for n, kind in enumerate(numbers))
    to = f"tensor<{rows}x{columns}x{last}>"
    return f"""
  %{out}e = tensor.empty() : {to}
  %{out} = linalg.generic {{indexing_maps = [{maps}, #mn], \
iterator_types = ["parallel", "parallel"]}} ins({", ".join(names)} : {", ".join(kinds)}) \
outs(%{out}e : {to}) {{
  ^bb0({arguments}, %o: {last}):{body}
    linalg.yield %r : {last}
  }} -> {to}"""


def reduction(op: str, dim: int, rows: int, columns: int, element: str) -> str:
    """The sums or maxima of a matrix over a dimension, f16 and bf16 in f32."""
    wide, size = WIDE[element], rows if dim else columns
    head = _head(rows, columns, element, f"tensor<{size}x{wide}>")
    body = _reduce("%y", "%w", rows, columns, wide, op, dim)
    return f"{head}{body}\n  return %y : tensor<{size}x{wide}>\n}}\n"


def softmax(rows: int, columns: int, element: str) -> str:
    """linalg.softmax over rows, of f16 and bf16 in f32."""
    matrix = f"tensor<{rows}x{columns}x{element}>"
    wide = f"tensor<{rows}x{columns}xf32>"
    rounded = _rounded("y", "s", rows, columns, element)
    return f"""{_head(rows, columns, element, matrix)}
  %s = linalg.softmax dimension(1) ins(%w : {wide}) outs(%em : {wide}) -> {wide}{rounded}
  return %y : {matrix}
}}
"""


def _rounded(out: str, source: str, rows: int, columns: int, element: str) -> str:
    kind = f"tensor<{rows}x{columns}xf32>"
    how = (
        "\n    %r = arith.addf %a0, %zero : f32"
        if element == "f32"
        else f"\n    %r = arith.truncf %a0 : f32 to {element}"
    )
    return _each(out, f"%{source}: {kind}", "#mn", rows, columns, how, element)


def layer_norm(rows: int, columns: int, element: str) -> str:
    """A layer norm over rows, with weight and bias, in f32."""
    matrix, row = f"tensor<{rows}x{columns}x{element}>", f"tensor<{columns}x{element}>"
    wide, totals = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>"
    widen = (
        "\n    %w0 = arith.addf %a3, %zero : f32\n    %b0 = arith.addf %a4, %zero : f32"
        if element == "f32"
        else f"\n    %w0 = arith.extf %a3 : {element} to f32\n"
        f"    %b0 = arith.extf %a4 : {element} to f32"
    )
    end = (
        "\n    %r = arith.addf %k, %b0 : f32"
        if element == "f32"
        else f"\n    %l = arith.addf %k, %b0 : f32\n    %r = arith.truncf %l : f32 to {element}"
    )
    return f"""{_head(rows, columns, element, matrix, f", %g: {row}, %b: {row}")}
  %count = arith.constant {columns}.0 : f32
  %epsilon = arith.constant 1.0e-05 : f32{_reduce("%s", "%w", rows, columns, "f32", "add", 1)}
{
        _each(
            "c",
            f"%w: {wide}, %s: {totals}",
            "#mn, #m",
            rows,
            columns,
            '''
    %p = arith.divf %a1, %count : f32
    %r = arith.subf %a0, %p : f32''',
            "f32",
        )
    }
{
        _each(
            "q",
            f"%c: {wide}",
            "#mn",
            rows,
            columns,
            '''
    %r = arith.mulf %a0, %a0 : f32''',
            "f32",
        )
    }
{_reduce("%v", "%q", rows, columns, "f32", "add", 1)}
{
        _each(
            "y",
            f"%c: {wide}, %v: {totals}, %s: {totals}, %g: {row}, %b: {row}",
            "#mn, #m, #m, #n, #n",
            rows,
            columns,
            f'''
    %p = arith.divf %a1, %count : f32
    %q0 = arith.addf %p, %epsilon : f32
    %i = math.rsqrt %q0 : f32
    %j = arith.mulf %a0, %i : f32{widen}
    %k = arith.mulf %j, %w0 : f32{end}''',
            element,
        )
    }
  return %y : {matrix}
}}
"""


def rms_norm(rows: int, columns: int, element: str) -> str:
    """An RMS norm over rows, with weight, in f32."""
    matrix, row = f"tensor<{rows}x{columns}x{element}>", f"tensor<{columns}x{element}>"
    wide, totals = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>"
    end = (
        "\n    %r = arith.mulf %j, %a2 : f32"
        if element == "f32"
        else f"\n    %k = arith.extf %a2 : {element} to f32\n    %l = arith.mulf %j, %k : f32"
        f"\n    %r = arith.truncf %l : f32 to {element}"
    )
    return f"""{_head(rows, columns, element, matrix, f", %g: {row}")}
  %count = arith.constant {columns}.0 : f32
  %epsilon = arith.constant 1.0e-05 : f32
{
        _each(
            "q",
            f"%w: {wide}",
            "#mn",
            rows,
            columns,
            '''
    %r = arith.mulf %a0, %a0 : f32''',
            "f32",
        )
    }
{_reduce("%v", "%q", rows, columns, "f32", "add", 1)}
{
        _each(
            "y",
            f"%w: {wide}, %v: {totals}, %g: {row}",
            "#mn, #m, #n",
            rows,
            columns,
            f'''
    %p = arith.divf %a1, %count : f32
    %q0 = arith.addf %p, %epsilon : f32
    %i = math.rsqrt %q0 : f32
    %j = arith.mulf %a0, %i : f32{end}''',
            element,
        )
    }
  return %y : {matrix}
}}
"""


def _norm(x: Array, w: Array, b: Array) -> Array:
    mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    return np.asarray((x - mean) / np.sqrt(variance + 1e-5) * w + b)


OPS: dict[str, tuple[Any, Any, int]] = {
    "sum": (lambda *s: reduction("add", 1, *s), lambda x: x.sum(1), 0),
    "max": (lambda *s: reduction("max", 1, *s), lambda x: x.max(1), 0),
    "column_sum": (lambda *s: reduction("add", 0, *s), lambda x: x.sum(0), 0),
    "softmax": (softmax, lambda x: scipy.special.softmax(x, 1), 0),
    "layer_norm": (layer_norm, _norm, 2),
    "rms_norm": (rms_norm, lambda x, w: x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-5) * w, 1),
}
"""The text of a shape and type, the oracle, and how many rows follow the matrix."""
