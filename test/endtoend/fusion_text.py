"""A layer alone, the elementwise ops behind it alone, and both in one program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from .epilogue_text import Input


@dataclass(frozen=True)
class Behind:
    """``out[i, j, …] = body(sum[i, j, …], *inputs)``.

    body:   MLIR text; the sum is %s, the inputs have their names; its last line yields
    inputs: their dimensions are ``all`` of the result's, its ``rows`` (the last but one), its
            ``columns`` (the last), or ``none``
    """

    body: str
    inputs: Mapping[str, Input] = field(default_factory=dict)
    out: str = "f32"

    def extents(self, shape: list[int], dims: str) -> list[int]:
        """The shape of an input."""
        return [shape[d] for d in self._places(len(shape), dims)]

    def after(self, sums: str) -> str:
        """The program of its own, whose first argument is the sums, of this type."""
        given = "".join(f", %{name}_: {kind}" for name, kind in self._types(sums).items())
        return f"func.func @behind(%sums: {sums}{given}) -> {self._result(sums)} {{\n" + (
            f"{self._generic('%sums', sums)}\n}}\n"
        )

    def fused(self, alone: str) -> str:
        """The program `alone`, and this behind what it returns; the inputs come last."""
        found = re.search(r"return (%\w+) : (tensor<\w+>)\s*}\s*$", alone)
        assert found, alone
        name, sums = found.groups()
        head, rest = alone[: found.start()].split(f") -> {sums} {{", 1)
        given = "".join(f", %{name}_: {kind}" for name, kind in self._types(sums).items())
        result = self._result(sums)
        return f"{head}{given}) -> {result} {{{rest}{self._generic(name, sums)}\n}}\n"

    def _types(self, sums: str) -> dict[str, str]:
        shape = shape_of(sums)
        return {
            name: _tensor(self.extents(shape, dims), of) for name, (of, dims) in self.inputs.items()
        }

    def _result(self, sums: str) -> str:
        return _tensor(shape_of(sums), self.out)

    def _generic(self, name: str, sums: str) -> str:
        rank, result, types = len(shape_of(sums)), self._result(sums), self._types(sums)
        loops = [f"d{n}" for n in range(rank)]
        read = [[loops[d] for d in self._places(rank, dims)] for _, dims in self.inputs.values()]
        maps = ", ".join(
            f"affine_map<({', '.join(loops)}) -> ({', '.join(each)})>"
            for each in [loops, *read, loops]
        )
        numbers = [f"%{name}: {of}" for name, (of, _) in self.inputs.items()]
        iterators = ", ".join(['"parallel"'] * rank)
        operands = ", ".join([name, *(f"%{each}_" for each in types)])
        return f"""  %to = tensor.empty() : {result}
  %y_ = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
      ins({operands} : {", ".join([sums, *types.values()])}) outs(%to : {result}) {{
  ^bb0({", ".join(["%s: f32", *numbers, f"%o: {self.out}"])}):
    {self.body.strip()}
  }} -> {result}
  return %y_ : {result}"""

    @staticmethod
    def _places(rank: int, dims: str) -> list[int]:
        every = list(range(rank))
        return {"all": every, "rows": every[-2:-1], "columns": every[-1:], "none": []}[dims]


def shape_of(kind: str) -> list[int]:
    """The extents of a tensor type."""
    return [int(n) for n in kind.removeprefix("tensor<").split("x")[:-1]]


def _tensor(shape: list[int], of: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{of}>"
