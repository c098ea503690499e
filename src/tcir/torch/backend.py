"""The backend ``tcir`` of `torch.compile`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch._dynamo import register_backend

from tcir.torch.entry import compile


@register_backend(name="tcir")
def backend(module: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Callable[..., object]:
    """What `torch.compile` calls with each graph that it traced: its kernels, without gradients."""
    compiled = compile(module, inputs)
    return lambda *given: compiled(*given)
