"""An MLP of PyTorch in NVFP4: its weights packed once, its inputs quantised by a launch.

    python examples/nvfp4_mlp_torch.py [TOKENS]

Compares the compiled module with eager PyTorch on the weights that the packed ones stand for, and
with the MLP before quantisation. Needs PyTorch: pip install 'tcir[torch]'.
"""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np
import torch
from torch import nn

import tcir.torch

WIDTH, HIDDEN = 256, 512


def main() -> None:
    """Packs, compiles, runs, compares."""
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    torch.manual_seed(0)
    up, down = nn.Linear(WIDTH, HIDDEN).half(), nn.Linear(HIDDEN, WIDTH).half()
    norm, x = nn.LayerNorm(WIDTH).half(), torch.randn(tokens, WIDTH).half()
    packed = nn.Sequential(
        norm,
        tcir.torch.QuantizedLinear.from_linear(up, "nvfp4", activation="gelu", input_amax=8.0),
        tcir.torch.QuantizedLinear.from_linear(down, "nvfp4", input_amax=8.0),
    ).eval()
    compiled = tcir.torch.compile(packed, (x,))
    print(compiled.table)
    print(compiled.kernels[-1].launch_table)
    y = compiled(x).double()

    with torch.no_grad():
        plain = nn.Sequential(norm, up, nn.GELU(), down).double().eval()(x.double())
        for linear, layer in ((up, packed[1]), (down, packed[2])):
            linear.weight.copy_(torch.from_numpy(dequantised(layer)))
        weights_only = nn.Sequential(norm, up, nn.GELU(), down).double().eval()(x.double())
    print(f"apart from eager PyTorch on the dequantised weights: {apart(y, weights_only):.3f}")
    print(f"apart from eager PyTorch before quantisation:        {apart(y, plain):.3f}")


def dequantised(layer: tcir.torch.QuantizedLinear) -> np.ndarray:
    """The weights, from the bytes of the layer, by ml_dtypes and numpy."""
    packed = layer.weight.numpy()
    codes = np.stack([packed & 15, packed >> 4], -1).reshape(len(packed), -1)
    blocks = layer.weight_scale.view(torch.uint8).numpy()  # [N/128, K/64, 32 * 4 * 4]
    down, across, _ = blocks.shape
    rows = blocks.reshape(down, across, 32, 4, 4).transpose(0, 3, 2, 1, 4)
    scales = rows.reshape(down * 128, across * 4)[: len(packed)].view(ml_dtypes.float8_e4m3fn)
    g = float(layer.alpha * layer.norm)
    values = codes.view(ml_dtypes.float4_e2m1fn).astype("f8")
    return values * np.repeat(scales.astype("f8"), 16, axis=1) * g


def apart(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Norm of the difference over the norm of what was expected."""
    return float((got - expected).norm() / expected.norm())


if __name__ == "__main__":
    main()
