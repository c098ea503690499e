"""`torch.ops.tcir.linear` and `Linear`: a linear layer with its activation as one PyTorch op."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from torch.nn import functional

from tcir.errors import InputError
from tcir.torch.compiled import Compiled
from tcir.torch.entry import compile
from tcir.torch.exported import DECOMPOSITIONS
from tcir.torch.tensors import target_of

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "none": lambda x: x,
    "relu": functional.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}


def in_aten(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: str = "none",
) -> torch.Tensor:
    """The op written in ATen ops. `tcir.torch.compile` substitutes them for the op, so that they
    can fuse with other ops.
    """
    return ACTIVATIONS[activation](functional.linear(x, weight, bias))


class _Layer(torch.nn.Module):
    """The op as a module."""

    def __init__(self, activation: str) -> None:
        super().__init__()
        self.activation = activation

    def forward(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Computes the op."""
        return in_aten(x, weight, bias, self.activation)


@torch.library.custom_op("tcir::linear", mutates_args=(), device_types=("cpu", "cuda"))
def linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: str = "none",
) -> torch.Tensor:
    """Computes act(x @ weight.T + bias), on the simulated machine or on a GPU of a target; compiles
    once per shape.

    x:          [..., K]
    weight:     [N, K]
    bias:       [N]
    activation: name of the activation, "none" by default

    All tensors are f16, bf16 or f32 (multiplied as tf32). Raises InputError for arguments that the
    pipeline `layers` does not lower.
    """
    given = tuple(each for each in (x, weight, bias) if each is not None)
    if activation not in ACTIVATIONS:
        raise InputError(
            f"tcir.linear: activation: expected {', '.join(ACTIVATIONS)}, got {activation!r}"
        )
    if x.ndim < 2 or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        raise InputError(
            "tcir.linear: expected x of [..., K] and weight of [N, K] (as torch.nn.Linear has it), "
            f"got {list(x.shape)} and {list(weight.shape)}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise InputError(
            f"tcir.linear: bias: expected [{weight.shape[0]}], an element for each row of the "
            f"weight, got {list(bias.shape)}"
        )
    if x.dtype not in (torch.float16, torch.bfloat16, torch.float32) or any(
        each.dtype != x.dtype for each in given
    ):
        kinds = ", ".join(str(each.dtype)[6:] for each in given)
        raise InputError(
            "tcir.linear: tensors must all be float16, all bfloat16 or all float32, the types that "
            f"the tensor core multiplies, got {kinds}"
        )
    shapes = tuple((tuple(each.shape), each.dtype) for each in given)
    result = _compiled(shapes, activation, target_of(given))(*given)
    assert isinstance(result, torch.Tensor)
    return result


@linear.register_fake
def _(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: str = "none",
) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


DECOMPOSITIONS[torch.ops.tcir.linear.default] = in_aten


@lru_cache(maxsize=64)
def _compiled(
    given: tuple[tuple[tuple[int, ...], torch.dtype], ...], activation: str, target: str
) -> Compiled:
    """The kernel for arguments of these shapes and types."""
    try:
        examples = [torch.zeros(shape, dtype=kind) for shape, kind in given]
    except RuntimeError as error:  # PyTorch's own for a lack of memory
        shapes = ", ".join(str(list(shape)) for shape, _ in given)
        raise InputError(
            f"tcir.linear: this computer has too little memory for tensors of {shapes}"
        ) from error
    compiled = compile(_Layer(activation).eval(), examples, target=target)
    left = [part for part in compiled.table if part.kernel is None]
    if left:
        raise InputError(f"tcir.linear: expected a layer that tcir can lower, got {left[0]}")
    return compiled


class Linear(torch.nn.Linear):
    """`torch.nn.Linear` followed by an activation, as one kernel, on the simulated machine or on a
    GPU.

    Its state has the same names as that of `torch.nn.Linear`, so each class can load the other's
    state by `load_state_dict`. It has no gradients.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        activation: str = "none",
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype=dtype)
        self.activation = activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Computes act(x @ weight.T + bias)."""
        result = torch.ops.tcir.linear(x, self.weight, self.bias, self.activation)
        assert isinstance(result, torch.Tensor)
        return result
