"""What takes cuBLAS's place, against numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from .command import needs_triton

pytestmark = needs_triton
M, N, K = 256, 128, 192


def cublas() -> object:
    import torch

    from tcir.doors.launches import Launches
    from tcir.triton.cublas import CublasLt

    return CublasLt(Launches(), torch.empty(32))


def placed(scales: np.ndarray) -> np.ndarray:
    """Codes [rows, columns] in the places that cuBLAS's documentation gives them."""
    rows, columns = scales.shape
    out = np.zeros(rows * columns, np.uint8)
    for r in range(rows):
        for c in range(columns):
            block = r // 128 * (columns // 4) + c // 4
            out[512 * block + r % 32 * 16 + r % 128 // 32 * 4 + c % 4] = scales[r, c]
    return out


def test_without_scales() -> None:
    import torch

    generator = np.random.default_rng(0)
    a, b = (generator.integers(1, 9, (rows, K)).astype(np.float16) for rows in (M, N))
    out = torch.empty((M, N), dtype=torch.float16)
    cublas().matmul(torch.tensor(a), torch.tensor(b), out)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(out.numpy(), (a.astype(np.float64) @ b.T).astype(np.float16))


def drawn(form: str) -> tuple[list[object], np.ndarray]:
    """A, B and their scales in torch; what numpy makes of them."""
    import torch

    generator = np.random.default_rng(1)
    block = 32 if form == "mxfp8" else 16
    k = 256
    operands, wide = [], []
    for rows in (M, N):
        if form == "mxfp8":
            values = generator.integers(1, 9, (rows, k)).astype(ml_dtypes.float8_e4m3fn)
            codes = values.view(np.uint8)
            scale = generator.integers(125, 130, (rows, k // block)).astype(np.uint8)
            factors = np.exp2(scale.astype(np.float64) - 127)
            given = torch.tensor(codes).view(torch.float8_e4m3fn)
            scales = torch.tensor(placed(scale)).view(torch.float8_e8m0fnu)
        else:
            nibbles = generator.integers(1, 16, (rows, k)).astype(np.uint8)
            values = nibbles.view(ml_dtypes.float4_e2m1fn)
            given = torch.tensor(nibbles[:, ::2] | nibbles[:, 1::2] << 4)
            factors = generator.integers(1, 5, (rows, k // block)).astype(ml_dtypes.float8_e4m3fn)
            scales = torch.tensor(placed(factors.view(np.uint8))).view(torch.float8_e4m3fn)
        operands.append((given, scales))
        wide.append(values.astype(np.float64) * np.repeat(factors.astype(np.float64), block, 1))
    (a, a_scale), (b, b_scale) = operands
    return [a, b, a_scale, b_scale], (wide[0] @ wide[1].T).astype(np.float32)


@pytest.mark.parametrize("form", ["mxfp8", "nvfp4"])
def test_with_scales(form: str) -> None:
    import torch

    (a, b, a_scale, b_scale), expected = drawn(form)
    out = torch.empty((M, N))
    call = getattr(cublas(), f"block_scaled_matmul_{form}")
    call(a, b, out, a_scale, b_scale)
    np.testing.assert_array_equal(out.numpy(), expected)


@pytest.mark.parametrize("form", ["mxfp8", "nvfp4"])
def test_scaled_mm_of_torch(form: str) -> None:
    """Which torch has for scales of rows on the CPU, for those of blocks on GPUs only."""
    import torch

    from tcir.doors.launches import Launches
    from tcir.doors.torch_cuda import cuda_on_the_cpu

    (a, b, *scales), expected = drawn(form)
    if form == "nvfp4":
        a, b = (each.view(torch.float4_e2m1fn_x2) for each in (a, b))
    with cuda_on_the_cpu(Launches(), lambda _: None):
        out = torch._scaled_mm(a, b.t(), *scales, out_dtype=torch.float32)
        rows = torch.ones(16, 32).to(torch.float8_e4m3fn)
        one = torch.tensor(2.0)
        ones = torch._scaled_mm(rows, rows.t(), scale_a=one, scale_b=one, out_dtype=torch.float32)
    np.testing.assert_array_equal(out.numpy(), expected)
    np.testing.assert_array_equal(ones.numpy(), np.full((16, 16), 128, np.float32))
