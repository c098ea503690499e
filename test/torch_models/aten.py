"""ATen ops, one by one: the program that the PyTorch door imports, against f64.

`python -m aten [--write docs/pytorch-ops.md] [NAME …]` in this folder prints the table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import tcir
from tcir.session.apart import Compilers
from tcir.torch.calls import Call
from tcir.torch.exported import exported, torch_text
from tcir.torch.imports import checked

TYPES = (torch.float16, torch.bfloat16, torch.float32)
Function = Callable[..., object]


@dataclass(frozen=True)
class Case:
    """An op on tensors of these shapes; index: sizes below which int64 arguments are drawn."""

    name: str
    function: Function
    shapes: tuple[tuple[int, ...], ...]


class Module(nn.Module):
    """A function as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> object:
        return self.function(*args)


def _cases() -> Iterator[Case]:
    row, rows, image = (3, 300), ((3, 40), (3, 40)), (2, 8, 12, 12)
    unary = (
        "abs neg exp exp2 log log1p log2 log10 sqrt rsqrt reciprocal sin cos tan tanh sigmoid erf "
        "floor ceil trunc round frac sign square relu expm1 sinh cosh asin acos atan isnan isinf "
        "isfinite logical_not"
    ).split()
    for name in unary:
        yield Case(name, getattr(torch, name), (row,))
    for name in ("gelu silu softplus hardswish hardsigmoid elu selu celu leaky_relu relu6 mish "
                 "logsigmoid softsign hardtanh tanhshrink softshrink hardshrink").split():  # fmt: skip
        yield Case(name, getattr(F, name), (row,))
    yield Case("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), (row,))
    yield Case("prelu", lambda x, w: F.prelu(x, w), ((3, 8, 5), (8,)))
    yield Case("glu", lambda x: F.glu(x), (row,))
    binary = ("add sub mul div maximum minimum pow fmod remainder atan2 eq ne lt le gt ge fmax fmin "
              "logaddexp hypot floor_divide").split()  # fmt: skip
    for name in binary:
        yield Case(name, getattr(torch, name), rows)
        yield Case(f"{name} broadcast", getattr(torch, name), ((3, 40), (40,)))
    yield Case("div trunc", lambda x, y: torch.div(x, y, rounding_mode="trunc"), rows)
    yield Case("add alpha", lambda x, y: torch.add(x, y, alpha=0.5), rows)
    yield Case("addcmul", lambda x, y, z: torch.addcmul(x, y, z, value=0.5), rows + rows[:1])
    yield Case("addcdiv", lambda x, y, z: torch.addcdiv(x, y, z + 2, value=0.5), rows + rows[:1])
    yield Case("lerp", lambda x, y: torch.lerp(x, y, 0.25), rows)
    yield Case("where", lambda x, y: torch.where(x > 0, x, y), rows)
    yield Case("masked_fill", lambda x, y: x.masked_fill(y > 0, -1.0), rows)
    yield Case("clamp", lambda x: x.clamp(-0.5, 0.5), (row,))
    yield Case("clamp_min", lambda x: x.clamp(min=0.25), (row,))
    yield Case("nan_to_num", lambda x: torch.nan_to_num(x / 0), (row,))
    for name in "sum mean prod amax amin var std logsumexp any all argmax argmin".split():
        yield Case(f"{name} dim", lambda x, f=getattr(torch, name): f(x, -1), (row,))
        yield Case(f"{name} keepdim", lambda x, f=getattr(torch, name): f(x, 0, keepdim=True), (row,))
    for name in "sum mean amax var std max min".split():
        yield Case(f"{name} all", getattr(torch, name), (row,))
    yield Case("sum long", lambda x: x.abs().sum(-1), ((2, 4096),))
    yield Case("mean of an image", lambda x: x.mean((2, 3)), ((1, 2, 64, 64),))
    yield Case("sum f32 of narrow", lambda x: x.sum(-1, dtype=torch.float32), (row,))
    yield Case("var_mean", lambda x: torch.var_mean(x, -1), (row,))
    yield Case("var far from 0", lambda x: (x + 30).var(-1), (row,))
    yield Case("max dim", lambda x: torch.max(x, -1), (row,))
    yield Case("norm", lambda x: x.norm(dim=-1), ((2, 4096),))
    yield Case("norm 1", lambda x: x.norm(p=1, dim=-1), (row,))
    yield Case("norm inf", lambda x: torch.linalg.vector_norm(x, float("inf"), dim=-1), (row,))
    yield Case("normalize", lambda x: F.normalize(x, dim=-1), ((2, 4096),))
    yield Case("cumsum", lambda x: x.cumsum(-1), (row,))
    yield Case("softmax", lambda x: x.softmax(-1), (row,))
    yield Case("log_softmax", lambda x: x.log_softmax(-1), (row,))
    yield Case("softmin", lambda x: F.softmin(x, -1), (row,))
    yield Case("cosine_similarity", lambda x, y: F.cosine_similarity(x, y, -1), ((2, 900), (2, 900)))
    yield Case("pairwise_distance", F.pairwise_distance, rows)
    for name in ("mse_loss l1_loss smooth_l1_loss huber_loss").split():
        yield Case(name, getattr(F, name), rows)
    yield Case("kl_div", lambda x, y: F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"), rows)
    yield Case("bce logits", lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()), rows)
    yield Case("cross_entropy soft", lambda x, y: F.cross_entropy(x, y.softmax(-1)), rows)
    yield Case("layer_norm", lambda x, w, b: F.layer_norm(x, (300,), w, b), (row, (300,), (300,)))
    yield Case("layer_norm long", lambda x: F.layer_norm(x + 3, (4096,)), ((2, 4096),))
    yield Case("rms_norm", lambda x, w: F.rms_norm(x, (4096,), w), ((2, 4096), (4096,)))
    yield Case("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), (image, (8,), (8,)))
    yield Case("instance_norm", F.instance_norm, (image,))
    yield Case("batch_norm", lambda x, m, v: F.batch_norm(x, m, v.abs() + 0.5), (image, (8,), (8,)))
    yield Case("local_response_norm", lambda x: F.local_response_norm(x, 3), (image,))
    for n in (1, 3, 5):
        yield Case(f"adaptive_avg_pool2d {n}", lambda x, n=n: F.adaptive_avg_pool2d(x, n), (image,))
    yield Case("adaptive_avg_pool2d 1 of 64", lambda x: F.adaptive_avg_pool2d(x, 1), ((1, 2, 64, 64),))
    yield Case("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, 3), (image,))
    yield Case("avg_pool1d", lambda x: F.avg_pool1d(x, 3), ((2, 4, 30),))
    yield Case("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1), (image,))
    yield Case("avg_pool2d padding not counted",
               lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (image,))  # fmt: skip
    yield Case("avg_pool2d ceil", lambda x: F.avg_pool2d(x, 5, 3, ceil_mode=True), (image,))
    yield Case("max_pool2d", lambda x: F.max_pool2d(x, 3, 2, 1), (image,))
    yield Case("max_pool2d dilation", lambda x: F.max_pool2d(x, 3, 1, 0, 2), (image,))
    yield Case("max_pool1d", lambda x: F.max_pool1d(x, 3), ((2, 4, 30),))
    yield Case("upsample nearest", lambda x: F.interpolate(x, scale_factor=2), (image,))
    yield Case("upsample bilinear",
               lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (image,))  # fmt: skip
    yield Case("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), (image,))
    yield Case("pad", lambda x: F.pad(x, (1, 2, 3, 0), value=0.5), (image,))
    yield Case("pad reflect", lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"), (image,))
    yield Case("pad replicate", lambda x: F.pad(x, (1, 2, 2, 1), mode="replicate"), (image,))
    yield Case("cat", lambda x, y: torch.cat([x, y], 1), rows)
    yield Case("stack", lambda x, y: torch.stack([x, y], 1), rows)
    yield Case("chunk", lambda x: [part * 2 for part in x.chunk(2, -1)], (row,))
    yield Case("roll", lambda x: torch.roll(x, 3, -1), (row,))
    yield Case("flip", lambda x: x.flip(-1), (row,))
    yield Case("slice of 2", lambda x: x[:, 1::2] + 1, (row,))
    yield Case("repeat", lambda x: x.repeat(2, 3), (row,))
    yield Case("repeat_interleave", lambda x: x.repeat_interleave(2, 0), (row,))
    yield Case("tril", torch.tril, ((30, 40),))
    yield Case("triu", lambda x: torch.triu(x, 2), ((30, 40),))
    yield Case("transpose", lambda x: x.transpose(0, 1) + 1, (row,))
    yield Case("index constant", lambda x: x[:, [0, 2, 5]], (row,))
    yield Case("linear", F.linear, ((5, 70), (30, 70), (30,)))
    yield Case("matmul", torch.matmul, ((4, 5, 70), (4, 70, 30)))
    yield Case("einsum", lambda x, y: torch.einsum("bij,bkj->bik", x, y), ((4, 5, 70), (4, 30, 70)))
    yield Case("products summed", lambda x, y: (x * y).sum(-1), ((2, 900), (2, 900)))
    yield Case("outer", torch.outer, ((30,), (40,)))
    yield Case("bilinear", F.bilinear, ((5, 7), (5, 9), (3, 7, 9)))
    yield Case("conv1d", lambda x, w: F.conv1d(x, w, padding=1), ((2, 8, 20), (8, 8, 3)))
    yield Case("conv2d", lambda x, w, b: F.conv2d(x, w, b, padding=1), (image, (16, 8, 3, 3), (16,)))
    yield Case("conv2d patches", lambda x, w: F.conv2d(x, w, stride=12), (image, (16, 8, 12, 12)))
    yield Case("conv2d depthwise", lambda x, w: F.conv2d(x, w, groups=8), (image, (8, 1, 3, 3)))
    yield Case("conv2d dilated", lambda x, w: F.conv2d(x, w, dilation=2), (image, (16, 8, 3, 3)))
    yield Case("conv_transpose2d",
               lambda x, w: F.conv_transpose2d(x, w, stride=2), (image, (8, 4, 2, 2)))  # fmt: skip
    heads = ((1, 2, 24, 16),) * 3
    yield Case("attention", F.scaled_dot_product_attention, heads)
    yield Case("attention causal",
               lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), heads)  # fmt: skip
    yield Case("attention bias",
               lambda q, k, v, b: F.scaled_dot_product_attention(q, k, v, b), (*heads, (24, 24)))  # fmt: skip


CASES = {case.name: case for case in _cases()}


def _tensor(shape: tuple[int, ...], dtype: torch.dtype, strided: bool) -> torch.Tensor:
    made = torch.zeros(shape[::-1] if strided else shape, dtype=dtype)
    return made.permute(*reversed(range(made.ndim))) if strided else made


def result(
    compilers: Compilers, case: Case, dtype: torch.dtype, strided: bool = False
) -> tuple[str, float]:
    """The verdict of an op (`checked`), and its error over that allowed; why not, else."""
    given = tuple(_tensor(shape, dtype, strided) for shape in case.shapes)
    try:
        graph = exported(Module(case.function).eval(), Call.of(given, {}), {})
        line = checked(graph, compilers.linalg(torch_text(graph)))
    except tcir.Error as error:
        return f"not imported: {str(error).splitlines()[0]}", 0.0
    if line.verdict == "within bound":
        return line.verdict, line.max_error_over_bound or 0.0
    return f"{line.verdict}: {line.compared} {'; '.join(line.incomplete)}", 0.0


def main() -> int:
    """Prints the table, or writes it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    lines, red = [], 0
    with Compilers() as compilers:
        for name in options.names:
            cells = []
            for dtype in TYPES:
                for strided in (False, True):
                    verdict, ratio = result(compilers, CASES[name], dtype, strided)
                    red += verdict.startswith("different")
                    cells.append(f"{ratio:.2f}" if verdict == "within bound" else verdict)
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    if options.write:
        head = ("| op | f16 | strided | bf16 | strided | f32 | strided |\n"
                "|---|---|---|---|---|---|---|\n")  # fmt: skip
        options.write.write_text(head + "\n".join(lines) + "\n")
    return int(red > 0)


if __name__ == "__main__":
    sys.exit(main())
