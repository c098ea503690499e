"""Block-scaled products with an epilogue, as linalg text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .block_scaled_text import BlockScaled, tensor
from .epilogue_text import Input


@dataclass(frozen=True)
class FusedScaled:
    """``out[l, m, n] = body(sum, *inputs)``, as one linalg.generic after `product`.

    body:   MLIR text; the sum is %s, the inputs have their names (others than the values of
            `BlockScaled`); its last line yields
    inputs: their dimensions are letters of ``lmn``
    start:  an initial accumulator that is an argument
    """

    product: BlockScaled
    body: str
    inputs: Mapping[str, Input] = field(default_factory=dict)
    out: str = "f16"
    start: bool = False

    def linalg(self) -> str:
        """The program."""
        case = replace(self.product, out="f32")
        sizes = {"l": case.batch, "m": case.m, "n": case.n}
        loops = [letter for letter in "lmn" if sizes[letter] is not None]
        kinds = {
            name: tensor(*(sizes[d] for d in dims), of=of)
            for name, (of, dims) in self.inputs.items()
        }
        out = tensor(*(sizes[d] for d in loops), of=self.out)
        dims = [loops, *(list(dims) for _, dims in self.inputs.values()), loops]
        maps = [f"affine_map<({', '.join(loops)}) -> ({', '.join(each)})>" for each in dims]
        iterators = ", ".join(['"parallel"'] * len(loops))
        arguments = ["%s: f32", *(f"%{name}: {of}" for name, (of, _) in self.inputs.items())]
        text = case.linalg().replace(f"-> {case.result} {{\n", f"-> {out} {{\n", 1)
        given = "".join(f"%{name}_: {kind}, " for name, kind in kinds.items())
        text = text.replace("%init: ", f"{given}%init: ", 1)
        if self.start:
            text = text.replace("outs(%i :", "outs(%init :", 1)
        head, sums = text.rstrip().rstrip("}").rstrip().rsplit("return ", 1)
        sums = sums.split(" :")[0]
        return f"""{head}
  %to = tensor.empty() : {out}
  %fused = linalg.generic {{indexing_maps = [{", ".join(maps)}], iterator_types = [{iterators}]}}
      ins({", ".join([sums, *(f"%{name}_" for name in kinds)])} :
          {", ".join([case.result, *kinds.values()])}) outs(%to : {out}) {{
  ^bb0({", ".join([*arguments, f"%o: {self.out}"])}):
    {self.body.strip()}
  }} -> {out}
  return %fused : {out}
}}
"""
