"""Attention on both cores, for pairs of all axes: heads, masks, groups, remainders, types, layouts,
numbers of keys of a batch, parts of the keys.

`CASES` has every two values of two axes together, where a kernel takes both, and more of the same
kind up to `COUNT`, and then keys in pages with every value of the other axes. PTX has the bits of
the last program of tiles, near those of float64; every 16th case is executed after each pass, every
eighth and all with pages in other orders.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir.interp import OutputSpec, executor_for
from tcir.program.execution import run_sequence
from tcir.program.source import load_module, mlir_context
from tcir.run_options import RunOptions

from .attention_text import Array, Attention

COUNT = 160
AXES: dict[str, tuple[object, ...]] = {
    "target": ("sm_100a", "sm_90a"),
    "d": (16, 48, 64, 96, 128, 256),
    "e": (16, 64, 80, 128, 256),
    "m": (1, 40, 128, 200),
    "n": (64, 130, 256, 300),
    "heads": ((1, 1), (2, 2), (4, 2), (4, 1)),
    "causal": (None, 0, 70, -60),
    "element": ("f16", "bf16"),
    "result": ("", "f32"),
    "order": ("rows within heads", "heads within rows"),
    "options": ("", "tau=0.0", "stages=1", "rows=256"),
    "share": (None, 0.0, 0.4),
    "parts": (1, 2, 3),
}
PAGES = (16, 48, 128)
"""Keys of a page."""
DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
Choice = tuple[object, ...]


@dataclass(frozen=True)
class Case(Attention):
    """options: of the pipeline; parts: of the keys."""

    target: str = ""
    options: str = ""
    parts: int = 1

    def __str__(self) -> str:
        return f"{self.target} {super().__str__()} {self.options} {self.parts}".strip()

    @staticmethod
    def of(choice: Choice, page: int = 0) -> Case:
        """The case of a value for each axis; page: keys of a page, whose last one is whole."""
        values = dict(zip(AXES, choice, strict=True))
        h, g = values.pop("heads")  # type: ignore[misc]
        if page:
            count = -(-values["n"] // page)  # type: ignore[operator]
            values |= {"n": count * page, "page": page, "pages": count + 3}
        share, keys = values.pop("share"), values["n"]
        if share is None and page:
            share = 1.0
        values["lengths"] = () if share is None else (int(share * keys),)  # type: ignore[operator]
        within = values.pop("order") == "heads within rows"
        layouts = ("bmhd", "bnhd", "bmhd") if within else ("bhmd", "bhnd", "bhmd")
        q, kv, out = layouts
        return Case(h=h, g=g, q=q, kv=kv, out=out, **values)  # type: ignore[arg-type]

    @property
    def pipeline(self) -> str:
        return f"attention{{split-kv={self.parts} {self.options}}}"


def taken(choice: Choice) -> bool:
    """Whether a kernel takes it: two tiles of 128 rows are for tensor memory, and have columns for
    values of up to 80 elements beside blocks of up to 128 keys."""
    values = dict(zip(AXES, choice, strict=True))
    tiles = values["target"] == "sm_100a" and values["e"] in (16, 64)
    return values["options"] != "rows=256" or tiles


def pairs(choice: Choice) -> set[tuple[int, object, int, object]]:
    """The values of each two axes."""
    return {(a, x, b, y) for (a, x), (b, y) in combinations(enumerate(choice), 2)}


def choices(count: int) -> Iterator[Choice]:
    """Choices that have all pairs, as many new ones each as one of 60 at random has, and more."""
    draw = random.Random(1)
    every = {
        pair
        for (a, xs), (b, ys) in combinations(enumerate(AXES.values()), 2)
        for x in xs
        for y in ys
        for pair in [(a, x, b, y)]
        if possible(pair)
    }
    found: set[Choice] = set()
    while every or len(found) < count:
        tried = [tuple(draw.choice(values) for values in AXES.values()) for _ in range(60)]
        tried = [each for each in tried if taken(each) and each not in found]
        best = max(tried, key=lambda each: len(pairs(each) & every))
        every -= pairs(best)
        found.add(best)
        yield best


def with_pages() -> Iterator[tuple[Choice, int]]:
    """Choices that have every value of an axis with every size of a page."""
    draw, found = random.Random(2), set[tuple[int, object, int]]()
    wanted = {
        (axis, value, page)
        for axis, values in enumerate(AXES.values()) for value in values for page in PAGES
    }  # fmt: skip
    while wanted - found:
        tried = [tuple(draw.choice(values) for values in AXES.values()) for _ in range(60)]
        each = [(choice, page) for choice in tried if taken(choice) for page in PAGES]
        best = max(each, key=lambda c: len(_of_page(*c) & (wanted - found)))
        found |= _of_page(*best)
        yield best


def _of_page(choice: Choice, page: int) -> set[tuple[int, object, int]]:
    return {(axis, value, page) for axis, value in enumerate(choice)}


def possible(pair: tuple[int, object, int, object]) -> bool:
    """Whether a kernel takes two values together."""
    start = ["sm_100a", 64, 64, 128, 128, (1, 1), None, "f16", "", "", "", None, 1]
    a, x, b, y = pair
    start[a], start[b] = x, y
    return taken(tuple(start))


PAGED = [Case.of(*each) for each in with_pages()]
CASES = [*(Case.of(choice) for choice in choices(COUNT)), *PAGED]
SMALL = [each for each in PAGED if each.n < 128 and each not in PAGED[::4]]
"""Cases whose blocks have keys beyond the table, with weight 0: values there must be finite."""
AT_EVERY_LEVEL = [*CASES[:COUNT:16], *PAGED[::4], *SMALL]
IN_ORDERS = [*CASES[:COUNT:8], *PAGED]
ORDERS = range(7)


@cache
def kernel(case: Case) -> tcir.Kernel:
    return tcir.compile(case.text, case.pipeline, target=case.target)


def drawn(case: Case) -> list[Array]:
    rng = np.random.default_rng(5)
    arrays = [
        np.asarray(rng.standard_normal(case.shapes[name]), DTYPES[case.element]) for name in "qkv"
    ]
    if case.pages:
        return [*arrays, case.rows(rng)]
    return [*arrays, *([np.array(case.lengths, np.int32)] if case.lengths else [])]


def results(case: Case) -> list[OutputSpec]:
    return [
        OutputSpec(tuple(case.shapes["o"]), np.dtype(DTYPES[case.result or case.element])),
        OutputSpec((case.b, case.h, case.m), np.dtype(np.float32)),
    ]


def test_pairs_are_covered() -> None:
    found = set().union(*map(pairs, choices(COUNT)))
    for (a, xs), (b, ys) in combinations(enumerate(AXES.values()), 2):
        wanted = {(a, x, b, y) for x in xs for y in ys}
        assert not {each for each in wanted - found if possible(each)}
    assert len(CASES) >= COUNT and len(set(CASES)) == len(CASES)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_ptx_has_the_bits_of_tiles(case: Case) -> None:
    """Those of one kernel, and the numbers of numpy of one and two."""
    made, inputs = kernel(case), drawn(case)
    outputs = results(case)
    threads = run_sequence(made.ptx, made.launches, inputs, outputs)
    assert not threads.findings
    if len(made.launches.launches) == 1:
        with mlir_context() as context:
            module = load_module(made.ir["interleave-products"], context)
            tiles = executor_for("tile")(module, "attention", inputs, outputs)
        assert not tiles.findings
        for one, other in zip(tiles.outputs, threads.outputs, strict=True):
            assert one.tobytes() == other.tobytes()
    out, lse = case.computed(*inputs)
    unit = 2.0**-8 if case.element == "bf16" else 2.0**-11
    assert (
        np.abs(threads.outputs[0].astype(np.float64) - out).max()
        <= 4 * unit * np.abs(inputs[2]).max()
    )
    np.testing.assert_allclose(threads.outputs[1], lse, atol=1e-4)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", AT_EVERY_LEVEL, ids=str)
def test_at_every_level(case: Case) -> None:
    """Within the bound after tiling, bit for bit after every later pass. Where no row has a key,
    all logarithms are -inf, and a report has no verdict."""
    report = tcir.validate(case.text, case.pipeline, target=case.target)
    if case.causal is not None and case.m + case.causal <= 0:
        assert report.verdict == "incomplete" and "no finite" in str(report), str(report)
    else:
        assert report.ok, str(report)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", IN_ORDERS, ids=str)
def test_other_orders(case: Case) -> None:
    """No hazard, and the same bits, whichever operation completes first."""
    made, inputs = kernel(case), drawn(case)
    found = [
        run_sequence(made.ptx, made.launches, inputs, results(case), RunOptions(order_seed=seed))
        for seed in ORDERS
    ]
    assert not any(each.findings for each in found)
    assert len({tuple(out.tobytes() for out in each.outputs) for each in found}) == 1
