"""conv-shift-reuse over its whole family, at every level, against numpy, and numpy against torch.

Every level runs under two completion orders, the PTX under three or `TCIR_ORDERS`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import tcir

from .linalg_text import Conv
from .oracle import convolution, operands
from .shift_cases import CASES, TYPES, ShiftCase

cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def test_torch_agrees_with_the_oracle() -> None:
    """Every convolution of this file (one test: without torch the skip is one line)."""
    pytest.importorskip("torch", reason="torch, the second oracle of the convolutions, is missing")
    for conv in {
        **{case.conv.name: case.conv for case in CASES},
        **{c.name: c for c in TYPES},
    }.values():
        x, w = operands(conv)
        assert convolution(conv, x, w).tobytes() == by_torch(conv, x, w).tobytes(), conv.name


def by_torch(conv: Conv, x: Any, w: Any) -> Any:
    """torch's convolution on the CPU, in float64: exact for our integers."""
    import torch

    wide = [a.view(np.uint8) if e == "u8" else a for a, e in zip((x, w), conv.elements)]
    image, filters = (torch.from_numpy(a.astype(np.float64)) for a in wide)
    order = (0, 3, 1, 2) if conv.filter == "fhwc" else (3, 2, 0, 1)
    top, bottom, left, right = conv.pads
    padded = torch.nn.functional.pad(image.permute(0, 3, 1, 2), (left, right, top, bottom))
    out = torch.nn.functional.conv2d(
        padded, filters.permute(order), stride=conv.strides, dilation=conv.dilations
    )
    exact = out.permute(0, 2, 3, 1).contiguous().numpy()
    kind = convolution(conv, x[:0], w).dtype
    return exact.astype(np.int32 if kind == np.int32 else np.float32).astype(kind)


@cases
def test_case(case: ShiftCase, orders: int) -> None:
    conv = case.conv
    x, w = operands(conv)
    options = {"pipeline": "conv-shift-reuse", **case.options}
    kernel = tcir.compile(conv.text(), validate=True, orders=2, seed=3, **options)
    exact = kernel.report
    assert exact.ok, str(exact)
    assert {line.verdict for line in exact.passes} == {"reference", "equal"}, str(exact)
    assert not [f for line in exact.passes for f in line.findings], str(exact)
    want = convolution(conv, x, w)
    for order in (None, *range(1, orders)):
        out = np.zeros_like(want)
        ran = kernel(x, w, out, hazards="report", order_seed=order)
        assert out.tobytes() == want.tobytes(), f"completion order {order}"
        assert not ran.findings, f"completion order {order}: {ran.findings[0]}"
    shifts = ".ashift" in kernel.ptx or "tcgen05.shift" in kernel.ptx
    assert shifts == case.shifts
    assert ("tcgen05.shift" in kernel.ptx) == (case.shifts and case.halo.endswith("-shift"))
    assert (".4x256b" in kernel.ptx) == (case.shifts and case.halo != "mask")
    assert (".im2col::w::128" in kernel.ptx) == case.halo.startswith("w128")

    if conv.out != "i32":
        floats = tcir.validate(conv.text(), inputs="random", orders=1, seed=4, **options)
        assert floats.ok, str(floats)


@pytest.mark.parametrize("conv", TYPES, ids=lambda conv: conv.name)
def test_types_by_implicit_gemm(conv: Conv, orders: int) -> None:
    """The same types without a slab in tensor memory."""
    x, w = operands(conv)
    kernel = tcir.compile(conv.text(), "conv-implicit-gemm", validate=True, orders=orders, seed=3)
    assert kernel.report.ok, str(kernel.report)
    assert not [f for line in kernel.report.passes for f in line.findings], str(kernel.report)
    want = convolution(conv, x, w)
    out = np.zeros_like(want)
    kernel(x, w, out)
    assert out.tobytes() == want.tobytes()


def test_the_list_is_what_it_claims() -> None:
    names = [case.name for case in CASES]
    shifting = [case for case in CASES if case.shifts]
    counts = Counter(f"{case.tiling} {case.halo}" for case in CASES)
    types = Counter("x".join(case.conv.elements) + f" -> {case.conv.out}" for case in CASES)
    print(
        f"{len(CASES)} cases, {len(shifting)} with .ashift or tcgen05.shift; {dict(counts)}; "
        f"{dict(types)}"
    )
    for name in names:
        print(" ", name)
    assert len(set(names)) == len(CASES) >= 120
    assert len(shifting) >= 90
    assert {case.conv.strides[1] for case in CASES} == {1, 2, 3}
    assert {case.conv.dilations[1] for case in CASES} == {1, 2, 3}
    assert {case.conv.strides[0] for case in CASES} == {1, 2, 3}
    assert {case.conv.dilations[0] for case in CASES} == {1, 2, 3}
