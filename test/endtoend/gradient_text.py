"""Programs of one ``tc.attention_backward``, and what they compute in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
TYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


def gradients(
    q: Array, k: Array, v: Array, dout: Array, scale: float, kept: Array
) -> tuple[Array, ...]:
    """lse, delta, dq, dk and dv of heads [b, h, m, d] and [b, g, n, d], in float64.

    kept: mask [m, n]
    """
    q, k, v, dout = (each.astype(np.float64) for each in (q, k, v, dout))
    (b, h, _, _), (_, g, n, _) = q.shape, k.shape
    wide_k, wide_v = (each.repeat(h // g, 1) for each in (k, v))
    scores = np.where(kept, q @ wide_k.swapaxes(-1, -2) * scale, -np.inf)
    with np.errstate(all="ignore"):
        most = scores.max(-1, keepdims=True)
        most = np.where(np.isneginf(most), 0, most)
        powers = np.exp(scores - most)
        total = powers.sum(-1, keepdims=True)
        p = np.where(total == 0, 0, powers / total)
        lse = (np.log(total) + most)[..., 0]
    delta = (dout * (p @ wide_v)).sum(-1)
    ds = p * (dout @ wide_v.swapaxes(-1, -2) - delta[..., None]) * scale
    dk, dv = ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ dout
    dk, dv = (each.reshape(b, g, h // g, n, -1).sum(2) for each in (dk, dv))
    return lse, delta, ds @ wide_k, dk, dv


@dataclass(frozen=True)
class Gradient:
    """of: whose gradients; b, h, m, d of queries, g, n of keys, e of values; causal, window:
    offsets of a mask; q, kv: layouts."""

    of: str = "kv"
    b: int = 1
    h: int = 2
    m: int = 128
    d: int = 64
    g: int = 1
    n: int = 128
    e: int = 0
    element: str = "f16"
    causal: int | None = None
    window: int | None = None
    scale: float = 0.125
    q: str = "bhmd"
    kv: str = "bhnd"

    def __str__(self) -> str:
        sizes = "x".join(str(getattr(self, name)) for name in "bhmdgn") + f"x{self.e or self.d}"
        mask = "" if self.causal is None else f"-causal{self.causal}"
        mask += "" if self.window is None else f"-window{self.window}"
        return f"{self.of}-{sizes}-{self.element}{mask}-{self.q}-{self.kv}"

    @property
    def shapes(self) -> dict[str, list[int]]:
        """Shapes of q, k, v and dout, heads first."""
        rows, keys = [self.b, self.h, self.m], [self.b, self.g, self.n]
        last = self.e or self.d
        return {
            "q": [*rows, self.d],
            "k": [*keys, self.d],
            "v": [*keys, last],
            "dout": [*rows, last],
        }

    def _turned(self, name: str) -> bool:
        return (self.q if name in ("q", "dout") else self.kv)[2] == "h"

    def _type(self, name: str) -> str:
        first, second, third, last = self.shapes[name]
        if self._turned(name):
            second, third = third, second
        return f"tensor<{first}x{second}x{third}x{last}x{self.element}>"

    @property
    def text(self) -> str:
        """The program."""
        names = ["q"] if self.of == "q" else ["k", "v"]
        types = [self._type(each) for each in ("q", "k", "v", "dout")]
        types += [f"tensor<{self.b}x{self.h}x{self.m}xf32>"] * 2
        arguments = ["%q", "%k", "%v", "%dout", "%lse", "%delta"]
        given = ", ".join(f"{name}: {kind}" for name, kind in zip(arguments, types, strict=True))
        results = ", ".join(f"%d{each}" for each in names)
        found = ", ".join(self._type(each) for each in names)
        mask = "" if self.causal is None else f", causal_offset = {self.causal} : i64"
        mask += "" if self.window is None else f", window_offset = {self.window} : i64"
        return f"""func.func @backward({given}) -> ({found}) {{
          {results} = "tc.attention_backward"({", ".join(arguments)}) {{of = "{self.of}",
              scale = {self.scale!r} : f32, q_layout = "{self.q}", kv_layout = "{self.kv}"{mask}}}
              : ({", ".join(types)}) -> ({found})
          return {results} : {found}
        }}"""

    def arrays(self, seed: int = 0) -> tuple[list[Array], list[Array]]:
        """Operands, and the gradients in float64, in the layouts of the program."""
        draw, kind = np.random.default_rng(seed), TYPES[self.element]
        given = {n: draw.standard_normal(each).astype(kind) for n, each in self.shapes.items()}
        row, key = np.arange(self.m)[:, None], np.arange(self.n)
        kept = np.ones((self.m, self.n), bool)
        if self.causal is not None:
            kept &= key <= row + self.causal
        if self.window is not None:
            kept &= key >= row + self.window
        lse, delta, dq, dk, dv = gradients(*given.values(), float(np.float32(self.scale)), kept)
        found = {"q": dq} if self.of == "q" else {"k": dk, "v": dv}

        def turned(name: str, array: Array) -> Array:
            return np.ascontiguousarray(array.swapaxes(1, 2)) if self._turned(name) else array

        operands = [turned(name, each) for name, each in given.items()]
        operands += [lse.astype(np.float32), delta.astype(np.float32)]
        return operands, [turned(name, each) for name, each in found.items()]
