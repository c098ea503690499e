"""Encoder-decoders, speech models, and models of text-image pairs from the transformers library."""

from __future__ import annotations

import torch

from tcir.tools.dev.networks.encoders import SMALL
from tcir.tools.dev.networks.network import WORDS, Arguments, image, shipped, tokens
from tcir.tools.dev.networks.vision import PATCHES

T5 = {
    "vocab_size": WORDS, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 1, "num_heads": 4,
}  # fmt: skip
BART = {
    "d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128,
    "vocab_size": WORDS, "pad_token_id": 0,
}  # fmt: skip
WHISPER = {
    **BART, "num_mel_bins": 16, "max_source_positions": 16, "max_target_positions": 32,
    "decoder_start_token_id": 1, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
WAVES = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4,
    "conv_dim": [32, 32, 32], "conv_stride": [5, 2, 2], "conv_kernel": [10, 3, 3],
    "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}  # fmt: skip


def translated() -> Arguments:
    """Random tokens of two languages."""
    return {**tokens(), "decoder_input_ids": torch.randint(3, WORDS, (2, 8))}


def spoken() -> Arguments:
    """A random spectrogram, and random tokens."""
    return {
        "input_features": torch.randn(1, 16, 32),
        "decoder_input_ids": torch.randint(3, WORDS, (1, 8)),
    }


def wave() -> Arguments:
    """A random sound wave."""
    return {"input_values": torch.randn(1, 640)}


def captioned() -> Arguments:
    """Random images and texts: so many pairs that the largest error does not depend on chance."""
    return {**tokens(batch=8), **image(batch=8)()}


BRANCH = "in f16 it branches on whether all numbers are finite; `torch.export` cannot do that"
_TWO = {"text_config": SMALL, "vision_config": PATCHES}
NETWORKS = [
    shipped("T5", T5, translated),
    shipped("T5", T5, translated, attention="eager"),
    shipped(
        "Bart",
        {**BART, "max_position_embeddings": 32},
        translated,
        types=(torch.bfloat16, torch.float32),
        why=BRANCH,
    ),
    shipped("Whisper", WHISPER, spoken),
    shipped("Wav2Vec2", WAVES, wave),
    shipped("Hubert", WAVES, wave),
    shipped("CLIP", {**_TWO, "projection_dim": 32}, captioned),
    shipped("Siglip", _TWO, captioned),
]
