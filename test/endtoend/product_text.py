"""Text of matrix products of all types and layouts, for the pipelines gemm and matmul-warp."""

from __future__ import annotations


def program(
    m: int,
    n: int,
    k: int,
    element: str,
    a: str = "mk",
    b: str = "kn",
    out: str = "",
    batch: int = 0,
    other: str = "",
) -> str:
    """A matrix product of linalg; `a`, `b`: order of the operands' dimensions."""
    total = "i32" if element == "i8" else "f32"
    result = out or total
    sizes = {"m": m, "n": n, "k": k}
    loops = ("z, " if batch else "") + "m, n, k"

    def shape(order: str, kind: str) -> str:
        extents = [batch] * bool(batch) + [sizes[d] for d in order]
        return f"tensor<{'x'.join(map(str, extents))}x{kind}>"

    def affine(order: str) -> str:
        dims = ["z"] * bool(batch) + list(order)
        return f"affine_map<({loops}) -> ({', '.join(dims)})>"

    types = shape(a, element), shape(b, other or element), shape("mn", total)
    rounding = f"%d = arith.truncf %c : {types[2]} to {shape('mn', result)}"
    return f"""
func.func @product(%a: {types[0]}, %b: {types[1]}, %out: {types[2]}) -> {shape("mn", result)} {{
  %zero = arith.constant {"0" if total == "i32" else "0.0"} : {total}
  %init = linalg.fill ins(%zero : {total}) outs(%out : {types[2]}) -> {types[2]}
  %c = linalg.{"batch_" if batch else ""}matmul
    indexing_maps = [{affine(a)}, {affine(b)}, {affine("mn")}]
    ins(%a, %b : {types[0]}, {types[1]}) outs(%init : {types[2]}) -> {types[2]}
  {rounding if result != total else ""}
  return %{"d" if result != total else "c"} : {shape("mn", result)}
}}
"""
