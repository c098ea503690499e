"""Products by weights of int8, fp8 or int4, dequantised op by op, and the same in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype("f4")}
FP8 = {"f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn), "f8E5M2": np.dtype(ml_dtypes.float8_e5m2)}
MAPS = """#two = affine_map<(n, k) -> (n, k)>
#three = affine_map<(n, g, k) -> (n, g, k)>
#group = affine_map<(n, g, k) -> (n, g, 0)>
"""
HELD = {"i8": 1, "nibbles": 2, "words": 8, **dict.fromkeys(FP8, 1)}
"""Elements of k in a stored number."""


@dataclass(frozen=True)
class Weights:
    """``[rows, k]`` numbers of `stored`, a scale for each `group` of k (0: for each row).

    stored:  ``i8``, ``f8E4M3FN``, ``f8E5M2``; ``nibbles``: two numbers a byte, the first in the low
             half; ``words``: eight in an i32
    element: type of the product's factors; of fp8 weights scales are f32
    zeros:   whether a zero point for each scale is subtracted first
    """

    stored: str
    rows: int
    k: int
    element: str = "bf16"
    group: int = 0
    zeros: bool = False

    @property
    def _groups(self) -> int:
        return self.k // self.group if self.group else 1

    @property
    def _of_fp8(self) -> bool:
        return self.stored in FP8

    @property
    def arguments(self) -> str:
        """Numbers of the function's arguments that are weights."""
        kind = self.stored if self._of_fp8 else "i32" if self.stored == "words" else "i8"
        width = self.k // HELD[self.stored]
        beside = f"{self.rows}x{self._groups}x1x"
        scale = "f32" if self._of_fp8 else self.element
        zeros = f", %z: tensor<{beside}i8>" if self.zeros else ""
        return f"%w: tensor<{self.rows}x{width}x{kind}>, %s: tensor<{beside}{scale}>{zeros}"

    @property
    def text(self) -> str:
        """The ops that make ``%f``, the dequantised weights."""
        grouped = f"{self.rows}x{self._groups}x{self.k // self._groups}"
        kind = self.stored if self._of_fp8 else "i8"
        lines = [self._numbers()]
        shape = f"[{grouped.replace('x', ', ')}]"
        lines.append(
            f"%q = tensor.expand_shape %n [[0], [1, 2]] output_shape {shape} : "
            f"tensor<{self.rows}x{self.k}x{kind}> into tensor<{grouped}x{kind}>"
        )
        scale = "f32" if self._of_fp8 else self.element
        beside = f"{self.rows}x{self._groups}x1x"
        maps, names = "#three, #group", "%q, %s"
        kinds = f"tensor<{grouped}x{kind}>, tensor<{beside}{scale}>"
        body = f"^bb0(%x: {kind}, %v: {scale}"
        if self.zeros:
            maps, names, kinds = f"{maps}, #group", f"{names}, %z", f"{kinds}, tensor<{beside}i8>"
            body += ", %y: i8"
        body += f", %o: {self.element}):\n"
        number = "%x"
        if self.zeros:
            body += "%u = arith.subi %x, %y : i8\n"
            number = "%u"
        if self._of_fp8:
            body += f"%d = arith.extf %x : {kind} to f32\n%m = arith.mulf %d, %v : f32\n"
            body += "" if scale == self.element else f"%t = arith.truncf %m : f32 to {self.element}"
            result = "%m" if scale == self.element else "%t"
        else:
            body += f"%d = arith.sitofp {number} : i8 to {self.element}\n"
            body += f"%m = arith.mulf %d, %v : {self.element}"
            result = "%m"
        lines.append(f"%e = tensor.empty() : tensor<{grouped}x{self.element}>")
        lines.append(
            f"%f3 = linalg.generic {{indexing_maps = [{maps}, #three], iterator_types = "
            f'["parallel", "parallel", "parallel"]}} ins({names} : {kinds}) outs(%e : '
            f"tensor<{grouped}x{self.element}>) {{\n{body}\nlinalg.yield {result} : {self.element}"
            f"\n}} -> tensor<{grouped}x{self.element}>"
        )
        lines.append(
            f"%f = tensor.collapse_shape %f3 [[0], [1, 2]] : tensor<{grouped}x{self.element}> into "
            f"tensor<{self.rows}x{self.k}x{self.element}>"
        )
        return "\n".join(lines)

    def _numbers(self) -> str:
        """``%n``, a number for each element."""
        held = HELD[self.stored]
        if held == 1:
            flat = f"tensor<{self.rows}x{self.k}x{self.stored}>"
            return (  # named, so that all forms are alike
                f"%e0 = tensor.empty() : {flat}\n%n = linalg.copy ins(%w : {flat}) outs(%e0 : "
                f"{flat}) -> {flat}"
            )
        kind, width = ("i32", self.k // held) if self.stored == "words" else ("i8", self.k // held)
        one, out = f"{self.rows}x{width}x1x{kind}", f"{self.rows}x{width}x1xi8"
        lines = [
            f"%w3 = tensor.expand_shape %w [[0], [1, 2]] output_shape [{self.rows}, {width}, 1] : "
            f"tensor<{self.rows}x{width}x{kind}> into tensor<{one}>",
            f"%e1 = tensor.empty() : tensor<{out}>",
        ]
        for place in range(held):
            cut = "" if kind == "i8" else "%b = arith.trunci %a : i32 to i8\n"
            lines.append(
                f"%c{place} = arith.constant {4 * place} : {kind}\n"
                f"%l{place} = arith.constant 15 : {kind}\n"
                f"%p{place} = linalg.generic {{indexing_maps = [#three, #three], iterator_types = "
                f'["parallel", "parallel", "parallel"]}} ins(%w3 : tensor<{one}>) outs(%e1 : '
                f"tensor<{out}>) {{\n^bb0(%x: {kind}, %o: i8):\n"
                f"%h = arith.shrui %x, %c{place} : {kind}\n%a = arith.andi %h, %l{place} : {kind}\n"
                f"{cut}linalg.yield {'%a' if kind == 'i8' else '%b'} : i8\n}} -> tensor<{out}>"
            )
        parts = ", ".join(f"%p{place}" for place in range(held))
        kinds = ", ".join([f"tensor<{out}>"] * held)
        both = f"tensor<{self.rows}x{width}x{held}xi8>"
        lines.append(f"%cc = tensor.concat dim(2) {parts} : ({kinds}) -> {both}")
        lines.append(
            f"%n = tensor.collapse_shape %cc [[0], [1, 2]] : {both} into "
            f"tensor<{self.rows}x{self.k}xi8>"
        )
        return "\n".join(lines)

    def arrays(self, seed: int) -> list[Array]:
        """Random numbers, scales about 1/100, zero points."""
        generator = np.random.default_rng(seed)
        width = self.k // HELD[self.stored]
        beside = (self.rows, self._groups, 1)
        if self._of_fp8:
            stored = generator.standard_normal((self.rows, width)).astype(FP8[self.stored])
        elif self.stored == "words":
            stored = generator.integers(-(2**31), 2**31, (self.rows, width)).astype(np.int32)
        else:
            stored = generator.integers(-128, 128, (self.rows, width), dtype=np.int8)
        kind = DTYPES["f32" if self._of_fp8 else self.element]
        scales = (generator.random(beside) / 100 + 0.001).astype(kind)
        zeros = generator.integers(-8, 16, beside, dtype=np.int8)
        return [stored, scales, *([zeros] if self.zeros else [])]

    def dequantised(self, arrays: Sequence[Array]) -> Array:
        """The factors, rounded where the program rounds."""
        stored, scales, *zeros = arrays
        kind = DTYPES[self.element]
        held = HELD[self.stored]
        numbers = stored
        if held > 1:
            places = [stored >> np.asarray(4 * place, stored.dtype) for place in range(held)]
            numbers = (np.stack(places, -1) & 15).astype(np.int8)
        numbers = numbers.reshape(self.rows, self._groups, -1)
        for each in zeros:
            numbers = numbers - each
        if self._of_fp8:
            made = numbers.astype(np.float32) * scales
        else:
            made = numbers.astype(kind) * scales
        return made.astype(kind).reshape(self.rows, self.k)


def product(weights: Weights, m: int, tail: str = "", out: str = "f32") -> str:
    """``[m, k]`` times the weights; tail: ops that make ``%t`` of the sums ``%y``."""
    x = f"tensor<{m}x{weights.k}x{weights.element}>"
    f = f"tensor<{weights.rows}x{weights.k}x{weights.element}>"
    y = f"tensor<{m}x{weights.rows}xf32>"
    result = f"tensor<{m}x{weights.rows}x{out}>"
    return f"""{MAPS}func.func @f(%act: {x}, {weights.arguments}) -> {result} {{
{weights.text}
%zero = arith.constant 0.0 : f32
%e2 = tensor.empty() : {y}
%i = linalg.fill ins(%zero : f32) outs(%e2 : {y}) -> {y}
%y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
  affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
  ins(%act, %f : {x}, {f}) outs(%i : {y}) -> {y}
{tail}
return {"%t" if tail else "%y"} : {result}
}}
"""
