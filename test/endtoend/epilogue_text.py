"""Matrix products with an epilogue, as linalg text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Input = tuple[str, str]
"""Element type, and the dimensions that index it: ``"mn"``, ``"n"``, ``"m"``, ``"nm"``, ``""``."""


@dataclass(frozen=True)
class Fused:
    """``out[m, n] = body(sum, *inputs)``, as one linalg.generic after a linalg.matmul.

    body:   MLIR text; the sum is %s, the inputs have their names; its last line yields
    start:  element dims of an initial accumulator that is an argument; "" for zeros
    """

    body: str
    inputs: Mapping[str, Input] = field(default_factory=dict)
    out: str = "f16"
    m: int = 200
    n: int = 80
    k: int = 72
    element: str = "f16"
    sums: str = "f32"
    start: bool = False
    batch: int = 0

    def tensor(self, element: str, dims: str) -> str:
        """The type of a tensor indexed by `dims`."""
        sizes = {"m": self.m, "n": self.n, "k": self.k, "b": self.batch}
        return f"tensor<{''.join(f'{sizes[d]}x' for d in dims)}{element}>"

    def linalg(self) -> str:
        """The program."""
        b = "b" if self.batch else ""
        loops = ", ".join(f"{d}" for d in f"{b}mn")
        a, w = (self.tensor(self.element, b + dims) for dims in ("mk", "kn"))
        sums, out = self.tensor(self.sums, f"{b}mn"), self.tensor(self.out, f"{b}mn")
        dims = [f"{b}mn", *(each for _, each in self.inputs.values()), f"{b}mn"]
        maps = [f"affine_map<({loops}) -> ({', '.join(each)})>" for each in dims]
        types = {name: self.tensor(*each) for name, each in self.inputs.items()}
        arguments = [f"%a: {a}", f"%w: {w}"] + [f"%{name}_: {t}" for name, t in types.items()]
        arguments += [f"%start: {sums}"] if self.start else []
        block = [f"%s: {self.sums}"] + [f"%{name}: {e}" for name, (e, _) in self.inputs.items()]
        zero = "0.0" if self.sums == "f32" else "0"
        iterators = ", ".join(['"parallel"'] * len(f"{b}mn"))
        op = "batch_matmul" if b else "matmul"
        init = "%start" if self.start else "%init"
        operands = ", ".join(["%c", *(f"%{name}_" for name in types)])
        kinds = ", ".join([sums, *types.values()])
        return f"""
func.func @f({", ".join(arguments)}) -> {out} {{
  %zero_ = arith.constant {zero} : {self.sums}
  %empty = tensor.empty() : {sums}
  %init = linalg.fill ins(%zero_ : {self.sums}) outs(%empty : {sums}) -> {sums}
  %c = linalg.{op} ins(%a, %w : {a}, {w}) outs({init} : {sums}) -> {sums}
  %to = tensor.empty() : {out}
  %y = linalg.generic {{indexing_maps = [{", ".join(maps)}], iterator_types = [{iterators}]}}
      ins({operands} : {kinds})
      outs(%to : {out}) {{
  ^bb0({", ".join([*block, f"%o: {self.out}"])}):
    {self.body.strip()}
  }} -> {out}
  return %y : {out}
}}
"""


TRUNCATE = """
    %half = arith.truncf %t : f32 to f16
    linalg.yield %half : f16
"""
KEEP = """
    linalg.yield %t : f32
"""
SILU_OF_SUMS = """
    %one = arith.constant 1.0 : f32
    %negative = arith.negf %s : f32
    %e = math.exp %negative : f32
    %d = arith.addf %one, %e : f32
    %t = arith.divf %s, %d : f32
"""


def gelu_of_sums(inner: str) -> str:
    """GELU of the sums, by erf or tanh."""
    return f"""
    %point5 = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %k = arith.constant 0.70710678 : f32
    %scaled = arith.mulf %s, %k : f32
    %e = math.{inner} %scaled : f32
    %u = arith.addf %one, %e : f32
    %h = arith.mulf %point5, %s : f32
    %t = arith.mulf %h, %u : f32
"""
