"""Takes apart and rebuilds tensors that wrap other tensors, such as torchao's quantised weights."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass


def parts_of(name: str, tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    """The plain tensors of a tensor, by name: the tensor itself, or its parts as ``name.part``."""
    if not is_traceable_wrapper_subclass(tensor):
        return {name: tensor}
    parts: dict[str, torch.Tensor] = {}
    for inner in tensor.__tensor_flatten__()[0]:
        parts |= parts_of(f"{name}.{inner}", getattr(tensor, inner))
    return parts


def made_of(name: str, like: torch.Tensor, parts: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Rebuilds a tensor of the class and shape of `like` from the parts that `parts_of` names."""
    if not is_traceable_wrapper_subclass(like):
        return parts[name]
    names, context = like.__tensor_flatten__()
    inner = {each: made_of(f"{name}.{each}", getattr(like, each), parts) for each in names}
    result = type(like).__tensor_unflatten__(inner, context, like.shape, like.stride())
    assert isinstance(result, torch.Tensor)
    return result
