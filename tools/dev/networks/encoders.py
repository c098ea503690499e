"""Text encoders from the transformers library."""

from __future__ import annotations

from tcir.tools.dev.networks.network import WORDS, shipped, tokens

SMALL = {
    "vocab_size": WORDS, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1,
    "num_attention_heads": 4, "max_position_embeddings": 64,
}  # fmt: skip
RELATIVE = {
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "type_vocab_size": 0,
    "max_relative_positions": 16,
}
DISTIL = {
    "vocab_size": WORDS, "dim": 64, "hidden_dim": 128, "n_layers": 1, "n_heads": 4,
    "max_position_embeddings": 64,
}  # fmt: skip
BUCKETS = {"position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True}
MODERN = {"global_attn_every_n_layers": 1, "local_attention": 8, "pad_token_id": 0}

NETWORKS = [
    shipped("Bert", SMALL, tokens),
    shipped("Bert", SMALL, tokens, attention="eager"),
    shipped("DistilBert", DISTIL, tokens),
    shipped("Roberta", SMALL, tokens),
    shipped("Albert", {**SMALL, "embedding_size": 32}, tokens),
    shipped("Electra", {**SMALL, "embedding_size": 32}, tokens),
    shipped("Deberta", {**SMALL, **RELATIVE}, tokens, attention="eager"),
    shipped("DebertaV2", {**SMALL, **RELATIVE, **BUCKETS}, tokens, attention="eager"),
    shipped("MPNet", SMALL, tokens, attention="eager"),
    shipped("ModernBert", {**SMALL, **MODERN}, tokens),
]
