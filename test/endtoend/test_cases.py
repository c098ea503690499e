"""Every case at every level: equal on integers, within bound on floats, under several orders.

`make test` runs the quick ones with two completion orders, `make test-all` all of them with ten.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir

from .cases import CONVS, MATMULS
from .linalg_text import Conv, Matmul
from .oracle import convolution, integers, product


def _cases(cases: list[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


conv_cases = _cases(CONVS)
matmul_cases = _cases(MATMULS)


def _run(case: Conv | Matmul, pipeline: str, expected: Any, orders: int) -> tcir.Kernel:
    a_shape, b_shape, out_shape = case.shapes
    a, b = integers(a_shape, case.element, 1), integers(b_shape, case.element, 2)
    kernel = tcir.compile(case.text(), pipeline=pipeline)
    want = expected(case, a, b)
    out = np.zeros_like(want)
    kernel(a, b, out)
    assert out.shape == out_shape
    assert out.tobytes() == want.tobytes()

    exact = tcir.validate(case.text(), pipeline, inputs="integers", orders=orders, seed=3)
    assert exact.ok, str(exact)
    assert {line.verdict for line in exact.passes} == {"reference", "equal"}, str(exact)
    assert not [f for line in exact.passes for f in line.findings]

    floats = tcir.validate(case.text(), pipeline, inputs="random", orders=1, seed=4)
    assert floats.ok, str(floats)
    return kernel


@conv_cases
def test_conv_shift_reuse(case: Conv, orders: int) -> None:
    kernel = _run(case, "conv-shift-reuse", convolution, orders)
    assert (".ashift" in kernel.ptx) == (case.s > 1)


@conv_cases
def test_conv_implicit_gemm(case: Conv, orders: int) -> None:
    kernel = _run(case, "conv-implicit-gemm", convolution, orders)
    assert ".im2col" in kernel.ptx
    assert ".ashift" not in kernel.ptx


@conv_cases
def test_conv_smem_offset(case: Conv, orders: int) -> None:
    kernel = _run(case, "conv-smem-offset", convolution, orders)
    assert ".ashift" not in kernel.ptx


@matmul_cases
def test_matmul(case: Matmul, orders: int) -> None:
    _run(case, "matmul", product, orders)


def test_the_list_is_what_it_claims() -> None:
    assert len(CONVS) >= 24
    assert len(MATMULS) >= 12
    assert sum(case.k > 128 for case in CONVS) >= 5
    assert any(case.c % 64 and case.c > 64 for case in CONVS)
    assert any(case.k % 16 for case in CONVS)
    assert {(case.r, case.s) for case in CONVS} >= {(5, 5), (1, 3), (3, 3), (1, 1)}
    assert {case.element for case in CONVS} == {"f16", "bf16"}
    assert {case.out for case in CONVS} == {"f32", "f16", "bf16"}
