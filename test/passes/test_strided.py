"""Views of tensors by offset and digits, beside numpy's: random chains of reshapes, transposes and
slices."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numpy as np
import pytest

from tcir._mlir import func, ir, tensor
from tcir.passes.analysis.moves import transpose
from tcir.passes.analysis.strided import strided
from tcir.passes.emit.reshape import reshape
from tcir.program.boundary.attention import elements
from tcir.program.source import mlir_context

Array = np.ndarray[Any, Any]


def _factors(size: int, draw: random.Random) -> list[int]:
    found = []
    while size > 1:
        divisors = [n for n in range(2, size + 1) if size % n == 0]
        found.append(draw.choice(divisors))
        size //= found[-1]
    return [*found, *([1] if draw.random() < 0.2 else [])] or [1]


def _moved(value: ir.Value, array: Array, draw: random.Random) -> tuple[ir.Value, Array]:
    """A random move, in both."""
    move = draw.choice(("reshape", "transpose", "slice"))
    shape = list(array.shape)
    if move == "reshape":
        new = (
            _factors(prod(shape), draw)
            if draw.random() < 0.5
            else [n for size in shape for n in _factors(size, draw)]
        )
        return reshape(value, new), array.reshape(new)
    if move == "transpose":
        order = draw.sample(range(len(shape)), len(shape))
        return transpose(value, order), array.transpose(order)
    low = [draw.randrange(n) for n in shape]
    sizes = [
        draw.randint(1, n - first) if draw.random() < 0.5 else n for first, n in zip(low, shape)
    ]
    low = [0 if size == n else first for first, size, n in zip(low, sizes, shape)]
    kind = ir.RankedTensorType.get(sizes, ir.F16Type.get())
    made = tensor.ExtractSliceOp(kind, value, [], [], [], low, sizes, [1] * len(shape)).result
    return made, array[tuple(slice(a, a + n) for a, n in zip(low, sizes))]


@pytest.mark.parametrize("seed", range(6))
def test_random_views_are_where_numpy_has_them(seed: int) -> None:
    draw, deepest = random.Random(seed), 0
    for _ in range(20):
        shape = [draw.choice((1, 2, 3, 4, 6)) for _ in range(draw.randint(1, 4))]
        array = np.arange(prod(shape)).reshape(shape)
        with mlir_context(), ir.Location.unknown():
            module = ir.Module.create()
            kind = ir.RankedTensorType.get(shape, ir.F16Type.get())
            with ir.InsertionPoint(module.body):
                function = func.FuncOp("f", ir.FunctionType.get([kind], []))
            with ir.InsertionPoint(function.add_entry_block()):
                value, arrays = function.arguments[0], dict[ir.Value, Array]()
                arrays[value] = array
                for _ in range(draw.randint(1, 6)):
                    value, array = _moved(value, array, draw)
                    arrays[value] = array
                view = strided(value)
                memory = np.ascontiguousarray(arrays[view.base])
                assert view.shape == list(array.shape)
                np.testing.assert_array_equal(elements(view, memory).reshape(array.shape), array)
                deepest += view.base == function.arguments[0]
    assert deepest >= 10
