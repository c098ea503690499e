"""Bugs in two-layer networks that have no worst-case bound: caught by errors against f64, or not.

A `Bug` is a variant of the module, such as a pass with that bug would leave it: `linalg` with the
same inputs. An `Edit` is a change of the compiled kernels.
`python -m torch_models.planted_networks`, in test/, prints the table of the results of 2026-11-30.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from functools import cache

import torch
from torch import nn
from torch.nn.functional import gelu, silu

import tcir
from tcir.program.source import load_module, mlir_context
from tcir.session.apart import compilers
from tcir.torch.calls import Call
from tcir.torch.exported import exported, torch_text, weights_of
from tcir.validation.report import Line
from tcir.validation.settings import Settings
from tcir.validation.validator import Validation, begin

ROWS, SIZE, HEADS, INNER, VOCABULARY, MASKED = 32, 64, 2, 128, 64, 5


@dataclass(frozen=True)
class Bug:
    """A bug, by its name in the modules; `after`: a pass that could leave it.

    why: the reason if it is not caught; "" if it is
    """

    network: str
    name: str
    after: str
    why: str = ""


@dataclass(frozen=True)
class Edit(Bug):
    """A bug in the state after a pass: the matches of `old` in its text become `new`.

    count: of the matches that are replaced; 0: all
    """

    old: str = ""
    new: str = ""
    count: int = 1


PTX = "llvm-to-ptx"
RELATIVE = "the results are equal, because rotations are relative"
VARIANCE = "it changes results by 1e-5 of their value, because variances are near 1"
GELU = "its error is smaller than that of a rounding to f16"
ROUNDINGS = "it is only one more rounding to f16"
DIRECTION = "the root mean square error is only 1.8 times that of the input program"
BUGS = (
    Bug("bert", "one more key is visible", "raise-attention"),
    Bug("bert", "no key is masked", "raise-attention"),
    Bug("bert", "a head is dropped", "raise-attention"),
    Bug("bert", "scale of the whole row, not of a head", "raise-attention"),
    Bug("bert", "softmax over queries", "raise-attention"),
    Bug("bert", "values of the other head", "fold-layouts"),
    Bug("bert", "the output's weight is transposed", "fold-layouts"),
    Bug("bert", "a bias is left out", "fuse-epilogue"),
    Bug("bert", "a residual is left out", "fuse-epilogue"),
    Bug("bert", "the residual of the layer before", "split-launches"),
    Bug("bert", "the variance counts one number less", "convert-to-simt"),
    Bug("bert", "the mean leaves out the last number", "convert-to-simt"),
    Bug("bert", "epsilon 1e-5, not 1e-12", "convert-to-simt", VARIANCE),
    Bug("bert", "the maximum is not subtracted", "convert-to-simt"),
    Bug("bert", "gelu by tanh", "convert-to-simt", GELU),
    Bug("bert", "the last 8 of K are left out", "tile-gemm"),
    Bug("bert", "the last of K is left out", "tile-gemm"),
    Bug("bert", "partial sums of 16 rounded to f16", "tile-gemm", ROUNDINGS),
    Bug("bert", "sums rounded to bf16", "tile-gemm"),
    Bug("bert", "the last row is the one before", "tile-gemm"),
    Bug("llama", "a row does not see itself", "raise-attention"),
    Bug("llama", "every row sees the next", "raise-attention"),
    Bug("llama", "keys of the other group", "raise-attention"),
    Bug("llama", "gate and up are swapped", "join-gates"),
    Bug("llama", "relu for silu", "fuse-epilogue"),
    Bug("llama", "the mean of squares counts one more", "convert-to-simt"),
    Bug("llama", "the norm's weight is left out", "convert-to-simt"),
    Bug("llama", "rotated the other way", "convert-to-simt"),
    Bug("llama", "only queries are rotated", "convert-to-simt"),
    Bug("llama", "positions begin with 1", "split-launches", RELATIVE),
    Bug("llama", "epsilon 1e-5, not 1e-6", "convert-to-simt", VARIANCE),
)
EDITS = (
    Edit("bert", "the last 16 of K are left out", "tile-gemm",
         old=r' *"tc\.mma".*a_slice = 3 .*\n'),
    Edit("bert", "scale of a head of 64 numbers, not of 32", "tile-gemm",
         old=r"dense<0\.1767\d*>", new="dense<1.250000e-01>"),
    Edit("bert", "the mask is inverted", "tile-gemm",
         old=r"(select %\w+), (%\w+), (%\w+)( : vector<\d+x\d+xi1>)", new=r"\1, \3, \2\4"),
    Edit("bert", "the residual twice, and no product", "tile-gemm",
         old=r"(addf )(%9), %12 ", new=r"\1\2, \2 "),
    Edit("bert", "the last 16 of K are left out", PTX,
         old=r"\ttcgen05\.mma.*\n(?=\tcvt\.u64\.u32)"),
    Edit("bert", "scale of a head of 64 numbers, not of 32", PTX,
         old="0f3E3504F3", new="0f3E000000"),
    Edit("bert", "the maximum is not subtracted", PTX,
         old=r"max\.f32 (\t%r\d+), %r\d+, %r\d+;(?=\n\tsetp)", new=r"mov.b32 \1, 0f00000000;"),
    Edit("bert", "two numbers are stored in each other's place", PTX,
         old=r"(st\.global\.b16 \t\S+ )(%rs\d+)(;\n\tst\.global\.b16 \t\S+ )(%rs\d+)",
         new=r"\1\4\3\2"),
    Edit("bert", "no key is masked", PTX,
         old=r"selp\.f32 (\t%r\d+), 0fCE6E6B28, (%r\d+), %p\d+;", new=r"mov.b32 \1, \2;", count=0),
    Edit("bert", "half of a row's numbers are not in its mean", PTX,
         old=r"(bfly\.b32 \t%r\d+, %r\d+, 4,.*\n\tadd\.rn\.f32 \t%r\d+, %r\d+, )%r\d+",
         new=r"\g<1>0f00000000"),
    Edit("bert", "all sums are rounded towards 0", PTX,
         old=r"cvt\.rn\.f16x2\.f32", new="cvt.rz.f16x2.f32", count=0,
         why=DIRECTION),
)  # fmt: skip


class Network(nn.Module):
    """A network of two layers; bug: the name of its bug."""

    def __init__(self, bug: str = "") -> None:
        super().__init__()
        self.bug = bug
        self.table = nn.Parameter(torch.zeros(VOCABULARY, SIZE))
        for layer in range(2):
            for name, shape in self.shapes().items():
                self.register_parameter(f"{name}{layer}", nn.Parameter(torch.zeros(shape)))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of a layer's weights by name."""
        raise NotImplementedError

    def of(self, name: str, layer: int) -> torch.Tensor:
        """A weight of a layer."""
        return getattr(self, f"{name}{layer}")  # torch.export puts tensors there

    def is_(self, bug: str) -> bool:
        """Whether the module has this bug; its name must be in `BUGS`."""
        assert any(each.name == bug for each in BUGS), bug
        return self.bug == bug


def heads(x: torch.Tensor, count: int = HEADS) -> torch.Tensor:
    return x.reshape(ROWS, count, SIZE // HEADS).transpose(0, 1)


class Bert(Network):
    """Layer norms after residuals, masked keys, gelu."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        square = dict.fromkeys(("q", "k", "v", "o"), (SIZE, SIZE))
        vectors = dict.fromkeys(("oh", "n", "nb", "m", "mb", "fb"), (SIZE,))
        return square | vectors | {"e": (INNER, SIZE), "eb": (INNER,), "f": (SIZE, INNER)}

    def norm(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        x = x.float()
        some = x[..., :-1] if self.is_("the mean leaves out the last number") else x
        x = x - some.mean(-1, keepdim=True)
        count = SIZE - 1 if self.is_("the variance counts one number less") else SIZE
        epsilon = 1e-5 if self.is_("epsilon 1e-5, not 1e-12") else 1e-12
        x = x * torch.rsqrt((x * x).sum(-1, keepdim=True) / count + epsilon)
        return (x * weight.float() + bias.float()).half()

    def attention(self, x: torch.Tensor, layer: int) -> torch.Tensor:
        q, k, v = (heads(x @ self.of(name, layer).T) for name in "qkv")
        size = SIZE if self.is_("scale of the whole row, not of a head") else SIZE // HEADS
        scores = (q @ k.transpose(1, 2)).float() / math.sqrt(size)
        visible = ROWS - MASKED + self.is_("one more key is visible")
        if not self.is_("no key is masked"):
            scores = scores.masked_fill(torch.arange(ROWS) >= visible, -1e9)
        if not self.is_("the maximum is not subtracted"):
            scores = scores - scores.amax(-1, keepdim=True)
        powers = torch.exp(scores)
        shares = powers / powers.sum(-2 if self.is_("softmax over queries") else -1, keepdim=True)
        v = v.flip(0) if self.is_("values of the other head") else v
        out = shares.half() @ v
        if self.is_("a head is dropped"):
            out = out * torch.tensor([1.0, 0.0], dtype=torch.float16)[:, None, None]
        out = out.transpose(0, 1).reshape(ROWS, SIZE)
        weight = self.of("o", layer)
        return out @ (weight if self.is_("the output's weight is transposed") else weight.T)

    def product(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        if self.is_("the last 8 of K are left out"):
            return x[:, :-8] @ weight.T[:-8]
        if self.is_("the last of K is left out"):
            return x[:, :-1] @ weight.T[:-1]
        if self.is_("partial sums of 16 rounded to f16"):
            parts = [x[:, at : at + 16] @ weight.T[at : at + 16] for at in range(0, INNER, 16)]
            return torch.stack(parts).sum(0)
        sums = x @ weight.T
        if self.is_("sums rounded to bf16"):
            return sums.bfloat16().half()
        if self.is_("the last row is the one before"):
            return torch.cat([sums[:-1], sums[-2:-1]])
        return sums

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = first = self.table[ids]
        for layer in range(2):
            out = self.attention(x, layer)
            bias = 0 if self.is_("a bias is left out") else self.of("oh", layer)
            before = first if self.is_("the residual of the layer before") else x
            before = before * 0 if self.is_("a residual is left out") else before
            x = self.norm(before + (out + bias), self.of("n", layer), self.of("nb", layer))
            inner = x @ self.of("e", layer).T + self.of("eb", layer)
            inner = gelu(inner, approximate="tanh" if self.is_("gelu by tanh") else "none")
            out = self.product(inner, self.of("f", layer)) + self.of("fb", layer)
            x = self.norm(x + out, self.of("m", layer), self.of("mb", layer))
        return x


class Llama(Network):
    """RMS norms before products, rotated causal attention of groups, gated silu."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        wide = {"q": (2 * SIZE, SIZE), "k": (SIZE, SIZE), "v": (SIZE, SIZE), "o": (SIZE, 2 * SIZE)}
        inner = {"g": (INNER, SIZE), "u": (INNER, SIZE), "d": (SIZE, INNER)}
        return wide | inner | {"n": (SIZE,), "m": (SIZE,)}

    def norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        x = x.float()
        count = SIZE + self.is_("the mean of squares counts one more")
        epsilon = 1e-5 if self.is_("epsilon 1e-5, not 1e-6") else 1e-6
        x = x * torch.rsqrt((x * x).sum(-1, keepdim=True) / count + epsilon)
        return x.half() if self.is_("the norm's weight is left out") else x.half() * weight

    def rotated(self, x: torch.Tensor) -> torch.Tensor:
        half = SIZE // HEADS // 2
        turns = 10000.0 ** (-torch.arange(half) / half)
        angles = (torch.arange(ROWS) + self.is_("positions begin with 1"))[:, None] * turns
        cos, sin = (torch.cat([f(angles)] * 2, -1).half() for f in (torch.cos, torch.sin))
        sin = -sin if self.is_("rotated the other way") else sin
        turned = torch.cat([-x[..., half:], x[..., :half]], -1)
        return x * cos + turned * sin

    def attention(self, x: torch.Tensor, layer: int) -> torch.Tensor:
        q = self.rotated(heads(x @ self.of("q", layer).T, 2 * HEADS))
        k, v = (heads(x @ self.of(name, layer).T) for name in "kv")
        k = k if self.is_("only queries are rotated") else self.rotated(k)
        if self.is_("rotated the other way"):  # of keys alone, or nothing would change
            k = k.flip(-1)
        k = k.flip(0) if self.is_("keys of the other group") else k
        k, v = k.repeat_interleave(2, 0), v.repeat_interleave(2, 0)
        scores = (q @ k.transpose(1, 2)).float() / math.sqrt(SIZE // HEADS)
        own = torch.arange(ROWS)
        last = own + self.is_("every row sees the next") - self.is_("a row does not see itself")
        last = torch.clamp(last, min=0)  # the first row sees a key
        scores = scores.masked_fill(own > last[:, None], -1e9)
        out = torch.softmax(scores, -1).half() @ v
        return out.transpose(0, 1).reshape(ROWS, 2 * SIZE) @ self.of("o", layer).T

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table[ids]
        for layer in range(2):
            x = x + self.attention(self.norm(x, self.of("n", layer)), layer)
            y = self.norm(x, self.of("m", layer))
            names = "ug" if self.is_("gate and up are swapped") else "gu"
            gate, up = (y @ self.of(name, layer).T for name in names)
            gate = torch.relu(gate) if self.is_("relu for silu") else silu(gate)
            x = x + (gate * up) @ self.of("d", layer).T
        return x


NETWORKS = {"bert": Bert, "llama": Llama}


@cache
def linalg(network: str, bug: str = "") -> str:
    """The program of a network."""
    module = NETWORKS[network](bug).half().eval()
    call = Call.of((torch.zeros(ROWS, dtype=torch.int64),), {})
    return compilers().linalg(torch_text(exported(module, call, weights_of(module))))


@cache
def started(network: str) -> Validation:
    """The validation of a network without a bug."""
    with mlir_context() as context:
        return begin(load_module(linalg(network), context), Settings())


@cache
def compiled(network: str) -> tcir.CompiledKernel:
    return tcir.compile(linalg(network), "layers", target="sm_100a")


def edited(bug: Edit) -> str:
    """The text of a state with a bug."""
    kernel = compiled(bug.network)
    text = kernel.ptx if bug.after == PTX else str(kernel.ir[bug.after])
    made, found = re.subn(bug.old, bug.new, text, count=bug.count)
    assert found, f"{bug.name}: {bug.old} is not in the state after {bug.after}"
    return made


def judged(bug: Bug) -> Line:
    """The line of the state with a bug."""
    validation, line = started(bug.network), Line(1, bug.after)
    with mlir_context() as context:
        if isinstance(bug, Edit) and bug.after == PTX:
            return validation.check_ptx(edited(bug), compiled(bug.network).launches, line)[0]
        text = edited(bug) if isinstance(bug, Edit) else linalg(bug.network, bug.name)
        return validation.check(load_module(text, context), line)


def row(bug: Bug) -> str:
    """A row of the table."""
    line = judged(bug)
    largest, mean = line.max_error_over_bound or 0, line.rms_error_over_bound or 0
    caught = "caught" if line.verdict == "different" else f"**not**: {bug.why}"
    return f"| {bug.network} | {bug.name} | {bug.after} | {largest:.2g} | {mean:.2g} | {caught} |"


if __name__ == "__main__":
    for each in (*BUGS, *EDITS):
        sys.stdout.write(row(each) + "\n")
        sys.stdout.flush()
