"""Text of small linalg programs, with every part replaceable."""

from __future__ import annotations

from typing import Any

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.passmanager.pipeline import Pipeline

MULTIPLY_ADD = """
  %ea = arith.extf %a : {t} to f32
  %eb = arith.extf %b : {t} to f32
  %m = arith.mulf %ea, %eb : f32
  %s = arith.addf %o, %m : f32
  linalg.yield %s : f32
"""


def generic(
    maps: list[str],
    iterators: list[str],
    types: list[str],
    body: str = MULTIPLY_ADD,
    fill: str = "0.0",
    elements: tuple[str, str, str] = ("f16", "f16", "f32"),
) -> str:
    """A function with a zero fill and one linalg.generic; `types` are shapes like ``4x8``."""
    a, b, out = (f"tensor<{shape}x{kind}>" for shape, kind in zip(types, elements))
    names = ", ".join(f'"{name}"' for name in iterators)
    block = f"^bb0(%a: {elements[0]}, %b: {elements[1]}, %o: {elements[2]}):"
    return f"""
func.func @f(%x: {a}, %w: {b}, %init: {out}) -> {out} {{
  %zero = arith.constant {fill} : {elements[2]}
  %acc = linalg.fill ins(%zero : {elements[2]}) outs(%init : {out}) -> {out}
  %y = linalg.generic {{indexing_maps = [{", ".join(f"affine_map<{m}>" for m in maps)}],
                       iterator_types = [{names}]}}
      ins(%x, %w : {a}, {b}) outs(%acc : {out}) {{
    {block}
    {body.replace("{t}", elements[0])}
  }} -> {out}
  return %y : {out}
}}
"""


def named(op: str, types: list[str], attributes: str = "", element: str = "f16") -> str:
    """A function with a zero fill and one named op."""
    a, b = (f"tensor<{shape}x{element}>" for shape in types[:2])
    out = f"tensor<{types[2]}xf32>"
    return f"""
func.func @f(%x: {a}, %w: {b}, %init: {out}) -> {out} {{
  %zero = arith.constant 0.0 : f32
  %acc = linalg.fill ins(%zero : f32) outs(%init : {out}) -> {out}
  %y = linalg.{op} {attributes} ins(%x, %w : {a}, {b}) outs(%acc : {out}) -> {out}
  return %y : {out}
}}
"""


def lower(text: str, pipeline: str) -> Any:
    """The module after the passes, in a context of its own."""
    context = ir.Context()
    tc.load(context)
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        Pipeline.parse(pipeline).run(module)
    return module


def ops(module: Any, name: str) -> list[Any]:
    """All ops called `name`, in program order."""
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == name:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found
