"""The networks of docs/reference/networks.md, and their arguments."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

Arguments = Mapping[str, object]
"""Arguments by keyword; floating-point tensors are f32."""
NAMES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
TYPES = tuple(NAMES.values())
LEAST = 0.98
"""Minimum fraction of a network's contraction FLOPs in kernels."""
WORDS = 96
"""Size of the vocabularies."""
SIDE = 32
"""Pixels along a side of an image."""


@dataclass(frozen=True)
class Network:
    """A small network with random weights.

    make:      returns the module, in f32
    arguments: draws the module's arguments
    types:     element types in which PyTorch exports the module
    why:       reason why `types` differs from `TYPES`, if it does
    """

    name: str
    make: Callable[[], torch.nn.Module]
    arguments: Callable[[], Arguments]
    why: str = ""
    types: tuple[torch.dtype, ...] = TYPES

    def drawn(self, kind: torch.dtype) -> tuple[torch.nn.Module, dict[str, object]]:
        """The module in evaluation mode and its arguments, both in element type `kind`. The random
        numbers are the same each time."""
        torch.manual_seed(0)
        module = self.make().eval()
        with torch.no_grad():
            for name, buffer in module.named_buffers():  # as if it had been trained
                if name.endswith("running_mean"):
                    buffer.uniform_(-0.2, 0.2)
                elif name.endswith("running_var"):
                    buffer.uniform_(0.5, 1.5)
        return module.to(kind), {name: of_type(x, kind) for name, x in self.arguments().items()}


def of_type(value: object, kind: torch.dtype) -> object:
    """Converts a floating-point tensor to another type; other values are returned as they are."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.to(kind)
    return value


def shipped(
    name: str,
    config: Mapping[str, object],
    arguments: Callable[[], Arguments],
    *,
    attention: str = "sdpa",
    model: str = "Model",
    called: str = "",
    why: str = "",
    types: tuple[torch.dtype, ...] = TYPES,
) -> Network:
    """An unmodified model of transformers, with a small configuration.

    attention: implementation of the model's attention
    model:     end of the name of the model's class
    called:    name of the network in the table
    """

    def make() -> torch.nn.Module:
        transformers = importlib.import_module("transformers")
        found = getattr(transformers, f"{name}Config")(**config)
        found._attn_implementation = attention
        module: torch.nn.Module = getattr(transformers, f"{name}{model}")(found)
        return module

    ends = {"sdpa": "", "eager": ", eager attention"}
    return Network(called or name + ends[attention], make, arguments, why=why, types=types)


def tokens(batch: int = 2, length: int = 16) -> Arguments:
    """Random tokens; the last tokens of the last row are padding."""
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[-1, length - 3 :] = 0
    return {"input_ids": torch.randint(3, WORDS, (batch, length)), "attention_mask": mask}


def sequence() -> Arguments:
    """Random tokens without padding."""
    return {"input_ids": tokens()["input_ids"]}


def image(batch: int = 2, side: int = SIDE) -> Callable[[], Arguments]:
    """Random images of three colours."""
    return lambda: {"pixel_values": torch.randn(batch, 3, side, side)}
