"""Convolutions with an epilogue, as linalg text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .epilogue_text import Input
from .linalg_text import ACC, Conv


@dataclass(frozen=True)
class FusedConv:
    """``out[n, p, q, k] = body(sum, *inputs)``, as one linalg.generic behind a convolution.

    body:   MLIR text; the sum is %s, the inputs have their names; its last line yields
    inputs: element type of each, and the letters of n, p, q, k that index it
    start:  the letters that index an argument from which the sums start; "": zeros. With fewer than
            all four it is broadcast
    """

    conv: Conv
    body: str
    inputs: Mapping[str, Input] = field(default_factory=dict)
    start: str = ""

    def tensor(self, element: str, dims: str) -> str:
        """The type of a tensor indexed by `dims`."""
        sizes = dict(zip("npqk", self.conv.shapes[2], strict=True))
        return f"tensor<{''.join(f'{sizes[d]}x' for d in dims)}{element}>"

    @property
    def sums(self) -> str:
        """Element type of the sums."""
        return "i32" if self.conv.element in ("i8", "u8") else ACC

    def linalg(self) -> str:
        """The program."""
        plain = replace(self.conv, out=self.sums).text()
        sums, out = self.tensor(self.sums, "npqk"), self.tensor(self.conv.out, "npqk")
        types = {name: self.tensor(*each) for name, each in self.inputs.items()}
        more = "".join(f", %{name}_: {kind}" for name, kind in types.items())
        if self.start:
            more += f", %start: {self.tensor(self.sums, self.start)}"
            first = "%start" if self.start == "npqk" else "%spread"
            plain = plain.replace("outs(%init", f"outs({first}")
            if first == "%spread":
                missing = [d for d, letter in enumerate("npqk") if letter not in self.start]
                spread = (
                    f"  %spread = linalg.broadcast ins(%start : "
                    f"{self.tensor(self.sums, self.start)}) outs(%empty : {sums}) "
                    f"dimensions = {missing}\n  %sum ="
                )
                plain = plain.replace("  %sum =", spread)
        w = plain.index(") -> tensor")
        signature = plain[:w] + more + f") -> {out} {{" + plain[plain.index(" {\n", w) + 2 :]
        assert signature.count(f"  return %sum : {sums}") == 1
        return signature.replace(f"  return %sum : {sums}", self._generic())

    def unfused(self) -> str:
        """The ops after the convolution as a program of their own, whose first input is the
        sums."""
        sums, out = self.tensor(self.sums, "npqk"), self.tensor(self.conv.out, "npqk")
        more = "".join(f", %{name}_: {self.tensor(*each)}" for name, each in self.inputs.items())
        return f"func.func @behind(%sum: {sums}{more}) -> {out} {{\n{self._generic()}\n}}\n"

    def _generic(self) -> str:
        """The ``linalg.generic`` of %sum and the inputs, and the return."""
        sums, out = self.tensor(self.sums, "npqk"), self.tensor(self.conv.out, "npqk")
        types = {name: self.tensor(*each) for name, each in self.inputs.items()}
        dims = ["npqk", *(each for _, each in self.inputs.values()), "npqk"]
        maps = ", ".join(f"affine_map<(n, p, q, k) -> ({', '.join(each)})>" for each in dims)
        block = ", ".join(
            [f"%s: {self.sums}"]
            + [f"%{name}: {element}" for name, (element, _) in self.inputs.items()]
            + [f"%o: {self.conv.out}"]
        )
        operands = ", ".join(["%sum", *(f"%{name}_" for name in types)])
        kinds = ", ".join([sums, *types.values()])
        return "\n".join(
            [
                f"  %to = tensor.empty() : {out}",
                f"  %y = linalg.generic {{indexing_maps = [{maps}], iterator_types = "
                '["parallel", "parallel", "parallel", "parallel"]}',
                f"      ins({operands} : {kinds}) outs(%to : {out}) {{",
                f"  ^bb0({block}):",
                f"    {self.body.strip()}",
                f"  }} -> {out}",
                f"  return %y : {out}",
            ]
        )
