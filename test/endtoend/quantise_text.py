"""Block quantisation spelled in ``linalg``, ``arith`` and ``math``, as people spell it."""

from __future__ import annotations

import re
from dataclasses import dataclass

LARGEST = {"f4E2M1FN": 6.0, "f8E4M3FN": 448.0, "f8E5M2": 57344.0}
EXPONENT = {"f4E2M1FN": 2, "f8E4M3FN": 8, "f8E5M2": 15}

NVFP4 = """
    %six = arith.constant 6.0 : f32
    %most = arith.constant 448.0 : f32
    %least = arith.constant 0.001953125 : f32
    %sixth = arith.divf %amax, %six : f32
    %capped = arith.minimumf %sixth, %most : f32
    %raised = arith.maximumf %capped, %least : f32
    %some = arith.cmpf ogt, %amax, %zero : f32
    %number = arith.select %some, %raised, %zero : f32
    %finite = arith.cmpf olt, %amax, %inf : f32
    %known = arith.select %finite, %number, %nan : f32
    %scale = arith.truncf %known : f32 to f8E4M3FN"""
"""ue4m3, with the range that tc.quantise_blocks states."""
TORCH_CLAMP = """
    %six = arith.constant 6.0 : f64
    %narrow = arith.truncf %six : f64 to f32
    %most = arith.constant 448.0 : f32
    %least = arith.constant 0.001953125 : f32
    %sixth = arith.divf %amax, %narrow : f32
    %below = arith.cmpf ult, %sixth, %least : f32
    %raised = arith.select %below, %least, %sixth : f32
    %above = arith.cmpf ugt, %raised, %most : f32
    %capped = arith.select %above, %most, %raised : f32
    %none = arith.cmpf oeq, %amax, %zero : f32
    %number = arith.select %none, %amax, %capped : f32
    %wild = arith.cmpf uge, %amax, %inf : f32
    %known = arith.select %wild, %nan, %number : f32
    %scale = arith.truncf %known : f32 to f8E4M3FN"""
"""The computation as torch-mlir writes clamp and where: unordered comparisons, numbers rounded from
f64."""
SHIFT = """
    %bits = arith.bitcast %amax : f32 to i32
    %23 = arith.constant 23 : i32
    %exponent = arith.shrui %bits, %23 : i32
    %e = arith.constant EXPONENT : i32
    %less = arith.subi %exponent, %e : i32
    %0 = arith.constant 0 : i32
    %biased = arith.maxsi %less, %0 : i32
    %255 = arith.constant 255 : i32
    %finite = arith.cmpi slt, %exponent, %255 : i32
    %known = arith.select %finite, %biased, %255 : i32
    %byte = arith.trunci %known : i32 to i8
    %scale = arith.bitcast %byte : i8 to f8E8M0FNU"""
"""ue8m0 as the biased exponent, by a shift."""
MASK = """
    %bits = arith.bitcast %amax : f32 to i32
    %mask = arith.constant 0x7F800000 : i32
    %kept = arith.andi %bits, %mask : i32
    %power = arith.bitcast %kept : i32 to f32
    %inverse = arith.constant INVERSE : f32
    %less = arith.mulf %power, %inverse : f32
    %least = arith.constant 5.877471754111438e-39 : f32
    %number = arith.maximumf %less, %least : f32
    %finite = arith.cmpf olt, %amax, %inf : f32
    %known = arith.select %finite, %number, %nan : f32
    %scale = arith.truncf %known : f32 to f8E8M0FNU"""
"""ue8m0 as amax with its mantissa masked."""
LOGARITHM = """
    %wide = arith.extf %amax : f32 to f64
    %log = math.log2 %wide : f64
    %whole = math.floor %log : f64
    %e = arith.constant EXPONENT.0 : f64
    %less = arith.subf %whole, %e : f64
    %least = arith.constant -127.0 : f64
    %held = arith.maximumf %less, %least : f64
    %power = math.exp2 %held : f64
    %number = arith.truncf %power : f64 to f32
    %finite = arith.cmpf olt, %amax, %inf : f32
    %known = arith.select %finite, %number, %nan : f32
    %scale = arith.truncf %known : f32 to f8E8M0FNU"""
"""ue8m0 by floor(log2), in f64."""
CARRY = """
    %given = arith.bitcast %amax : f32 to i32
    %carry = arith.constant CARRIED : i32
    %bits = arith.addi %given, %carry : i32
    %23 = arith.constant 23 : i32
    %exponent = arith.shrui %bits, %23 : i32
    %e = arith.constant EXPONENT : i32
    %less = arith.subi %exponent, %e : i32
    %0 = arith.constant 0 : i32
    %biased = arith.maxsi %less, %0 : i32
    %255 = arith.constant 255 : i32
    %finite = arith.cmpf olt, %amax, %inf : f32
    %known = arith.select %finite, %biased, %255 : i32
    %byte = arith.trunci %known : i32 to i8
    %scale = arith.bitcast %byte : i8 to f8E8M0FNU"""
"""ue8m0, rounded up where an element would saturate (scale_rounding = "rceil")."""
QUOTIENT = """
    %one = arith.constant 1.0 : f32
    %none = arith.cmpf oeq, %wide, %zero : f32
    %by = arith.select %none, %one, %wide : f32
    %quotient = arith.divf %y, %by : f32"""
PRODUCT = """
    %one = arith.constant 1.0 : f32
    %by = arith.divf %one, %wide : f32
    %quotient = arith.mulf %y, %by : f32"""
"""Multiplication by the reciprocal, which is exact for a power of two."""
CLAMP = """
    %low = arith.maximumf %quotient, %lowest : f32
    %clamped = arith.minimumf %low, %largest : f32"""
GUARD = """
    %unknown = arith.cmpf uno, %wide, %wide : f32
    %q = arith.select %unknown, %zero, %clamped : f32"""
"""Codes are 0 where the scale is NaN."""


@dataclass(frozen=True)
class Spelling:
    """A program ``f(%x) -> codes, scales``; with `norm` ``f(%x, %norm)``.

    scale: from %amax; element: from %y and %wide, the scale as stored
    keep:  the maximum keeps its dimension, with extent 1, and magnitudes are a tensor
    layout: of the scales: "row_major", "blocked" or "exchanged", a wrong order
    """

    formats: tuple[str, str]
    scale: str
    element: str = QUOTIENT + CLAMP + GUARD
    m: int = 40
    n: int = 128
    maximum: str = "arith.maximumf"
    start: str = "0.0"
    keep: bool = False
    norm: bool = False
    layout: str = "row_major"

    @property
    def block(self) -> int:
        """Columns that share a scale."""
        return 16 if self.formats[1] == "f8E4M3FN" else 32

    @property
    def results(self) -> tuple[str, str]:
        """Types of codes and scales."""
        rows, count = self.m, self.n // self.block
        shape = f"{rows}x{count}"
        if self.layout != "row_major":
            shape = f"{-(-rows // 128)}x{-(-count // 4)}x512"
        return f"tensor<{rows}x{self.n}x{self.formats[0]}>", f"tensor<{shape}x{self.formats[1]}>"

    def function(self) -> str:
        """The program."""
        values = f"tensor<{self.m}x{self.n}xf32>"
        more = ", %norm: tensor<f32>" if self.norm else ""
        codes, scales = self.results
        return f"""
func.func @f(%x: {values}{more}) -> ({codes}, {scales}) {{{self.body()}
  return %codes, %scales : {codes}, {scales}
}}
"""

    def body(self) -> str:
        """From %x to %codes and %scales."""
        m, n, block, (element, kind) = self.m, self.n, self.block, self.formats
        k, exponent, largest = n // block, EXPONENT[element], LARGEST[element]
        x, y = f"tensor<{m}x{n}xf32>", f"tensor<{m}x{k}x{block}xf32>"
        s, one = (f"{m}x{k}x1", ", 0") if self.keep else (f"{m}x{k}", "")
        carried = 2**23 - 1 - (int(largest / 2.0**exponent * 2**23) - 2**23)
        scale = self.scale.replace("EXPONENT", str(exponent)).replace("CARRIED", str(carried))
        scale = scale.replace("INVERSE", repr(2.0**-exponent))
        all_, some = "affine_map<(m, k, i) -> (m, k, i)>", f"affine_map<(m, k, i) -> (m, k{one})>"
        plain = (
            "affine_map<(m, k, i) -> (m, k, i)>" if self.keep else "affine_map<(m, k) -> (m, k)>"
        )
        loops = ", ".join(['"parallel"'] * (3 if self.keep else 2))
        three = '"parallel", "parallel", "parallel"'
        inner, outer = f"tensor<{s}x{kind}>", f"tensor<{m}x{k}x{kind}>"
        magnitude = "%mag = math.absf %in : f32\n    "
        given, number = "%blocks", "%mag"
        text = f"""
  %zero = arith.constant 0.0 : f32
  %start = arith.constant {self.start} : f32
  %inf = arith.constant 0x7F800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %lowest = arith.constant -{largest} : f32
  %largest = arith.constant {largest} : f32
  %parts = tensor.expand_shape %x [[0], [1, 2]] output_shape [{m}, {k}, {block}] : {x} into {y}
  %e0 = tensor.empty() : {y}"""
        if self.norm:
            text += f"""
  %blocks = linalg.generic {{indexing_maps = [{all_}, affine_map<(m, k, i) -> ()>, {all_}],
      iterator_types = [{three}]}} ins(%parts, %norm : {y}, tensor<f32>) outs(%e0 : {y}) {{
  ^bb0(%in: f32, %by: f32, %o: f32):
    %p = arith.mulf %in, %by : f32
    linalg.yield %p : f32
  }} -> {y}"""
        else:
            text = text.replace("%parts", "%blocks")
        if self.keep:
            text += f"""
  %magnitudes = linalg.generic {{indexing_maps = [{all_}, {all_}], iterator_types = [{three}]}}
      ins(%blocks : {y}) outs(%e0 : {y}) {{
  ^bb0(%in: f32, %o: f32):
    {magnitude}linalg.yield %mag : f32
  }} -> {y}"""
            magnitude, given, number = "", "%magnitudes", "%in"
        text += f"""
  %e1 = tensor.empty() : tensor<{s}xf32>
  %first = linalg.fill ins(%start : f32) outs(%e1 : tensor<{s}xf32>) -> tensor<{s}xf32>
  %largests = linalg.generic {{indexing_maps = [{all_}, {some}],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins({given} : {y}) outs(%first : tensor<{s}xf32>) {{
  ^bb0(%in: f32, %acc: f32):
    {magnitude}%next = {self.maximum} {number}, %acc : f32
    linalg.yield %next : f32
  }} -> tensor<{s}xf32>
  %e2 = tensor.empty() : {inner}
  %stored = linalg.generic {{indexing_maps = [{plain}, {plain}], iterator_types = [{loops}]}}
      ins(%largests : tensor<{s}xf32>) outs(%e2 : {inner}) {{
  ^bb0(%amax: f32, %o: {kind}):{scale}
    linalg.yield %scale : {kind}
  }} -> {inner}
  %e3 = tensor.empty() : tensor<{m}x{k}x{block}x{element}>
  %q3 = linalg.generic {{indexing_maps = [{all_}, {some}, {all_}], iterator_types = [{three}]}}
      ins(%blocks, %stored : {y}, {inner}) outs(%e3 : tensor<{m}x{k}x{block}x{element}>) {{
  ^bb0(%y: f32, %narrow: {kind}, %o: {element}):
    %wide = arith.extf %narrow : {kind} to f32{self.element}
    %code = arith.truncf %q : f32 to {element}
    linalg.yield %code : {element}
  }} -> tensor<{m}x{k}x{block}x{element}>
  %codes = tensor.collapse_shape %q3 [[0], [1, 2]]
      : tensor<{m}x{k}x{block}x{element}> into tensor<{m}x{n}x{element}>"""
        if self.keep:
            text += f"""
  %rows = tensor.collapse_shape %stored [[0], [1, 2]] : {inner} into {outer}"""
        else:
            text = text.replace("%stored", "%rows")
        if self.layout == "row_major":
            return text.replace("%rows", "%scales")
        return text + self._to_blocks(outer, m, k, kind)

    def _to_blocks(self, rows: str, m: int, k: int, kind: str) -> str:
        """Padding, [M / 128, 4, 32, K / 4, 4] and a transpose, as torchao's to_blocked has it."""
        down, across = -(-m // 128), -(-k // 4)
        padded = f"tensor<{down * 128}x{across * 4}x{kind}>"
        five = f"tensor<{down}x4x32x{across}x4x{kind}>"
        order, turned = "0, 3, 2, 1, 4", f"tensor<{down}x{across}x32x4x4x{kind}>"
        if self.layout == "exchanged":
            order, turned = "0, 3, 1, 2, 4", f"tensor<{down}x{across}x4x32x4x{kind}>"
        zero = "0.0" if kind == "f8E4M3FN" else "5.877471754111438e-39"
        return f"""
  %pad = arith.constant {zero} : {kind}
  %padded = tensor.pad %rows low[0, 0] high[{down * 128 - m}, {across * 4 - k}] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %pad : {kind}
  }} : {rows} to {padded}
  %five = tensor.expand_shape %padded [[0, 1, 2], [3, 4]]
      output_shape [{down}, 4, 32, {across}, 4] : {padded} into {five}
  %e4 = tensor.empty() : {turned}
  %turned = linalg.transpose ins(%five : {five}) outs(%e4 : {turned}) permutation = [{order}]
  %scales = tensor.collapse_shape %turned [[0], [1], [2, 3, 4]]
      : {turned} into {self.results[1]}"""

    def linear(self, k: int = 16) -> str:
        """The quantiser after relu(a @ w + bias)."""
        m, n = self.m, self.n
        a, w, x = f"tensor<{m}x{k}xf16>", f"tensor<{k}x{n}xf16>", f"tensor<{m}x{n}xf32>"
        norm = ", %norm: tensor<f32>" if self.norm else ""
        codes, scales = self.results
        body = self.body().replace("  %zero = arith.constant 0.0 : f32\n", "")
        both = "affine_map<(m, n) -> (m, n)>"
        return f"""
func.func @f(%a: {a}, %w: {w}, %bias: tensor<{n}xf32>{norm}) -> ({codes}, {scales}) {{
  %zero = arith.constant 0.0 : f32
  %ex = tensor.empty() : {x}
  %zeros = linalg.fill ins(%zero : f32) outs(%ex : {x}) -> {x}
  %c = linalg.matmul ins(%a, %w : {a}, {w}) outs(%zeros : {x}) -> {x}
  %x = linalg.generic {{indexing_maps = [{both}, affine_map<(m, n) -> (n)>, {both}],
      iterator_types = ["parallel", "parallel"]}}
      ins(%c, %bias : {x}, tensor<{n}xf32>) outs(%ex : {x}) {{
  ^bb0(%sum: f32, %b: f32, %o: f32):
    %u = arith.addf %sum, %b : f32
    %r = arith.maximumf %u, %zero : f32
    linalg.yield %r : f32
  }} -> {x}{body}
  return %codes, %scales : {codes}, {scales}
}}
"""


def quantised(
    alone: str,
    formats: tuple[str, str],
    *,
    blocked: bool = False,
    norm: bool = False,
    rounding: str = "",
) -> str:
    """A program of one f32 tensor that returns this quantised by ``tc.quantise_blocks``; a norm
    constant is its last argument."""
    found = re.search(r"return (%\w+) : tensor<(\w+)xf32>\s*}\s*$", alone)
    assert found, alone
    value, sizes = found.groups()
    *outer, rows, columns = (int(each) for each in sizes.split("x"))
    block = 16 if formats[1] == "f8E4M3FN" else 32
    shape = [*outer, rows, columns // block]
    if blocked:
        shape = [*outer, -(-rows // 128), -(-columns // block // 4), 512]
    codes = f"tensor<{sizes}x{formats[0]}>"
    scales = f"tensor<{'x'.join(map(str, shape))}x{formats[1]}>"
    head, rest = alone[: found.start()].split(f") -> tensor<{sizes}xf32> {{", 1)
    number, more = (", %norm", ", tensor<f32>") if norm else ("", "")
    how = f'scale_rounding = "{rounding}", ' if rounding else ""
    how += f"operandSegmentSizes = array<i32: 1, {int(norm)}>"
    argument = ", %norm: tensor<f32>" if norm else ""
    return f"""{head}{argument}) -> ({codes}, {scales}) {{{rest}
  %q:2 = "tc.quantise_blocks"({value}{number}) {{{how}}}
    : (tensor<{sizes}xf32>{more}) -> ({codes}, {scales})
  return %q#0, %q#1 : {codes}, {scales}
}}
"""
