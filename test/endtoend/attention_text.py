"""Programs of one ``tc.attention``, and what they compute in float64.

A body is made of parts, in order: ``mask bn`` has a tensor of i1 for each batch and key, ``bias hmn
f16`` adds one for each head, row and key, ``softcap 30`` is ``30 tanh(x / 30)``, ``times 0.5`` a
product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
NAMED = ("mask", "bias")
"""Parts of a body that have a tensor."""


def attended(scores: Array, v: Array) -> tuple[Array, Array]:
    """Results and logarithms of scores that are -inf for a key that a row does not have."""
    with np.errstate(all="ignore"):
        most = scores.max(-1, keepdims=True, initial=-np.inf)
        most = np.where(np.isneginf(most), 0, most)
        powers = np.exp(scores - most)
        total = powers.sum(-1, keepdims=True)
        out = np.where(total == 0, 0, powers @ v / total)
        return out, (np.log(total) + most)[..., 0]


@dataclass(frozen=True)
class Attention:
    """b, h, m, d of queries, g, n of keys, e of values; causal, window: offsets of a mask; q, kv,
    out: layouts; lse: whether the logarithms are a result; body: parts of the op's; lengths: of the
    keys of each batch, if there are any; kinds: types of q, k and v, if they are not `element`;
    times: factor of the results; pages: number of pages of keys and values, page keys each, 0: they
    are in no pages."""

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
    window: int | None = None
    body: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    times: float = 1.0
    pages: int = 0
    page: int = 0

    def __str__(self) -> str:
        sizes = "x".join(str(getattr(self, name)) for name in "bhmdgn") + f"x{self.e or self.d}"
        mask = "" if self.causal is None else f"-causal{self.causal}"
        mask += "" if self.window is None else f"-window{self.window}"
        mask += "".join(f"-{each.replace(' ', '_')}" for each in self.body)
        mask += "".join(f"-{each}" for each in ("keys", *self.lengths) if self.lengths)
        mask += "".join(f"-{each}" for each in self.kinds)
        mask += "" if self.times == 1 else f"-times{self.times}"
        mask += f"-{self.pages}pages{self.page}" if self.pages else ""
        return f"{sizes}-{self.element}{self.result}{mask}-{self.q}-{self.kv}-{self.out}"

    @property
    def elements(self) -> tuple[str, ...]:
        """Types of q, k and v."""
        return self.kinds or (self.element,) * 3

    @property
    def shapes(self) -> dict[str, list[int]]:
        """Shapes of the operands and of the result."""
        rows, keys = (
            {"b": self.b, "h": self.h, "m": self.m},
            {"b": self.b, "h": self.g, "n": self.n},
        )
        if self.pages:
            keys |= {"b": self.pages, "n": self.page}
        values = self.e or self.d
        dims = {
            "q": (self.q, rows | {"d": self.d}),
            "k": (self.kv, keys | {"d": self.d}),
            "v": (self.kv, keys | {"d": values}),
            "o": (self.out, rows | {"d": values}),
        }
        return {
            name: [extents[letter] for letter in layout] for name, (layout, extents) in dims.items()
        }

    @property
    def beside(self) -> list[tuple[str, str, list[int]]]:
        """For each tensor of the body: its dimensions as letters of bhmn, its type, and its
        shape."""
        parts = [each.split() for each in self.body]
        found = [(p[1], "i1" if p[0] == "mask" else p[2]) for p in parts if p[0] in NAMED]
        return [(x, kind, [getattr(self, n) if n in x else 1 for n in "bhmn"]) for x, kind in found]

    @property
    def region(self) -> str:
        """The text of the body."""
        if not self.body:
            return ""
        lines, score, number = ["^bb0(%sum: f32):"], "%sum", 0
        for place, part in enumerate(self.body):
            kind, *rest = part.split()
            new = f"%x{place}"
            if kind in NAMED:
                letters, element, shape = self.beside[number]
                at = ", ".join(x if x in letters else "0" for x in "bhmn")
                tensor = f"tensor<{'x'.join(map(str, shape))}x{element}>"
                lines.append(
                    f'%e{place} = "tc.element"(%t{number}) {{map = affine_map<(b, h, m, n) -> '
                    f"({at})>}} : ({tensor}) -> {element}"
                )
                number += 1
            if kind == "mask":
                lines.append(f"%none{place} = arith.constant 0xFF800000 : f32")
                lines.append(f"{new} = arith.select %e{place}, {score}, %none{place} : f32")
            elif kind == "bias":
                wide = f"%e{place}"
                if rest[1] != "f32":
                    wide = f"%w{place}"
                    lines.append(f"{wide} = arith.extf %e{place} : {rest[1]} to f32")
                lines.append(f"{new} = arith.addf {score}, {wide} : f32")
            else:
                factor = float(rest[0])
                lines.append(f"%c{place} = arith.constant {factor!r} : f32")
                if kind == "times":
                    lines.append(f"{new} = arith.mulf {score}, %c{place} : f32")
                else:
                    lines += [
                        f"%a{place} = arith.divf {score}, %c{place} : f32",
                        f"%b{place} = math.tanh %a{place} : f32",
                        f"{new} = arith.mulf %b{place}, %c{place} : f32",
                    ]
            score = new
        return "\n".join([*lines, f'"tc.yield"({score}) : (f32) -> ()'])

    @property
    def text(self) -> str:
        q, k, v = (self._type(*each) for each in zip("qkv", self.elements, strict=True))
        out = self._type("o", self.result or self.element)
        lse = f"tensor<{self.b}x{self.h}x{self.m}xf32>"
        mask = "" if self.causal is None else f", causal_offset = {self.causal} : i64"
        mask += "" if self.window is None else f", window_offset = {self.window} : i64"
        mask += "" if self.times == 1 else f", out_scale = {self.times!r} : f32"
        results, types = ("%o, %lse", f"({out}, {lse})") if self.lse else ("%o", out)
        more = "".join(
            f", %t{number}: tensor<{'x'.join(map(str, shape))}x{kind}>"
            for number, (_, kind, shape) in enumerate(self.beside)
        )
        table = f"x{1 + self.n // self.page}" if self.pages else ""
        name, kind = (", %l", f", tensor<{self.b}{table}xi32>") if self.lengths else ("", "")
        more += f"{name}:{kind[1:]}" if self.lengths else ""
        return f"""func.func @attention(%q: {q}, %k: {k}, %v: {v}{more}) -> {types} {{
          %o, %lse = "tc.attention"(%q, %k, %v{name}) ({{{self.region}}}) {{
              scale = {self.scale!r} : f32,
              q_layout = "{self.q}", kv_layout = "{self.kv}", out_layout = "{self.out}"{mask}}}
              : ({q}, {k}, {v}{kind}) -> ({out}, {lse})
          return {results} : {types.strip("()")}
        }}"""

    def _type(self, name: str, element: str) -> str:
        return f"tensor<{'x'.join(map(str, self.shapes[name]))}x{element}>"

    def paged(self, array: Array, table: Array) -> Array:
        """Keys or values [b, g, n, ..] of pages [pages, g, page, ..]."""
        found = [np.concatenate(list(array[row]), axis=1) for row in table]
        return np.stack(found)

    def rows(self, draw: np.random.Generator) -> Array:
        """A table of numbers of keys and of pages, no page twice."""
        count = self.n // self.page
        pages = draw.permutation(self.pages)[: self.b * count].reshape(self.b, count)
        return np.column_stack([self.lengths, pages]).astype(np.int32)

    def computed(self, q: Array, k: Array, v: Array, *beside: Array) -> tuple[Array, Array]:
        """Results and logarithms, in float64."""
        q = q if self.q == "bhmd" else q.swapaxes(1, 2)
        k, v = (each if self.kv == "bhnd" else each.swapaxes(1, 2) for each in (k, v))
        if self.pages:
            k, v = (self.paged(each, beside[-1][:, 1:]) for each in (k, v))
        group = self.h // self.g
        q, k, v = (each.astype(np.float64) for each in (q, k.repeat(group, 1), v.repeat(group, 1)))
        tensors, scores = list(beside), q @ k.swapaxes(-1, -2)
        for kind, *rest in (each.split() for each in self.body):
            if kind == "mask":
                scores = np.where(tensors.pop(0), scores, -np.inf)
            elif kind == "bias":
                scores = scores + tensors.pop(0).astype(np.float64)
            elif kind == "times":
                scores = scores * float(rest[0])
            else:
                scores = float(rest[0]) * np.tanh(scores / float(rest[0]))
        scores = scores * np.float64(np.float32(self.scale))
        row, key = np.arange(self.m)[:, None], np.arange(self.n)
        if self.causal is not None:
            scores = np.where(key <= row + self.causal, scores, -np.inf)
        if self.window is not None:
            scores = np.where(key >= row + self.window, scores, -np.inf)
        if self.lengths:
            few = np.array(self.lengths)[:, None, None, None]
            scores = np.where(key < few, scores, -np.inf)
        out, lse = attended(scores, v)
        out = out * np.float64(np.float32(self.times))
        return out if self.out == "bhmd" else out.swapaxes(1, 2), lse
