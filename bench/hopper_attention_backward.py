"""Gradients of attention beside PyTorch's SDPA on a Hopper GPU, in one run.

    python bench/hopper_attention_backward.py [--element=bf16] [--page=FILE]

Rows are timed as in ``bench/hopper_attention.py``: CUDA graphs of 20 calls, kernels in turn. A call
computes dq, dk and dv from q, k, v, the result, its gradient and the logarithms. FLOP are those of
five products, a causal mask's half; ours multiplies seven times, the scores and their gradients
twice. SDPA's times are those of both passes less those of the forward pass. Errors are those of the
three gradients relative to float64, and of SDPA's.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import torch
from hopper_attention import TYPES, Run, microseconds, named, operands_of, sdpa
from torch.nn.attention import SDPBackend

import tcir

SHAPES = [
    # b, h, g, m, n, d, causal
    (16, 16, 16, 1024, 1024, 64, False),
    (16, 16, 16, 1024, 1024, 64, True),
    (8, 16, 16, 2048, 2048, 64, True),
    (4, 16, 16, 4096, 4096, 64, False),
    (4, 16, 16, 4096, 4096, 64, True),
    (16, 16, 16, 1024, 1024, 128, False),
    (16, 16, 16, 1024, 1024, 128, True),
    (8, 16, 16, 2048, 2048, 128, True),
    (4, 16, 16, 4096, 4096, 128, False),
    (4, 16, 16, 4096, 4096, 128, True),
]
NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
BACKENDS = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


def heads_of(shape: tuple[Any, ...], element: str) -> list[np.ndarray[Any, Any]]:
    """Queries, and keys, of zeros."""
    b, h, g, m, n, d, _ = shape
    return [np.zeros(size, NUMPY[element]) for size in ((b, h, m, d), (b, g, n, d))]


def kernel_of(shape: tuple[Any, ...], element: str) -> tcir.ArrayKernel:
    b, h, _, m, *_, causal = shape
    q, k = heads_of(shape, element)
    lse = np.zeros((b, h, m), np.float32)
    return tcir.compile_attention_backward(q, k, k, q, q, lse, causal=causal, target="sm_90a")


def forward(
    shape: tuple[Any, ...], element: str, operands: list[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The result and the logarithms."""
    b, h, _, m, *_, causal = shape
    q, k = heads_of(shape, element)
    kernel = tcir.compile_attention(q, k, k, causal=causal, lse=True, target="sm_90a")
    out, lse = torch.empty_like(operands[0]), torch.empty(b, h, m, device="cuda")
    kernel.launch(*operands, out, lse)
    torch.cuda.synchronize()
    return out, lse


def theirs(
    shape: tuple[Any, ...], operands: list[torch.Tensor], dout: torch.Tensor
) -> dict[str, Run]:
    """SDPA's forward pass, and both passes, by two backends: graphs of the backward pass alone
    would need a forward pass on their stream."""
    leaves = [each.detach().requires_grad_() for each in operands]
    runs: dict[str, Run] = {}
    for name, backend in BACKENDS.items():
        run = sdpa(backend, leaves, shape[-1], shape[1] != shape[2])

        def both(run: Run = run) -> Any:
            return torch.autograd.grad(run(), leaves, dout)

        runs |= {f"{name} forward": run, f"{name} both": both}
    return runs


def exact(operands: list[torch.Tensor], dout: torch.Tensor, causal: bool) -> list[torch.Tensor]:
    """The gradients in float64, a head at a time."""
    found = [torch.zeros_like(each, dtype=torch.float64) for each in operands]
    batch, heads, rows, depth = operands[0].shape
    keys = operands[1].shape[2]
    group = heads // operands[1].shape[1]
    kept = torch.ones(rows, keys, dtype=torch.bool, device="cuda").tril() if causal else None
    for at in range(min(batch * heads, 4)):
        b, h = divmod(at, heads)
        places = (b, h), (b, h // group), (b, h // group)
        q, k, v = (x[p].double() for x, p in zip(operands, places, strict=True))
        do, scale = dout[b, h].double(), 1 / math.sqrt(depth)
        scores = q @ k.T * scale
        if kept is not None:
            scores = scores.masked_fill(~kept, -math.inf)
        p = scores.softmax(-1)
        ds = p * (do @ v.T - (do * (p @ v)).sum(-1, keepdim=True)) * scale
        for whole, place, part in zip(found, places, (ds @ k, ds.T @ q, p.T @ do), strict=True):
            whole[place] += part
    return found


def errors(got: Any, want: list[torch.Tensor]) -> str:
    """Relative errors of dq, dk and dv, of the first heads."""
    found = []
    for mine, whole in zip(got, want, strict=False):
        first = whole.flatten(0, 1).abs().amax(dim=(1, 2)) > 0
        mine, whole = (each.double().flatten(0, 1)[first] for each in (mine, whole))
        found.append(float((mine - whole).norm() / whole.norm()))
    return " ".join(f"{each:.1e}" for each in found)


def row(shape: tuple[Any, ...], element: str) -> list[str]:
    b, h, _, m, n, d, causal = shape
    operands = operands_of(shape, element)
    dout = torch.randn_like(operands[0])
    (out, lse), runs = forward(shape, element, operands), theirs(shape, operands, dout)
    kernel, found = kernel_of(shape, element), [torch.empty_like(each) for each in operands]

    def ours() -> None:
        stream = torch.cuda.current_stream().cuda_stream
        kernel.launch(*operands, out, dout, lse, *found, stream=stream)

    times = microseconds({"tcir": ours, **runs})
    own, flop = times["tcir"], 10 * b * h * m * n * d * (0.5 if causal else 1)
    alone = [times[f"{name} both"] - times[f"{name} forward"] for name in BACKENDS]
    others = [f"{each:.1f} ({each / own:.2f})" for each in alone]
    want = exact(operands, dout, causal)
    error = [errors(each, want) for each in (found, runs["cuDNN both"]())]
    return [named(shape), f"{own:.1f}", f"{flop / own / 1e6:.0f} TFLOP/s", *others, *error]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--element", choices=TYPES, default="bf16")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    header = f"| {options.element}: batch, heads, of keys, rows x keys, elements | tcir, us | | "
    header += "cuDNN, us (of tcir) | flash, us | errors of dq, dk, dv | cuDNN's |"
    lines = [header, "|---" * (header.count("|") - 1) + "|"]
    print("\n".join(lines), flush=True)
    for shape in SHAPES:
        lines.append("| " + " | ".join(row(shape, options.element)) + " |")
        print(lines[-1], flush=True)
    if options.page:
        options.page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
