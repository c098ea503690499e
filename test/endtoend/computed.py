"""Functions on tensors written op by op, each op computed in numpy beside its text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tcir

from .layers_text import GELU, RELU, Layers
from .numbers_with_errors import DTYPES, Array, Number, contracted

Binary = Callable[[Number, Number], Number]
ONE, HALF, ZERO = (Number.exact(each) for each in (1.0, 0.5, 0.0))
SILU = """%n = arith.negf %s : f32
 %e = math.exp %n : f32
 %one = arith.constant 1.0 : f32
 %d = arith.addf %one, %e : f32
 %t = arith.divf %s, %d : f32"""
UNARY: dict[str, tuple[str, Callable[[Number], Number]]] = {
    "relu": (RELU, lambda x: x.maximum(ZERO)),
    "half": ("%c = arith.constant 0.5 : f32\n %t = arith.mulf %s, %c : f32", lambda x: x * HALF),
    "shift": ("%c = arith.constant 1.0 : f32\n %t = arith.addf %s, %c : f32", lambda x: x + ONE),
    "negative": ("%t = arith.negf %s : f32", lambda x: ZERO - x),
    "clip": (
        "%c = arith.constant 6.0 : f32\n %u = arith.minimumf %s, %c : f32\n"
        " %z = arith.constant 0.0 : f32\n %t = arith.maximumf %u, %z : f32",
        lambda x: (ZERO - (ZERO - x).maximum(Number.exact(-6.0))).maximum(ZERO),
    ),
    "tanh": ("%t = math.tanh %s : f32", Number.tanh),
    "gelu": (GELU, lambda x: x * ((x * Number.exact(0.70710678)).erf() + ONE) * HALF),
    "silu": (SILU, Number.silu),
}
BINARY: dict[str, tuple[str, Binary]] = {
    "add": ("arith.addf", Number.__add__),
    "sub": ("arith.subf", Number.__sub__),
    "mul": ("arith.mulf", Number.__mul__),
    "max": ("arith.maximumf", Number.maximum),
}


def sizes(kind: str) -> list[int]:
    """The shape of ``20x24xf32``."""
    return [int(each) for each in kind.split("x")[:-1]]


def kind_of(shape: Any, element: str) -> str:
    return "x".join([*map(str, shape), element])


def element_of(kind: str) -> str:
    return kind.rpartition("x")[2]


def spread(number: Number, dims: str, loops: str) -> Number:
    """The array with one dimension per loop: of size 1 for loops that `dims` does not contain."""

    def change(array: Array) -> Array:
        array = array.transpose([dims.index(d) for d in loops if d in dims])
        return array[tuple(slice(None) if d in dims else None for d in loops)]

    return number.map(change)


def contraction(a: str, b: str, out: str) -> str:
    """The attributes of a ``linalg.generic`` that sums products up."""
    loops = list(dict.fromkeys(out + a + b))
    maps = ", ".join(
        f"affine_map<({', '.join(loops)}) -> ({', '.join(each)})>" for each in (a, b, out)
    )
    kinds = ", ".join(f'"{"parallel" if d in out else "reduction"}"' for d in loops)
    return f"{{indexing_maps = [{maps}], iterator_types = [{kinds}]}}"


NAMED = {
    ("mk", "kn", "mn"): "linalg.matmul",
    ("lmk", "lkn", "lmn"): "linalg.batch_matmul",
    ("mk", "k", "m"): "linalg.matvec",
    ("k", "kn", "n"): "linalg.vecmat",
}
CONVS = {"nhwc": "nhwc_hwcf", "nhwc fhwc": "nhwc_fhwc", "nchw": "nchw_fchw"}
"""Layouts of convolutions, and the names of their ops."""


@dataclass
class Computed(Layers):
    """A function while it is written; every method computes what it writes.

    generator: of the inputs
    normal:    inputs are floats, normally distributed; else whole numbers from -3 to 3 but 0
    """

    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    normal: bool = False
    numbers: dict[str, Number] = field(default_factory=dict)
    arrays: list[Array] = field(default_factory=list)

    def given(self, kind: str) -> str:
        """A new argument and its values."""
        name = self.argument(f"x{len(self.arguments)}", kind)
        dtype = DTYPES[element_of(kind)]
        if self.normal and element_of(kind) != "i8":
            values = self.generator.standard_normal(sizes(kind))
        else:
            values = self.generator.choice([-3, -2, -1, 1, 2, 3], sizes(kind))
        self.arrays.append(np.asarray(values).astype(np.float32).astype(dtype))
        self.numbers[name] = Number.exact(self.arrays[-1].astype(np.float64))
        return name

    def known(self, name: str, number: Number) -> str:
        """A tensor whose values are `number`."""
        assert list(number.value.shape) == sizes(self.types[name]), (name, number.value.shape)
        self.numbers[name] = number
        return name

    def factor(self, name: str) -> Number:
        """A tensor as the tensor core multiplies it."""
        number = self.numbers[name]
        return number.rounded("tf32") if element_of(self.types[name]) == "f32" else number

    # --- ops ---------------------------------------------------------------------------------

    def contract(self, a: str, b: str, maps: tuple[str, str, str], start: str = "") -> str:
        """Sums of products, dimensions as letters: ``("mk", "kn", "mn")``; start: added to them."""
        extents = dict(zip(maps[0] + maps[1], sizes(self.types[a]) + sizes(self.types[b])))
        element = element_of(self.types[a])
        total = "i32" if element in ("i8", "i32") else "f32"
        kind = kind_of([extents[d] for d in maps[2]], total)
        sums = start or self.filled(kind, "0" if total == "i32" else "0.0")
        operands = (
            f"ins(%{a}, %{b} : tensor<{self.types[a]}>, tensor<{self.types[b]}>) "
            f"outs(%{sums} : tensor<{kind}>)"
        )
        if name := NAMED.get(maps):
            made = self.op(name, kind, f"{operands} -> tensor<{kind}>")
        else:
            body = self._product_body(element, element_of(self.types[b]), total)
            given = f"{contraction(*maps)}\n    {operands} {{\n{body}\n  }} -> tensor<{kind}>"
            made = self.op("linalg.generic", kind, given)
        spec = f"{maps[0]},{maps[1]}->{maps[2]}"
        number = contracted(self.factor(a), self.factor(b), spec)
        return self.known(made, number + self.numbers[start] if start else number)

    def _product_body(self, a: str, b: str, total: str) -> str:
        lines, wide = [f"  ^bb0(%a: {a}, %b: {b}, %o: {total}):"], []
        for name, element in (("%a", a), ("%b", b)):
            wide.append(name)
            if element != total:
                op = "extsi" if total == "i32" else "extf"
                wide[-1] = f"{name}w"
                lines.append(f" {name}w = arith.{op} {name} : {element} to {total}")
        suffix = "i" if total == "i32" else "f"
        lines.append(f" %p = arith.mul{suffix} {', '.join(wide)} : {total}")
        lines.append(f" %t = arith.add{suffix} %o, %p : {total}\n linalg.yield %t : {total}")
        return "\n".join(lines)

    def convolve(
        self, x: str, w: str, layout: str = "nhwc", stride: int = 1, dilation: int = 1, pad: int = 0
    ) -> str:
        """A convolution of two dimensions, padded with zeros; layout: of `CONVS`."""
        first = layout == "nchw"
        image, filters = self.factor(x), self.factor(w)
        if pad:
            x = self._pad(x, pad, "0" if element_of(self.types[x]) == "i8" else "0.0", first)
            around = ((0, 0), (pad, pad), (pad, pad), (0, 0))
            around = ((0, 0), (0, 0), (pad, pad), (pad, pad)) if first else around
            image = image.map(lambda array: np.pad(array, around))
        if first:
            image = image.map(lambda array: array.transpose(0, 2, 3, 1))
        order = {"nhwc": "rsck", "nhwc fhwc": "krsc", "nchw": "kcrs"}[layout]
        extents = dict(zip(order, sizes(self.types[w])))
        span = [(extents[d] - 1) * dilation + 1 for d in "rs"]

        def windows(array: Array) -> Array:
            found = np.lib.stride_tricks.sliding_window_view(array, span, (1, 2))
            return found[:, ::stride, ::stride, :, ::dilation, ::dilation]

        number = contracted(image.map(windows), filters, f"npqcrs,{order}->npqk")
        if first:
            number = number.map(lambda array: array.transpose(0, 3, 1, 2))
        total = "i32" if element_of(self.types[x]) == "i8" else "f32"
        kind = kind_of(number.value.shape, total)
        zeros = self.filled(kind, "0" if total == "i32" else "0.0")
        made = self.op(
            f"linalg.conv_2d_{CONVS[layout]}",
            kind,
            f"{{strides = dense<{stride}> : vector<2xi64>, "
            f"dilations = dense<{dilation}> : vector<2xi64>}} "
            f"ins(%{x}, %{w} : tensor<{self.types[x]}>, tensor<{self.types[w]}>) "
            f"outs(%{zeros} : tensor<{kind}>) -> tensor<{kind}>",
        )
        return self.known(made, number)

    def pool(self, x: str, way: str, window: int, stride: int, pad: int = 0) -> str:
        """The largest or the sum of windows of an NHWC image."""
        element = element_of(self.types[x])
        image = self.numbers[x]
        edge = {"sum": "0.0", "f32": "0xFF800000", "bf16": "0xFF80", "f16": "0xFC00"}[
            "sum" if way == "sum" else element
        ]
        if pad:
            around = ((0, 0), (pad, pad), (pad, pad), (0, 0))
            image = Number(
                np.pad(image.value, around, constant_values=0 if way == "sum" else -np.inf),
                np.pad(image.error, around),
            )
            x = self._pad(x, pad, edge, first=False)

        def windows(array: Array) -> Array:
            found = np.lib.stride_tricks.sliding_window_view(array, (window, window), (1, 2))
            return found[:, ::stride, ::stride].reshape(*found[:, ::stride, ::stride].shape[:4], -1)

        number = image.map(windows)
        number = number.max() if way == "max" else number.sum()
        kind = kind_of(number.value.shape, element)
        shape, start = self.empty(kind_of((window, window), element)), self.filled(kind, edge)
        made = self.op(
            f"linalg.pooling_nhwc_{way}",
            kind,
            f"{{strides = dense<{stride}> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}} "
            f"ins(%{x}, %{shape} : tensor<{self.types[x]}>, tensor<{self.types[shape]}>) "
            f"outs(%{start} : tensor<{kind}>) -> tensor<{kind}>",
        )
        return self.known(made, number)

    def _pad(self, x: str, pad: int, number: str, first: bool) -> str:
        """Height and width with `pad` more on each side."""
        if not first:
            return self.padded(x, pad, number)
        n, c, h, w = sizes(self.types[x])
        element = element_of(self.types[x])
        kind = kind_of((n, c, h + 2 * pad, w + 2 * pad), element)
        edge = self.op("arith.constant", element, f"{number} : {element}")
        ends = f"[0, 0, {pad}, {pad}]"
        return self.op(
            f"tensor.pad %{x}",
            kind,
            f"low{ends} high{ends} {{\n  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):\n"
            f" tensor.yield %{edge} : {element}\n  }} : tensor<{self.types[x]}> to tensor<{kind}>",
        )

    def mapped(self, kind: str, body: str, number: Number, *reads: tuple[str, str]) -> str:
        """A ``linalg.generic`` over the dimensions a, b, c, …, whose values are `number`."""
        loops = "abcdef"[: len(sizes(kind))]
        return self.known(self._generic(kind, body, loops, (), self.empty(kind), *reads), number)

    def unary(self, x: str, name: str) -> str:
        """An op of `UNARY` on every element of f32."""
        kind = self.types[x]
        body, compute = UNARY[name]
        loops = "abcdef"[: len(sizes(kind))]
        return self.mapped(kind, body, compute(self.numbers[x]), (x, loops))

    def binary(self, x: str, name: str, other: str, dims: str) -> str:
        """An op of `BINARY` with another tensor, read along `dims` of a, b, c, …"""
        kind = self.types[x]
        loops = "abcdef"[: len(sizes(kind))]
        op, compute = BINARY[name]
        element = element_of(self.types[other])
        wide = "%s1" if element == "f32" else "%w"
        body = "" if element == "f32" else f"%w = arith.extf %s1 : {element} to f32\n "
        body += f"%t = {op} %s, {wide} : f32"
        number = compute(self.numbers[x], spread(self.numbers[other], dims, loops))
        return self.mapped(kind, body, number, (x, loops), (other, dims))

    def narrow(self, x: str, element: str) -> str:
        """Rounded to a narrower type; of i32 to f32 without a change."""
        kind = self.types[x]
        to = kind_of(sizes(kind), element)
        op = "sitofp" if element_of(kind) == "i32" else "truncf"
        number = self.numbers[x].rounded(element)
        loops = "abcdef"[: len(sizes(kind))]
        body = f"%t = arith.{op} %s : {element_of(kind)} to {element}"
        return self.mapped(to, body, number, (x, loops))

    def widened(self, x: str) -> str:
        """Widens to f32."""
        kind = kind_of(sizes(self.types[x]), "f32")
        loops = "abcdef"[: len(sizes(kind))]
        body = f"%t = arith.extf %s : {element_of(self.types[x])} to f32"
        return self.mapped(kind, body, self.numbers[x], (x, loops))

    def over_rows(self, x: str, way: str) -> str:
        """The largest, or the sum, of the last dimension, in f32."""
        kind = kind_of(sizes(self.types[x])[:-1], "f32")
        outer = "abcdef"[: len(sizes(kind))]
        op, start = {"max": ("maximumf", "0xFF800000"), "sum": ("addf", "0.0")}[way]
        body = f"%t = arith.{op} %s, %o : f32"
        made = self._generic(kind, body, outer, ("z",), self.filled(kind, start), (x, f"{outer}z"))
        number = self.numbers[x]
        return self.known(made, number.max() if way == "max" else number.sum())

    def softmaxed(self, x: str) -> str:
        """Over the last dimension: max, exp, sum, divide."""
        kind = self.types[x]
        loops = "abcdef"[: len(sizes(kind))]
        shifted = self.binary(x, "sub", self.over_rows(x, "max"), loops[:-1])
        e = self.mapped(
            kind, "%t = math.exp %s : f32", self.numbers[shifted].exp(), (shifted, loops)
        )
        total = self.over_rows(e, "sum")
        number = self.numbers[e] / spread(self.numbers[total], loops[:-1], loops)
        return self.mapped(
            kind, "%t = arith.divf %s, %s1 : f32", number, (e, loops), (total, loops[:-1])
        )

    def transposed(self, x: str, order: tuple[int, ...]) -> str:
        """Transposes by ``linalg.transpose``."""
        shape = sizes(self.types[x])
        kind = kind_of([shape[n] for n in order], element_of(self.types[x]))
        empty = self.empty(kind)
        made = self.op(
            "linalg.transpose",
            kind,
            f"ins(%{x} : tensor<{self.types[x]}>) outs(%{empty} : tensor<{kind}>) "
            f"permutation = {list(order)}",
        )
        return self.known(made, self.numbers[x].map(lambda array: array.transpose(order)))

    def folded(self, x: str) -> str:
        """All dimensions but the last as one."""
        *outer, last = sizes(self.types[x])
        kind = kind_of((int(np.prod(outer)), last), element_of(self.types[x]))
        groups = [list(range(len(outer))), [len(outer)]]
        made = self.op(
            f"tensor.collapse_shape %{x}",
            kind,
            f"{groups} : tensor<{self.types[x]}> into tensor<{kind}>",
        )
        return self.known(made, self.numbers[x].map(lambda array: array.reshape(sizes(kind))))


def outcome(
    text: str, arrays: list[Array], wanted: dict[str, Number], pipeline: str, **options: Any
) -> str:
    """What a program does: "equal", "within bound", or "refused: " and why.

    wanted: results, by type as ``20x24xf32`` behind a number. Anything else is an AssertionError.
    """
    try:
        kernel = tcir.compile(text, pipeline, **options)
    except tcir.Error as error:
        return f"refused: {error}"
    results = []
    for each in wanted:
        kind = each.partition(" ")[2]
        results.append(np.full(sizes(kind), 77, DTYPES[element_of(kind)]))
    report = kernel(*arrays, *results)
    assert not report.findings, report.findings
    exact = True
    for result, want in zip(results, wanted.values(), strict=True):
        assert want.tells(), "a bound that says nothing"
        off = np.abs(result.astype(np.float64) - want.value)
        wrong = ~(off <= want.error)
        assert not wrong.any(), (
            f"{wrong.sum()} of {wrong.size} elements; at {np.argwhere(wrong)[0]} expected "
            f"{want.value[wrong][0]} within {want.error[wrong][0]}, got {result[wrong][0]}"
        )
        exact &= not want.error.any()
    return "equal" if exact else "within bound"


def finished(program: Computed, *results: str) -> tuple[str, list[Array], dict[str, Number]]:
    """Text, inputs and wanted results of a program that returns `results`."""
    wanted = {f"{n} {program.types[each]}": program.numbers[each] for n, each in enumerate(results)}
    return program.text(*results), program.arrays, wanted


def reason_of(refusal: str) -> str:
    """A refusal without its place and its numbers: what refusals for the same reason share."""
    first = refusal.removeprefix("refused: ").splitlines()[0]
    return re.sub(r"^\S+:\d+:\d+: ", "", first)
