"""Programs of one ``tc.attention``, and what they compute in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Attention:
    """b, h, m, d of queries, g, n of keys, e of values; causal: the offset of a mask; q, kv, out:
    layouts; lse: whether the logarithms are a result."""

    b: int = 1
    h: int = 2
    m: int = 128
    d: int = 64
    g: int = 1
    n: int = 256
    e: int = 0
    element: str = "f16"
    result: str = ""
    causal: int | None = None
    scale: float = 0.125
    q: str = "bhmd"
    kv: str = "bhnd"
    out: str = "bhmd"
    lse: bool = True

    def __str__(self) -> str:
        sizes = "x".join(str(getattr(self, name)) for name in "bhmdgn") + f"x{self.e or self.d}"
        mask = "" if self.causal is None else f"-causal{self.causal}"
        return f"{sizes}-{self.element}{self.result}{mask}-{self.q}-{self.kv}-{self.out}"

    @property
    def shapes(self) -> dict[str, list[int]]:
        """Of each operand and of the result."""
        rows, keys = (
            {"b": self.b, "h": self.h, "m": self.m},
            {"b": self.b, "h": self.g, "n": self.n},
        )
        values = self.e or self.d
        dims = {
            "q": (self.q, rows | {"d": self.d}), "k": (self.kv, keys | {"d": self.d}),
            "v": (self.kv, keys | {"d": values}), "o": (self.out, rows | {"d": values}),
        }  # fmt: skip
        return {
            name: [extents[letter] for letter in layout] for name, (layout, extents) in dims.items()
        }

    @property
    def text(self) -> str:
        q, k, v = (self._type(name, self.element) for name in "qkv")
        out = self._type("o", self.result or self.element)
        lse = f"tensor<{self.b}x{self.h}x{self.m}xf32>"
        mask = "" if self.causal is None else f", causal_offset = {self.causal} : i64"
        results, types = ("%o, %lse", f"({out}, {lse})") if self.lse else ("%o", out)
        return f"""func.func @attention(%q: {q}, %k: {k}, %v: {v}) -> {types} {{
          %o, %lse = "tc.attention"(%q, %k, %v) {{scale = {self.scale!r} : f32,
              q_layout = "{self.q}", kv_layout = "{self.kv}", out_layout = "{self.out}"{mask}}}
              : ({q}, {k}, {v}) -> ({out}, {lse})
          return {results} : {types.strip("()")}
        }}"""

    def _type(self, name: str, element: str) -> str:
        return f"tensor<{'x'.join(map(str, self.shapes[name]))}x{element}>"

    def computed(self, q: Array, k: Array, v: Array) -> tuple[Array, Array]:
        """Results and logarithms, in float64."""
        q = q if self.q == "bhmd" else q.swapaxes(1, 2)
        k, v = (each if self.kv == "bhnd" else each.swapaxes(1, 2) for each in (k, v))
        group = self.h // self.g
        q, k, v = (each.astype(np.float64) for each in (q, k.repeat(group, 1), v.repeat(group, 1)))
        scores = q @ k.swapaxes(-1, -2) * np.float64(np.float32(self.scale))
        if self.causal is not None:
            kept = np.arange(self.n) <= np.arange(self.m)[:, None] + self.causal
            scores = np.where(kept, scores, -np.inf)
        with np.errstate(all="ignore"):
            most = scores.max(-1, keepdims=True)
            most = np.where(np.isneginf(most), 0, most)
            powers = np.exp(scores - most)
            total = powers.sum(-1, keepdims=True)
            out = np.where(total == 0, 0, powers @ v / total)
            lse = (np.log(total) + most)[..., 0]
        return out if self.out == "bhmd" else out.swapaxes(1, 2), lse
