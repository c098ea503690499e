"""Modules of several layers: kinds of layers, types, layouts, and the ops after them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .computed import UNARY, Computed, kind_of, sizes
from .numbers_with_errors import DTYPES, Number

Build = Callable[[Computed], str]


@dataclass(frozen=True)
class Case:
    """A module: how it is written, from argument to result.

    deep: so many layers that the bound of random floats is as large as the results
    """

    name: str
    pipeline: str
    build: Build
    deep: bool = False

    def __str__(self) -> str:
        return f"{self.pipeline}-{self.name}"


def behind(p: Computed, x: str, words: str, channel: int = -1) -> str:
    """What a case has behind its sums, in order; channel: the dimension of biases and scales.

    bias, scale: a number for each channel; residual: a tensor of f32, residual:TYPE of another;
    names of `UNARY`; names of types: rounding.
    """
    for word in words.split():
        shape = sizes(p.types[x])
        loops = "abcdef"[: len(shape)]
        if word in ("bias", "scale"):
            number = p.given(kind_of([shape[channel]], "f32"))
            x = p.binary(x, "add" if word == "bias" else "mul", number, loops[channel])
        elif word.startswith("residual"):
            element = word.partition(":")[2] or "f32"
            x = p.binary(x, "add", p.given(kind_of(shape, element)), loops)
        elif word == "row":
            x = p.binary(x, "mul", p.given(kind_of([shape[0]], "f32")), loops[0])
        elif word == "softmax":
            x = p.softmaxed(x)
        elif word in DTYPES:
            x = p.narrow(x, word)
        else:
            assert word in UNARY, word
            x = p.unary(x, word)
    return x


def product(
    sizes_of: dict[str, int],
    maps: str,
    element: str,
    words: str = "",
    pipeline: str = "gemm",
    other: str = "",
    start: bool = False,
) -> Case:
    """Sums of products, ``"mk kn mn"``, and `words` behind them; start: sums begin at an
    argument."""
    a, b, out = maps.split()

    def build(p: Computed) -> str:
        left = p.given(kind_of([sizes_of[d] for d in a], element))
        right = p.given(kind_of([sizes_of[d] for d in b], other or element))
        total = "i32" if element == "i8" else "f32"
        first = p.given(kind_of([sizes_of[d] for d in out], total)) if start else ""
        return behind(p, p.contract(left, right, (a, b, out), first), words)

    size = "x".join(f"{d}{n}" for d, n in sizes_of.items())
    begun = " onto an argument" * start
    name = f"{element}{other} {maps} {size} {words}{begun}".strip()
    return Case(name.replace(" ", "-"), pipeline, build)


def conv(
    image: tuple[int, ...],
    k: int,
    taps: tuple[int, int],
    element: str,
    words: str = "",
    layout: str = "nhwc",
    pipeline: str = "conv",
    **steps: int,
) -> Case:
    """A convolution; image: n, h, w, c in the order of `layout`; steps: stride, dilation, pad."""

    def build(p: Computed) -> str:
        r, s = taps
        c = image[1 if layout == "nchw" else 3]
        shape = {"nhwc": (r, s, c, k), "nhwc fhwc": (k, r, s, c), "nchw": (k, c, r, s)}[layout]
        x, w = p.given(kind_of(image, element)), p.given(kind_of(shape, element))
        sums = p.convolve(x, w, layout, **steps)
        return behind(p, sums, words, 1 if layout == "nchw" else -1)

    given = [f"{name}{n}" for name, n in steps.items()]
    size = "x".join(map(str, image))
    name = f"{element} {layout} {size} {taps[0]}x{taps[1]}x{k} {' '.join(given)} {words}"
    return Case("-".join(name.split()), pipeline, build)


def layers(m: int, widths: list[int], element: str, words: str, last: str = "bias") -> Case:
    """A perceptron."""

    def build(p: Computed) -> str:
        x = p.given(kind_of([m, widths[0]], element))
        for number, (k, n) in enumerate(pairwise(widths)):
            x = p.contract(x, p.given(kind_of([n, k], element)), ("mk", "nk", "mn"))
            ends = number == len(widths) - 2
            x = behind(p, x, last if ends else f"{words} {element}")
        return x

    name = f"mlp-{m}x{'x'.join(map(str, widths))}-{element}-{words.replace(' ', '-')}"
    return Case(name, "gemm", build, deep="silu" in words)


def convolutions(words: str, *steps: dict[str, int]) -> Case:
    """3 x 3 convolutions of f16 in a row."""

    def build(p: Computed) -> str:
        x = p.given("1x12x12x16xf16")
        for step in steps:
            c = sizes(p.types[x])[3]
            sums = p.convolve(x, p.given(kind_of((3, 3, c, 24), "f16")), "nhwc", pad=1, **step)
            x = p.narrow(behind(p, sums, words), "f16")
        return x

    name = f"{len(steps)}-convolutions-{words.replace(' ', '-')}"
    return Case(name, "conv", build, deep=len(steps) > 2)


def attention(rows: int, width: int, element: str) -> Case:
    """Softmax of products, and another product."""

    def build(p: Computed) -> str:
        q, k, v = (p.given(kind_of((rows, width), element)) for _ in range(3))
        scores = p.unary(p.contract(q, k, ("mk", "nk", "mn")), "half")
        return p.contract(p.narrow(p.softmaxed(scores), element), v, ("mk", "kn", "mn"))

    return Case(f"attention-{rows}x{width}-{element}", "gemm", build)


def normalised(rows: int, width: int, words: str, root: bool) -> Case:
    """Rows without their means; root: divided by their standard deviation, a layer norm."""

    def mean(p: Computed, x: str) -> str:
        return p.binary(p.over_rows(x, "sum"), "mul", _constant(p, rows, 1 / width), "a")

    def build(p: Computed) -> str:
        x = p.given(kind_of((rows, width), "f32"))
        x = p.binary(x, "sub", mean(p, x), "a")
        if root:
            variance = p.unary(mean(p, p.binary(x, "mul", x, "ab")), "shift")
            inverse = p.mapped(
                f"{rows}xf32",
                "%t = math.rsqrt %s : f32",
                p.numbers[variance].rsqrt(),
                (variance, "a"),
            )
            x = p.binary(x, "mul", inverse, "a")
        return behind(p, x, words)

    name = f"{'layer-norm' if root else 'centred'}-{rows}x{width}-{words.replace(' ', '-')}"
    return Case(name, "simt-elementwise", build)


def _constant(p: Computed, rows: int, number: float) -> str:
    """A vector of one number: a power of two."""
    name = p.filled(f"{rows}xf32", repr(number))
    return p.known(name, Number.exact(np.full(rows, number)))


def elementwise(shape: tuple[int, ...], element: str, words: str) -> Case:
    """Elementwise ops on CUDA cores."""

    def build(p: Computed) -> str:
        x = p.given(kind_of(shape, element))
        return behind(p, x if element == "f32" else p.widened(x), words)

    name = f"{'x'.join(map(str, shape))}-{element}-{words.replace(' ', '-')}"
    return Case(f"elementwise-{name}", "simt-elementwise", build)


def pooling(way: str, element: str, window: int, stride: int, pad: int) -> Case:
    def build(p: Computed) -> str:
        return p.pool(p.given(f"2x9x11x8x{element}"), way, window, stride, pad)

    return Case(f"pooling-{way}-{element}-{window}-{stride}-{pad}", "simt-elementwise", build)


def reduction(way: str, shape: tuple[int, ...]) -> Case:
    def build(p: Computed) -> str:
        return p.over_rows(p.given(kind_of(shape, "f32")), way)

    return Case(f"reduction-{way}-{'x'.join(map(str, shape))}", "simt-elementwise", build)


def softmax(*shape: int) -> Case:
    return Case(
        f"softmax-{'x'.join(map(str, shape))}",
        "simt-elementwise",
        lambda p: p.softmaxed(p.given(kind_of(shape, "f32"))),
    )


def sized(**extents: int) -> dict[str, Any]:
    return extents


SMALL = sized(m=40, n=48, k=64)
ODD = sized(m=37, n=29, k=53)
TALL = sized(m=136, n=24, k=96)
HEADS = sized(l=3, m=40, n=24, k=32)
LINEAR = [
    *(product(SMALL, "mk nk mn", element) for element in ("f16", "bf16", "f32", "f8E4M3FN", "i8")),
    product(SMALL, "mk kn mn", "f16", "bias"),
    product(TALL, "mk nk mn", "bf16", "bias relu bf16"),
    product(ODD, "mk nk mn", "f16", "bias relu f16"),
    product(ODD, "km kn mn", "bf16", "scale bias clip bf16"),
    product(SMALL, "km nk mn", "f16", "residual:f16 relu f16"),
    product(SMALL, "km kn mn", "f32", "bias"),
    product(ODD, "mk kn mn", "f32", "bias tanh"),
    product(TALL, "mk kn mn", "f8E5M2", "row f16"),
    product(SMALL, "mk nk mn", "f8E4M3FN", "scale bf16", other="f8E5M2"),
    product(SMALL, "mk nk mn", "i8", "f32 scale bias"),
    product(ODD, "mk kn mn", "i8"),
    product(TALL, "mk nk mn", "bf16", "bias gelu bf16"),
    product(SMALL, "mk nk mn", "f16", "bias silu"),
    product(SMALL, "mk kn mn", "bf16", "half shift negative"),
    product(SMALL, "mk kn mn", "f16", start=True),
    product(ODD, "mk nk mn", "bf16", "relu", start=True),
    product(SMALL, "mk kn nm", "f16", "f16"),
    product(SMALL, "mk nk mn", "f16", "bias softmax"),
    product(sized(m=1, n=96, k=128), "mk nk mn", "bf16", "bias bf16"),
    product(sized(a=2, b=3, n=40, k=32), "abk nk abn", "f16", "bias"),
    product(sized(a=2, b=20, h=3, d=16, n=40), "abhd hdn abn", "bf16"),
]
"""`nn.Linear` and what is near it."""
BATCHED = [
    product(HEADS, "lmk lkn lmn", "f16"),
    product(HEADS, "lmk lnk lmn", "bf16", "half"),
    product(HEADS, "lkm lkn lmn", "f16", "f16"),
    product(HEADS, "lmk lkn lmn", "f32"),
    product(HEADS, "lmk lnk lmn", "f8E4M3FN", "bf16"),
    product(HEADS, "lmk lnk lmn", "i8"),
    product(sized(a=2, b=3, m=20, n=24, k=16), "abmk abnk abmn", "f16"),
    product(sized(b=2, h=3, m=20, n=24, k=16), "bmhk bnhk bhmn", "bf16"),
    product(sized(l=2, m=33, n=17, k=21), "lmk lkn lmn", "bf16", "relu"),
]
VECTORS = [
    product(sized(m=72, k=40), "mk k m", "f16"),
    product(sized(m=72, k=40), "mk k m", "bf16", "bias relu"),
    product(sized(n=72, k=40), "k kn n", "f16"),
    product(sized(n=72, k=40), "k nk n", "f32"),
    product(sized(m=72, k=40), "mk k m", "f16", "tanh", pipeline="simt-elementwise"),
    product(sized(m=12, n=20, k=24), "mk kn mn", "bf16", "bias", pipeline="simt-elementwise"),
]
WARP = [
    product(SMALL, "mk kn mn", "f16", pipeline="matmul-warp"),
    product(SMALL, "mk nk mn", "bf16", "bias relu bf16", pipeline="matmul-warp"),
    product(SMALL, "mk nk mn", "f32", pipeline="matmul-warp"),
    product(SMALL, "mk nk mn", "i8", pipeline="matmul-warp"),
    product(SMALL, "mk nk mn", "f8E4M3FN", "scale", pipeline="matmul-warp"),
    product(HEADS, "lmk lkn lmn", "f16", "half", pipeline="matmul-warp"),
    product(ODD, "mk nk mn", "f16", "residual", pipeline="matmul-warp"),
]
IMAGE = (2, 9, 11, 16)
CHANNELS_FIRST = (2, 16, 9, 11)
CONVOLUTIONS = [
    conv(IMAGE, 24, (3, 3), "f16", pad=1),
    conv(IMAGE, 24, (3, 3), "bf16", "bias relu bf16", pad=1),
    conv(IMAGE, 24, (3, 3), "f32", pad=1),
    conv(IMAGE, 32, (3, 3), "f8E4M3FN", "scale bias bf16", pad=1),
    conv(IMAGE, 32, (3, 3), "i8", pad=1),
    conv(IMAGE, 40, (1, 1), "f16", "scale bias relu f16"),
    conv(IMAGE, 40, (1, 1), "bf16", stride=2),
    conv(IMAGE, 24, (3, 3), "f16", "bias relu f16", stride=2, pad=1),
    conv(IMAGE, 24, (3, 3), "f16", "residual:f16 relu", pad=1),
    conv(IMAGE, 24, (3, 3), "bf16", dilation=2, pad=2),
    conv(IMAGE, 24, (5, 3), "f16", "bias tanh"),
    conv(IMAGE, 24, (1, 7), "bf16", "bias"),
    conv(IMAGE, 24, (3, 3), "f16", "bias gelu f16", layout="nhwc fhwc", pad=1),
    conv((1, 10, 10, 3), 16, (7, 7), "f16", "scale bias relu f16", stride=2, pad=3),
    conv(CHANNELS_FIRST, 24, (3, 3), "f16", layout="nchw", pad=1),
    conv(CHANNELS_FIRST, 24, (3, 3), "bf16", "bias relu bf16", layout="nchw", pad=1),
    conv(CHANNELS_FIRST, 24, (1, 1), "f16", "residual:f16", layout="nchw"),
    conv(CHANNELS_FIRST, 24, (3, 3), "f16", "scale bias f16", layout="nchw", stride=2, pad=1),
    conv(IMAGE, 24, (3, 3), "f16", "bias relu f16", pipeline="conv-shift-reuse", pad=1),
    conv(IMAGE, 24, (3, 3), "f16", "bias relu f16", pipeline="conv-smem-offset", pad=1),
    conv(IMAGE, 24, (3, 3), "f16", "bias relu f16", pipeline="conv-implicit-gemm", pad=1),
    convolutions("bias relu", {}, {"stride": 2}),
    convolutions("bias clip", {}, {}, {"stride": 2}),
]
PERCEPTRONS = [
    layers(40, [32, 48, 24], "f16", "bias relu"),
    layers(37, [29, 53, 24], "bf16", "bias relu"),
    layers(40, [32, 64, 48, 16], "bf16", "bias clip"),
    layers(40, [32, 48, 24], "bf16", "bias gelu"),
    layers(40, [32, 48, 24], "f16", "silu"),
    attention(40, 32, "bf16"),
    attention(37, 24, "f16"),
]
CUDA_CORES = [
    elementwise((20, 24), "f32", "bias relu"),
    elementwise((7, 5, 9), "f16", "scale tanh f16"),
    elementwise((300,), "bf16", "shift clip bf16"),
    elementwise((3, 4, 5, 6), "f32", "residual:bf16 gelu"),
    elementwise((12, 10), "f16", "silu f16"),
    softmax(20, 24),
    softmax(3, 4, 9),
    pooling("max", "f16", 3, 2, 1),
    pooling("max", "f32", 2, 2, 0),
    pooling("sum", "f32", 3, 1, 1),
    reduction("sum", (20, 33)),
    reduction("max", (4, 5, 6)),
    normalised(12, 32, "scale bias", root=False),
    normalised(6, 64, "relu", root=False),
    normalised(12, 32, "scale bias", root=True),
    normalised(9, 16, "scale bias f16", root=True),
]
CASES = [*LINEAR, *BATCHED, *VECTORS, *WARP, *CONVOLUTIONS, *PERCEPTRONS, *CUDA_CORES]
