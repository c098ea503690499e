"""Quantised products of linalg: products of i8 on tensor cores, and corrections, against numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tcir

Array = np.ndarray[Any, Any]
MMA = {"sm_100a": "tcgen05.mma", "sm_90a": "wgmma.mma_async"}
START = 7


def tensor(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


@dataclass(frozen=True)
class Case:
    """A quantised op; sizes as its name has them; read: whether zero points are tensors."""

    op: str
    points: tuple[int, int]
    target: str = "sm_100a"
    stride: int = 1
    dilation: int = 1
    channels: int = 32
    read: bool = False

    def __str__(self) -> str:
        extra = f"s{self.stride} d{self.dilation} c{self.channels}" + " read" * self.read
        return f"{self.op} {self.points} {self.target} {extra}"

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        n, c, f, size, k = 2, self.channels, 24, 9, 3
        out = (size - self.dilation * (k - 1) - 1) // self.stride + 1
        return {
            "quantized_matmul": ((40, c), (c, 24), (40, 24)),
            "quantized_batch_matmul": ((3, 40, c), (3, c, 24), (3, 40, 24)),
            "conv_2d_nchw_fchw_q": ((n, c, size, size), (f, c, k, k), (n, f, out, out)),
            "conv_2d_nhwc_hwcf_q": ((n, size, size, c), (k, k, c, f), (n, out, out, f)),
            "conv_2d_nhwc_fhwc_q": ((n, size, size, c), (f, k, k, c), (n, out, out, f)),
        }[self.op]

    @property
    def text(self) -> str:
        x, w, y = (tensor(s, e) for s, e in zip(self.shapes, ("i8", "i8", "i32"), strict=True))
        p, q = (f"arith.constant {n} : i32" for n in self.points)
        given = ""
        if self.read:
            p, q = (f"tensor.extract %{n}[] : tensor<i32>" for n in ("tp", "tq"))
            given = ", %tp: tensor<i32>, %tq: tensor<i32>"
        windows = (
            f"{{dilations = dense<{self.dilation}> : vector<2xi64>, "
            f"strides = dense<{self.stride}> : vector<2xi64>}} "
        )
        attributes = windows if self.op.startswith("conv") else ""
        return f"""func.func @f(%x: {x}, %w: {w}{given}) -> {y} {{
  %p = {p}
  %q = {q}
  %c = arith.constant dense<{START}> : {y}
  %y = linalg.{self.op} {attributes}ins(%x, %w, %p, %q : {x}, {w}, i32, i32)
    outs(%c : {y}) -> {y}
  return %y : {y}
}}
"""

    def drawn(self) -> list[Array]:
        draw = np.random.default_rng(0)
        factors = [draw.integers(-128, 128, s).astype(np.int8) for s in self.shapes[:2]]
        return factors + [np.asarray(n, np.int32) for n in self.points] * self.read

    def expected(self, a: Array, b: Array) -> Array:
        a, b = (x.astype(np.int64) - n for x, n in zip((a, b), self.points, strict=True))
        if "matmul" in self.op:
            return (a @ b + START).astype(np.int32)
        if "nchw" in self.op:
            a, b = a.transpose(0, 2, 3, 1), b.transpose(2, 3, 1, 0)
        elif "fhwc" in self.op:
            b = b.transpose(1, 2, 3, 0)
        reach = self.dilation * 2 + 1
        seen = np.lib.stride_tricks.sliding_window_view(a, (reach, reach), (1, 2))
        seen = seen[:, :: self.stride, :: self.stride, :, :: self.dilation, :: self.dilation]
        y = np.einsum("npqcrs,rscf->npqf", seen, b) + START
        return (y.transpose(0, 3, 1, 2) if "nchw" in self.op else y).astype(np.int32)


CASES = [
    Case("quantized_matmul", (0, 0)),
    Case("quantized_matmul", (3, 0), "sm_90a"),
    Case("quantized_matmul", (0, -5)),
    Case("quantized_matmul", (-128, 127)),
    Case("quantized_matmul", (3, -5), "sm_90a"),
    Case("quantized_matmul", (3, -5), read=True),
    Case("quantized_batch_matmul", (3, -5)),
    Case("quantized_batch_matmul", (3, -5), "sm_90a", channels=33),
    Case("conv_2d_nchw_fchw_q", (3, 0)),
    Case("conv_2d_nchw_fchw_q", (3, 0), "sm_90a"),
    Case("conv_2d_nhwc_hwcf_q", (3, 0), "sm_90a"),
    Case("conv_2d_nchw_fchw_q", (3, -5), read=True),
    Case("conv_2d_nchw_fchw_q", (3, -5), channels=3),
    Case("conv_2d_nhwc_hwcf_q", (3, -5)),
    Case("conv_2d_nhwc_hwcf_q", (-128, 127), dilation=2),
    Case("conv_2d_nhwc_fhwc_q", (0, -5), stride=2),
]
ON_CUDA_CORES = [Case("conv_2d_nhwc_fhwc_q", (3, -5), "sm_90a")]
"""Windows of pixels that have no index there."""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_tensor_core_multiplies(case: Case) -> None:
    kernel = tcir.compile(case.text, "layers", target=case.target)
    assert MMA[case.target] in kernel.ptx
    given = case.drawn()
    assert np.array_equal(kernel.run(*given), case.expected(*given[:2]))


@pytest.mark.parametrize("case", ON_CUDA_CORES, ids=str)
def test_what_wgmma_does_not_take(case: Case) -> None:
    kernel = tcir.compile(case.text, "layers", target=case.target)
    assert MMA[case.target] not in kernel.ptx
    given = case.drawn()
    assert np.array_equal(kernel.run(*given), case.expected(*given[:2]))


def test_a_zero_point_of_0_has_no_sum() -> None:
    launches = [
        len(tcir.compile(Case("quantized_matmul", points).text, "layers").launches.launches)
        for points in ((0, 0), (3, 0), (0, -5), (3, -5))
    ]
    assert [n - launches[0] for n in launches] == [0, 1, 1, 2]


@pytest.mark.parametrize(
    "case",
    [Case("quantized_matmul", (3, -5)), Case("conv_2d_nhwc_hwcf_q", (3, -5), channels=16)],
    ids=str,
)
def test_every_level(case: Case) -> None:
    report = tcir.validate(case.text, "layers")
    assert report.verdict == "held", report
