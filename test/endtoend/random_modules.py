"""Modules at random: layers of any kind, size, layout and type, in plain linalg.

``python -m endtoend.random_modules 0 300`` (in test/) runs those of the seeds from 0 to 299 and
prints what each did, and refusals by reason; with one seed the module, too.
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import count
from random import Random
from typing import NamedTuple

import numpy as np

from .computed import UNARY, Computed, finished, kind_of, outcome, reason_of, sizes
from .numbers_with_errors import OutOfRange

SEEDS = 300
FLOATS = ("f16", "bf16", "f16", "bf16", "f32", "f8E4M3FN", "f8E5M2")
NARROW = ("f16", "bf16")
SMOOTH = ("tanh", "gelu", "silu")
PIECEWISE = tuple(name for name in UNARY if name not in SMOOTH)


class Module(NamedTuple):
    """A module, its inputs, what numpy has of it, and the pipeline it is for."""

    program: Computed
    results: tuple[str, ...]
    pipeline: str

    def run(self) -> str:
        """Compiled and run from PTX, see `outcome`."""
        return outcome(*finished(self.program, *self.results), self.pipeline)


def module(seed: int) -> Module:
    """The module of a seed, the first one drawn whose bound says something.

    Those of odd seeds have floats as inputs, the others whole numbers.
    """
    for attempt in count():
        draw = Random(f"{seed}, {attempt}")
        program = Computed(generator=np.random.default_rng([seed, attempt]), normal=seed % 2 == 1)
        build = draw.choice(
            [_perceptron, _perceptron, _batched, _convolutions, _convolutions, _attention,
             _product, _product, _product, _cuda_cores, _graph]
        )  # fmt: skip
        try:
            results, pipeline = build(draw, program)
        except OutOfRange:
            continue
        if all(program.numbers[each].tells() for each in results):
            return Module(program, results, pipeline)
    raise AssertionError


Built = tuple[tuple[str, ...], str]


def _size(draw: Random, most: int = 80) -> int:
    """Multiples of 8, and any."""
    return draw.choice([8 * draw.randint(1, most // 8), draw.randint(1, most)])


def _some(draw: Random, p: Computed, x: str, channel: int, others: tuple[str, ...] = ()) -> str:
    """Ops behind sums, at random; others: tensors of the same shape that they may read."""
    if p.types[x].endswith("i32"):
        return x if draw.random() < 0.5 else _some(draw, p, p.narrow(x, "f32"), channel)
    shape = sizes(p.types[x])
    loops = "abcdef"[: len(shape)]
    for _ in range(draw.randint(0, 3)):
        kind = draw.randrange(6)
        if kind <= 1:
            of = channel if draw.random() < 0.8 else draw.randrange(len(shape))
            vector = p.given(kind_of([shape[of]], draw.choice(["f32", "f32", *NARROW])))
            x = p.binary(x, draw.choice(["add", "add", "mul", "sub", "max"]), vector, loops[of])
        elif kind == 2:
            other = p.given(kind_of(shape, draw.choice(["f32", *NARROW])))
            if others and draw.random() < 0.5:
                other = draw.choice(others)
            x = p.binary(x, draw.choice(["add", "sub", "max"]), other, loops)
        elif kind == 3 and len(shape) == 2 and shape[0] == shape[1]:
            x = p.binary(x, "add", p.given(kind_of(shape, "f32")), "ba")
        else:
            smooth = p.normal or draw.random() < 0.2
            x = p.unary(x, draw.choice(SMOOTH if smooth else PIECEWISE))
    return x


def _end(draw: Random, p: Computed, x: str) -> str:
    """Rounded, or not."""
    small = np.abs(p.numbers[x].value).max() < 60000
    if p.types[x].endswith("f32") and small and draw.random() < 0.5:
        return p.narrow(x, draw.choice(NARROW))
    return x


def _times(draw: Random, p: Computed, x: str, n: int, batch: str = "") -> str:
    """A tensor times a new matrix, in any order of the matrix's dimensions."""
    *outer, k = sizes(p.types[x])
    letters = "abcdef"[: len(outer)]
    lead = outer[: len(batch)]
    order = draw.choice(["kn", "nk"])
    extents = {"k": k, "n": n}
    element = p.types[x].rpartition("x")[2]
    w = p.given(kind_of([*lead, *(extents[d] for d in order)], element))
    return p.contract(x, w, (f"{letters}k", f"{letters[: len(lead)]}{order}", f"{letters}n"))


def _product(draw: Random, p: Computed) -> Built:
    """One product of any type and layout."""
    element = draw.choice([*FLOATS, "i8"])
    extents = {"m": _size(draw, 140), "n": _size(draw), "k": _size(draw, 100), "l": 3}
    batch = "l" if draw.random() < 0.3 else ""
    a, b = batch + draw.choice(["mk", "mk", "km"]), batch + draw.choice(["kn", "nk"])
    out = batch + draw.choice(["mn", "mn", "mn", "nm"])
    left = p.given(kind_of([extents[d] for d in a], element))
    right = p.given(kind_of([extents[d] for d in b], element))
    total = "i32" if element == "i8" else "f32"
    start = p.given(kind_of([extents[d] for d in out], total)) if draw.random() < 0.2 else ""
    x = _some(draw, p, p.contract(left, right, (a, b, out), start), -1)
    pipeline = draw.choice(["gemm", "gemm", "gemm", "matmul-warp", "simt-elementwise"])
    return (_end(draw, p, x),), pipeline


def _perceptron(draw: Random, p: Computed) -> Built:
    """Two to four products in a row, of two or three dimensions."""
    element = draw.choice(NARROW)
    outer = [_size(draw, 64)] if draw.random() < 0.7 else [draw.randint(1, 4), draw.randint(1, 30)]
    x = p.given(kind_of([*outer, _size(draw, 64)], element))
    between: list[str] = []
    for _ in range(draw.randint(2, 4)):
        same = tuple(t for t in between if sizes(p.types[t])[:-1] == outer)
        x = _times(draw, p, x, _size(draw, 64))
        fitting = tuple(t for t in same if sizes(p.types[t]) == sizes(p.types[x]))
        x = _halved(p, _some(draw, p, x, -1, fitting))
        x = p.narrow(x, element)
        between.append(x)
    results = (x,) if draw.random() < 0.7 or len(between) < 2 else (x, between[0])
    return results, "gemm"


def _halved(p: Computed, x: str) -> str:
    """Small enough to be rounded to f16 and multiplied again."""
    if np.abs(p.numbers[x].value).max() > 200:
        x = p.unary(x, "clip")
    return x


def _batched(draw: Random, p: Computed) -> Built:
    """Products of a batch."""
    element = draw.choice(FLOATS)
    x = p.given(kind_of([draw.randint(1, 4), _size(draw, 48), _size(draw, 48)], element))
    x = _some(draw, p, _times(draw, p, x, _size(draw, 48), "l"), -1)
    return (_end(draw, p, x),), draw.choice(["gemm", "gemm", "matmul-warp"])


def _attention(draw: Random, p: Computed) -> Built:
    """Softmax between two products; of one head or several."""
    element = draw.choice(NARROW)
    rows, keys, width = _size(draw, 48), _size(draw, 48), _size(draw, 32)
    lead = [] if draw.random() < 0.6 else [draw.randint(2, 3)]
    batch = "l" * len(lead)
    q = p.given(kind_of([*lead, rows, width], element))
    k, v = (p.given(kind_of([*lead, keys, width], element)) for _ in range(2))
    scores = p.contract(q, k, (f"{batch}mk", f"{batch}nk", f"{batch}mn"))
    weights = p.softmaxed(p.unary(scores, draw.choice(["half", "tanh"])))
    x = p.contract(p.narrow(weights, element), v, (f"{batch}mk", f"{batch}kn", f"{batch}mn"))
    return (_end(draw, p, _some(draw, p, x, -1)),), "gemm"


def _convolutions(draw: Random, p: Computed) -> Built:
    """One to three convolutions, pooling behind them at times."""
    layout = draw.choice(["nhwc", "nhwc", "nhwc fhwc", "nchw"])
    many = draw.choice([1, 1, 2, 3])
    element = draw.choice(["f16", "bf16", "f16", "bf16", "f32", "f8E4M3FN", "i8"])
    element = element if many == 1 else draw.choice(NARROW)
    n, h, w, c = draw.randint(1, 2), draw.randint(6, 13), draw.randint(6, 13), _size(draw, 32)
    channel = 1 if layout == "nchw" else -1
    x = p.given(kind_of([n, c, h, w] if layout == "nchw" else [n, h, w, c], element))
    for number in range(many):
        r, s = draw.choice([(1, 1), (3, 3), (3, 3), (1, 3), (5, 5), (2, 2)])
        shape = sizes(p.types[x])
        c, k = shape[channel], _size(draw, 40)
        order = {"nhwc": (r, s, c, k), "nhwc fhwc": (k, r, s, c), "nchw": (k, c, r, s)}[layout]
        small = min(shape[2:] if layout == "nchw" else shape[1:3])
        dilation = 2 if small >= 12 and draw.random() < 0.3 else 1
        pad = max(r, s) // 2 * dilation
        stride = draw.choice([1, 1, 2])
        sums = p.convolve(x, p.given(kind_of(order, element)), layout, stride, dilation, pad)
        last = number == many - 1
        residual = (x,) if sizes(p.types[x]) == sizes(p.types[sums]) and many > 1 else ()
        x = _some(draw, p, sums, channel, residual)
        x = _end(draw, p, x) if last else p.narrow(_halved(p, x), element)
    pooled = layout != "nchw" and min(sizes(p.types[x])[1:3]) >= 3 and draw.random() < 0.3
    if pooled and not p.types[x].endswith("i32"):
        way = "max" if not p.types[x].endswith("f32") else draw.choice(["max", "sum"])
        x = p.pool(x, way, draw.randint(2, 3), draw.randint(1, 2), draw.randint(0, 1))
    pipeline = draw.choice(
        ["conv", "conv", "conv-shift-reuse", "conv-smem-offset", "conv-implicit-gemm"]
    )
    return (x,), pipeline


def _cuda_cores(draw: Random, p: Computed) -> Built:
    """Elementwise ops, reductions and softmax, without products."""
    shape = [draw.randint(1, 12) for _ in range(draw.randint(1, 4))]
    element = draw.choice(["f32", *NARROW])
    x = p.given(kind_of(shape, element))
    x = x if element == "f32" else p.widened(x)
    for _ in range(draw.randint(1, 3)):
        kind = draw.randrange(4)
        shape = sizes(p.types[x])
        if kind == 0 and len(shape) > 1:
            x = p.over_rows(x, draw.choice(["max", "sum"]))
        elif kind == 1 and len(shape) > 1:
            x = p.softmaxed(x)
        elif kind == 2 and len(shape) > 1:
            order = list(range(len(shape)))
            draw.shuffle(order)
            x = p.transposed(x, tuple(order))
        else:
            x = _some(draw, p, x, draw.randrange(len(shape)))
    if x in (f"x{n}" for n in range(len(p.arrays))):
        x = p.unary(x, "relu")
    return (_end(draw, p, x),), "simt-elementwise"


def _graph(draw: Random, p: Computed) -> Built:
    """Square matrices: products, elementwise ops, reductions and transposes of any earlier ones."""
    element, n = draw.choice(NARROW), 8 * draw.randint(2, 5)
    factors = [p.given(kind_of((n, n), element)) for _ in range(3)]
    sums = [p.contract(*draw.sample(factors, 2), ("mk", "kn", "mn"))]
    for _ in range(draw.randint(1, 5)):
        x = draw.choice(sums)
        match draw.randrange(6):
            case 0:
                sums.append(p.contract(draw.choice(factors), draw.choice(factors),
                                       (draw.choice(["mk", "km"]), "nk", "mn")))  # fmt: skip
            case 1:
                factors.append(p.narrow(_halved(p, x), element))
            case 2:
                sums.append(p.binary(x, "add", draw.choice(sums), draw.choice(["ab", "ba"])))
            case 3:
                most = p.over_rows(x, "max")
                sums.append(p.binary(x, "sub", most, "a"))
            case 4:
                factors.append(p.transposed(draw.choice(factors), (1, 0)))
            case _:
                sums.append(_some(draw, p, x, -1))
    return (sums[-1],), "gemm"


# --- beyond what compiles --------------------------------------------------------------------


def beyond(seed: int) -> Module:
    """A module with something that tensor cores, or a function of launches, may not have."""
    draw = Random(f"beyond {seed}")
    program = Computed(generator=np.random.default_rng(seed))
    build = (_with_a_head, _mixed_types, _vector_of_floats, _twice, _argument, _wide_integers)[
        seed % 6
    ]
    results, pipeline = build(draw, program)
    return Module(program, results, pipeline)


def _with_a_head(draw: Random, p: Computed) -> Built:
    """A convolution, and a product of its result: a classifier."""
    n, size, k = draw.randint(1, 3), draw.randint(4, 7), _size(draw, 24)
    x = p.given(kind_of((n, size, size, 8), "f16"))
    x = p.narrow(p.convolve(x, p.given(kind_of((3, 3, 8, k), "f16")), pad=1), "f16")
    x = _times(draw, p, p.folded(x), _size(draw, 24))
    return (x,), draw.choice(["conv", "gemm", "layers"])


def _mixed_types(draw: Random, p: Computed) -> Built:
    """f16 times bf16."""
    m, n, k = (_size(draw, 40) for _ in range(3))
    a, b = p.given(kind_of((m, k), "f16")), p.given(kind_of((k, n), "bf16"))
    return (p.contract(a, b, ("mk", "kn", "mn")),), draw.choice(["gemm", "matmul-warp"])


def _vector_of_floats(draw: Random, p: Computed) -> Built:
    """A product of f32 in the pipeline of block-scaled vectors."""
    m, k = _size(draw, 40), _size(draw, 40)
    a, b = p.given(kind_of((m, k), "f32")), p.given(kind_of((k,), "f32"))
    return (p.contract(a, b, ("mk", "k", "m")),), draw.choice(["gemv-simt", "gemv-padded-n"])


def _twice(draw: Random, p: Computed) -> Built:
    """Returns one tensor as two results."""
    m, n, k = (_size(draw, 40) for _ in range(3))
    a, b = p.given(kind_of((m, k), "f16")), p.given(kind_of((k, n), "f16"))
    c = p.contract(a, b, ("mk", "kn", "mn"))
    return (c, c), "gemm"


def _argument(draw: Random, p: Computed) -> Built:
    """An argument as a result."""
    m, n, k = (_size(draw, 40) for _ in range(3))
    a, b = p.given(kind_of((m, k), "f16")), p.given(kind_of((k, n), "f16"))
    return (p.contract(a, b, ("mk", "kn", "mn")), a), "gemm"


def _wide_integers(draw: Random, p: Computed) -> Built:
    """A product of i32, which no tensor core multiplies."""
    m, n, k = (_size(draw, 24) for _ in range(3))
    a, b = p.given(kind_of((m, k), "i32")), p.given(kind_of((k, n), "i32"))
    return (p.contract(a, b, ("mk", "kn", "mn")),), draw.choice(["gemm", "matmul-warp"])


def main(words: list[str]) -> None:
    """Runs the modules of some seeds."""
    first, last = int(words[0]), int(words[-1])
    found: Counter[str] = Counter()
    for seed in range(first, max(last, first + 1)):
        made = module(seed)
        if last <= first + 1:
            print(made.program.text(*made.results))
        try:
            said = made.run()
        except AssertionError as error:
            said = f"WRONG: {error}"
        print(f"{seed:>4} {made.pipeline:<18} {said}", flush=True)
        found[reason_of(said) if said.startswith("refused") else said] += 1
    for reason, times in found.most_common():
        print(f"{times:>4}  {reason}")


if __name__ == "__main__":
    main(sys.argv[1:])
