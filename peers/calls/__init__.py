"""Calls of libraries through the doors: `python -m peers.calls SOURCE OUT`.

A call runs functions of a library as its users do, on the simulated device, and returns what they
computed beside what PyTorch or numpy computes in double precision. Each module here is one library;
it is imported inside the door, in a Python that has the library.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TypeAlias

import torch

F16, BF16, F32, F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
Pair: TypeAlias = "tuple[object, object] | tuple[object, object, float]"
"""What a library computed, what is expected, and how many times the usual tolerance is allowed."""
Compute: TypeAlias = "Callable[[], Sequence[Pair]]"

WITHOUT_INITIALISER = {
    "flash_attn_2": ("flash_attn", "flash_attn_2_cuda"),
    "mamba": ("mamba_ssm",),
    "flashinfer": ("flashinfer",),
    "vllm": ("vllm",),
    "sglang": ("sglang",),
}
"""Packages whose initialisers import what their Triton kernels do without, such as extensions that
need not be built, and those extensions, by source."""
CALLS: dict[str, Compute] = {}
"""Calls of the library whose module was imported, by name."""


def without_initialiser(package: str, *extensions: str) -> None:
    """Makes the modules of a package importable without its initialiser; `extensions` become empty
    modules. ModuleNotFoundError without the package."""
    found = importlib.util.find_spec(package)
    if found is None:
        raise ModuleNotFoundError(f"no module {package}")
    made = ModuleType(package)
    made.__path__, made.__spec__ = list(found.submodule_search_locations or ()), found
    sys.modules[package] = made
    sys.modules.update({name: ModuleType(name) for name in extensions})


def call(compute: Compute) -> Compute:
    """Registers a call under the function's name."""
    return named(compute.__name__, compute)


def named(name: str, compute: Compute) -> Compute:
    """Registers a call. ValueError for a second one of the same name."""
    if name in CALLS:
        raise ValueError(f"{name}: expected one call of that name, got two")
    CALLS[name] = compute
    return compute


def some(*shape: int, dtype: torch.dtype = F32) -> torch.Tensor:
    """Normally distributed elements."""
    return torch.randn(*shape).to(dtype)


def small(*shape: int, dtype: torch.dtype = F32) -> torch.Tensor:
    """Integers from -2 to 2: sums of their products are exact in any order."""
    return torch.randint(-2, 3, shape).to(dtype)


def double(value: object) -> object:
    """A tensor of floats in double precision; containers element by element; others as they are."""
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value.clone()
    if isinstance(value, tuple | list):
        return type(value)(map(double, value))
    return value


def copied(value: object) -> object:
    """Copies of tensors, also in containers; others as they are."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, tuple | list):
        return type(value)(map(copied, value))
    return value


def as_torch(
    name: str,
    ours: Callable[..., object],
    theirs: Callable[..., object],
    arguments: Callable[[], Sequence[object]],
    slack: float = 1,
    **named_arguments: object,
) -> None:
    """Registers a call of a library's function that has the arguments and results of one of
    PyTorch's (`theirs`, which computes in double precision)."""

    def compute() -> list[Pair]:
        given = arguments()
        want = theirs(*map(double, given), **named_arguments)
        got = ours(*map(copied, given), **named_arguments)
        if isinstance(got, torch.Tensor):
            return [(got, want, slack)]
        return [(g, w, slack) for g, w in zip(got, want, strict=True)]

    named(name, compute)


def gradients(
    function: Callable[..., torch.Tensor], *given: torch.Tensor
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """A function's result, and the gradients of its floating operands; the cotangent depends on the
    shape of the result alone."""
    leaves = [
        x.detach().clone().requires_grad_() if x.is_floating_point() else x.clone() for x in given
    ]
    out = function(*leaves)
    steps = torch.arange(out.numel(), dtype=F64).reshape(out.shape)
    out.backward(torch.cos(steps).to(out.dtype))
    return out.detach(), [x.grad for x in leaves if x.is_floating_point() and x.grad is not None]


def both_ways(
    name: str,
    ours: Callable[..., torch.Tensor],
    theirs: Callable[..., torch.Tensor],
    arguments: Callable[[], Sequence[torch.Tensor]],
    slack: float = 1,
) -> None:
    """Registers a call of a differentiable function: its result and the gradients of all its
    operands, against PyTorch's autograd in double precision."""

    def compute() -> list[Pair]:
        given = arguments()
        want, slopes = gradients(theirs, *(double(x) for x in given))
        got, found = gradients(ours, *given)
        pairs = zip([got, *found], [want, *slopes], strict=True)
        return [(g, w, slack) for g, w in pairs]

    named(name, compute)
