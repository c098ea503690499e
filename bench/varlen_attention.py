"""Attention of packed sequences on a Hopper GPU beside PyTorch's ``varlen_attn``, its flash kernel
and a padded batch by SDPA, in one run.

    python bench/varlen_attention.py [--element=bf16] [--bits] [--page=FILE]

16 sequences of 128 to 2048 tokens, the same for all rows of the table. Times as in
`bench/hopper_attention.py`; FLOP are those of the sequences, without padding. Results are compared
with SDPA's of each sequence in float64. With ``--bits`` results of small launches are compared bit
for bit with the simulated machine's.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hopper_attention import TYPES, Run, microseconds, ours
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import tcir
from tcir.interp.types import DTYPES

SHAPES = [(16, 16, 64), (16, 16, 128), (32, 8, 128)]
"""Heads, heads of keys, elements of a head."""
SEQUENCES, SHORTEST, LONGEST = 16, 128, 2048
SMALL = [
    # lengths, heads, heads of keys, elements, type, causal, window
    ([100, 0, 1, 200, 70], 4, 2, 64, "f16", True, None),
    ([128, 64, 192, 33], 2, 2, 128, "bf16", False, None),
    ([300, 20, 130], 2, 1, 64, "bf16", True, (100, 0)),
    ([65, 500, 1], 2, 2, 64, "f16", False, None),
]
"""Launches that the machine executes in seconds."""


def lengths() -> list[int]:
    return np.random.default_rng(0).integers(SHORTEST, LONGEST, SEQUENCES, endpoint=True).tolist()


def compiled(
    sizes: list[int], shape: tuple[int, int, int], element: str, **options: Any
) -> tuple[Any, np.ndarray[Any, Any]]:
    """A kernel for tokens of sequences that attend to themselves, and the cumulative lengths."""
    heads, groups, depth = shape
    q, k = (np.zeros((sum(sizes), n, depth), DTYPES[element]) for n in (heads, groups))
    ends = np.array([0, *np.cumsum(sizes)], np.int32)
    made = tcir.compile_varlen_attention(q, k, k, ends, target="sm_90a", **options)
    return made, ends


def operands_of(tokens: int, shape: tuple[int, int, int], element: str) -> list[torch.Tensor]:
    heads, groups, depth = shape
    return [
        torch.randn((tokens, n, depth), device="cuda", dtype=TYPES[element])
        for n in (heads, groups, groups)
    ]


def bits() -> None:
    for sizes, heads, groups, depth, element, causal, window in SMALL:
        shape = heads, groups, depth
        kernel, ends = compiled(sizes, shape, element, causal=causal, window=window)
        operands = operands_of(sum(sizes), shape, element)
        out = torch.empty_like(operands[0])
        ours(kernel, [*operands, torch.tensor(ends, device="cuda")], out)()
        torch.cuda.synchronize()
        arrays = [x.cpu().view(torch.int16).numpy().view(DTYPES[element]) for x in operands]
        want = kernel.run(*arrays, ends).view(np.int16)
        different = int((out.cpu().view(torch.int16).numpy() != want).sum())
        print(f"bits {sizes} {shape} {element} causal={causal} window={window}: "
              f"{different} of {want.size} elements differ", flush=True)  # fmt: skip


def by_sequence(operands: list[torch.Tensor], sizes: list[int], causal: bool) -> torch.Tensor:
    """The result in float64."""
    parts = zip(*(each.split(sizes) for each in operands), strict=True)
    heads = operands[0].shape[1]

    def attended(own: tuple[torch.Tensor, ...]) -> torch.Tensor:
        q, k, v = (
            x.double().repeat_interleave(heads // x.shape[1], 1).transpose(0, 1) for x in own
        )
        return scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(0, 1)

    return torch.cat([attended(own) for own in parts])


def theirs(
    operands: list[torch.Tensor], ends: torch.Tensor, sizes: list[int], causal: bool
) -> dict[str, Run]:
    """PyTorch's kernels for packed sequences, and for a batch that is padded."""
    heads, groups = (x.shape[1] for x in operands[:2])
    most = max(sizes)
    window = (-1, 0) if causal else (-1, -1)

    def packed() -> Any:
        from torch.nn.attention.varlen import varlen_attn  # with window_size since PyTorch 2.11

        grouped = {"enable_gqa": True} if heads != groups else {}  # since PyTorch 2.12
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION), torch.no_grad():
            return varlen_attn(*operands, ends, ends, most, most, window_size=window, **grouped)

    def flash() -> Any:
        return torch.ops.aten._flash_attention_forward(
            *operands, ends, ends, most, most, 0.0, causal, False
        )

    padded = [
        torch.nn.utils.rnn.pad_sequence(list(x.split(sizes)), batch_first=True)
        .transpose(1, 2)
        .contiguous()
        for x in operands
    ]

    def batch() -> torch.Tensor:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return scaled_dot_product_attention(
                *padded, is_causal=causal, enable_gqa=heads != groups
            )

    return {
        "varlen_attn, cuDNN": packed,
        "varlen, flash": flash,
        "padded, cuDNN": batch,
    }


def works(name: str, run: Run) -> bool:
    try:
        run()
        torch.cuda.synchronize()
    except (ImportError, RuntimeError, TypeError, ValueError) as error:
        print(f"{name}: {str(error).splitlines()[0]}", flush=True)
        return False
    return True


def row(shape: tuple[int, int, int], causal: bool, element: str) -> str:
    sizes = lengths()
    kernel, numbers = compiled(sizes, shape, element, causal=causal)
    operands, ends = operands_of(sum(sizes), shape, element), torch.tensor(numbers, device="cuda")
    out = torch.empty_like(operands[0])
    run = ours(kernel, [*operands, ends], out)
    run()
    error = float((out.double() - by_sequence(operands, sizes, causal)).abs().max())
    others = {n: r for n, r in theirs(operands, ends, sizes, causal).items() if works(n, r)}
    found = microseconds({"tcir": run, **others})
    flop = sum(4 * shape[0] * shape[2] * n * n / (2 if causal else 1) for n in sizes)
    best = min((us for n, us in found.items() if n.startswith("varlen")), default=math.nan)
    cells = [f"{found.get(n, math.nan):.1f}" for n in
             ("tcir", "varlen_attn, cuDNN", "varlen, flash", "padded, cuDNN")]  # fmt: skip
    mask = "causal" if causal else "none"
    rate = flop / found["tcir"] / 1e6
    return (f"| {shape[0]}/{shape[1]} x {shape[2]}, {mask} | {' | '.join(cells)} | {rate:.0f} | "
            f"{best / found['tcir']:.2f} | {error:.1e} |")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--element", default="bf16", choices=sorted(TYPES))
    parser.add_argument("--bits", action="store_true")
    parser.add_argument("--page", type=Path)
    chosen = parser.parse_args()
    if chosen.bits:
        bits()
    lines = [
        "| heads, mask | tcir, us | varlen_attn, cuDNN | flash, packed | padded, cuDNN | "
        "tcir, TFLOP/s | times as fast as the better packed one | largest error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print(f"{sum(lengths())} tokens: {lengths()}\n" + "\n".join(lines), flush=True)
    for shape in SHAPES:
        for causal in (False, True):
            lines.append(row(shape, causal, chosen.element))
            print(lines[-1], flush=True)
    if chosen.page:
        chosen.page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
