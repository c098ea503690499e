"""Vision networks from the transformers library."""

from __future__ import annotations

from tcir.tools.dev.networks.network import SIDE, image, shipped

PATCHES = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4,
    "image_size": SIDE, "patch_size": 8,
}  # fmt: skip
WINDOWS = {
    "image_size": SIDE, "patch_size": 2, "embed_dim": 32, "depths": [2, 1], "num_heads": [2, 4],
    "window_size": 4,
}  # fmt: skip
SEGMENTS = {
    "num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [4, 1], "hidden_sizes": [32, 64],
    "patch_sizes": [7, 3], "strides": [4, 2], "num_attention_heads": [1, 2], "mlp_ratios": [2, 2],
}  # fmt: skip
RESNET = {"embedding_size": 16, "hidden_sizes": [32, 64], "depths": [1, 1]}
REGNET = {**RESNET, "groups_width": 16}
STAGES = {"hidden_sizes": [32, 64], "depths": [1, 1], "num_stages": 2}
POOLED = {
    "num_encoder_blocks": 2, "depths": [1, 1], "hidden_sizes": [32, 64], "patch_sizes": [7, 3],
    "strides": [4, 2], "padding": [2, 1],
}  # fmt: skip
MOBILE = {"image_size": SIDE, "depth_multiplier": 0.25}

NETWORKS = [
    shipped("ViT", PATCHES, image()),
    shipped("ViT", PATCHES, image(), attention="eager"),
    shipped("DeiT", PATCHES, image()),
    shipped("Dinov2", {**PATCHES, "mlp_ratio": 2}, image()),
    shipped("Beit", {**PATCHES, "use_relative_position_bias": True}, image()),
    shipped("Swin", WINDOWS, image(1)),
    shipped("Segformer", SEGMENTS, image(1), attention="eager"),
    shipped("ConvNext", STAGES, image(), attention="eager", called="ConvNext"),
    shipped("ConvNextV2", STAGES, image(), attention="eager", called="ConvNextV2"),
    shipped(
        "ResNet",
        {**RESNET, "layer_type": "bottleneck"},
        image(),
        attention="eager",
        called="ResNet",
    ),
    shipped(
        "ResNet",
        {**RESNET, "layer_type": "basic"},
        image(),
        attention="eager",
        called="ResNet, basic blocks",
    ),
    shipped("RegNet", REGNET, image(), attention="eager", called="RegNet"),
    shipped("MobileNetV2", MOBILE, image(1), attention="eager", called="MobileNetV2"),
    shipped("PoolFormer", POOLED, image(1), attention="eager", called="PoolFormer"),
]
