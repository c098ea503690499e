"""Branches of convolutions that meet: what is stored between launches, and its layout."""

from __future__ import annotations

import numpy as np
import pytest

import tcir

from .breaking import Edit, change_text, run_broken, set_attribute
from .test_layers import Array, convolution, text, whole

NAME = "pooled_branches"
SHAPES = [
    (2, 8, 12, 12),
    (16, 8, 3, 3),
    (32, 16, 1, 1),
    (32,),
    (32, 16, 1, 1),
    (32,),
    (16, 32, 1, 1),
]


def numpy(x: Array, a: Array, b: Array, p: Array, c: Array, q: Array, d: Array) -> Array:
    """Rounded to f16 where PyTorch stores; sums of whole numbers are exact in any order."""

    def stored(values: Array) -> Array:
        return values.astype(np.float16).astype(np.float64)

    image = stored(np.maximum(convolution(x, a, 1, 1), 0))
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    pooled = windows[:, :, ::2, ::2].max((-1, -2))
    left, right = (
        stored(convolution(pooled, w, 1, 0) + bias[:, None, None]) for w, bias in ((b, p), (c, q))
    )
    return convolution(stored(np.maximum(stored(left + right), 0)), d, 1, 0).astype(np.float16)


def test_what_is_stored() -> None:
    """Each branch stores its rounded result, not its sums; images stay channels last through the
    pooling, and no launch repacks one between others."""
    kernel = tcir.compile(text(NAME), "layers", target="sm_90a")
    rows = [(each.name, each.stored + each.results) for each in kernel.launch_table.rows]
    images = [stored for name, stored in rows if "repack" not in name]
    pooled, branch = 2 * 36 * 16 * 2, 2 * 36 * 32 * 2
    assert images == [4 * pooled, pooled, branch, branch, pooled], rows
    assert sum("repack" in name for name, _ in rows) == 3, rows  # the input, its filter, the result
    inputs = [whole(shape, seed) for seed, shape in enumerate(SHAPES)]
    want = numpy(*(each.astype(np.float64) for each in inputs))
    out = np.zeros(want.shape, np.float16)
    report = kernel(*inputs, out)
    assert not report.findings
    assert out.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(
            set_attribute("tc.repack", "permutation", "array<i64: 0, 3, 2, 1>"), id="the result"
        ),
        pytest.param(
            change_text(
                r"\(d0, d2 \* 2 \+ d4, d3 \* 2 \+ d5, d1\)", "(d0, d3 * 2 + d4, d2 * 2 + d5, d1)"
            ),
            id="the windows",
        ),
    ],
)
def test_breaks(edit: Edit) -> None:
    """Rows and columns exchanged."""
    caught = run_broken(text(NAME), tcir.named_pipeline("layers"), "fold-layouts", edit)
    assert caught and (caught.at, caught.by) == ("fold-layouts", "difference"), caught
