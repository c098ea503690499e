"""Networks of diffusion models from the diffusers library."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

import torch

from tcir.tools.dev.networks.network import Arguments, Network

BLOCKS = {
    "block_out_channels": (32, 64), "layers_per_block": 1, "norm_num_groups": 8, "sample_size": 8,
}  # fmt: skip
PLAIN = {
    **BLOCKS,
    "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
    "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
    "attention_head_dim": 16,
}
CROSS = {
    **BLOCKS,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
    "attention_head_dim": 2,
    "cross_attention_dim": 32,
}
CODER = {
    "block_out_channels": (16, 32), "norm_num_groups": 8, "latent_channels": 4,
    "down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2,
}  # fmt: skip
TRANSFORMER = {
    "num_attention_heads": 4, "attention_head_dim": 16, "in_channels": 4, "out_channels": 8,
    "num_layers": 1, "sample_size": 8, "num_embeds_ada_norm": 10, "norm_num_groups": 8,
}  # fmt: skip


def _of(
    called: str, name: str, config: Mapping[str, object], arguments: Callable[[], Arguments]
) -> Network:
    def make() -> torch.nn.Module:
        module: torch.nn.Module = getattr(importlib.import_module("diffusers"), name)(**config)
        return module

    return Network(called, make, lambda: {**arguments(), "return_dict": False})


def _noise(channels: int = 4) -> dict[str, object]:
    return {"sample": torch.randn(1, channels, 8, 8)}


NETWORKS = [
    _of("UNet of images", "UNet2DModel", PLAIN, lambda: {**_noise(3), "timestep": 7}),
    _of(
        "UNet of latents with text", "UNet2DConditionModel", CROSS,
        lambda: {
            **_noise(), "timestep": torch.tensor([7]),
            "encoder_hidden_states": torch.randn(1, 8, 32),
        },
    ),
    _of(
        "Autoencoder of images", "AutoencoderKL", CODER,
        lambda: {"sample": torch.randn(1, 3, 16, 16)},
    ),
    _of(
        "DiT", "DiTTransformer2DModel", TRANSFORMER,
        lambda: {
            "hidden_states": torch.randn(1, 4, 8, 8), "timestep": torch.tensor([7]),
            "class_labels": torch.tensor([3]),
        },
    ),
]  # fmt: skip
