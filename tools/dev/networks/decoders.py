"""Language models from the transformers library, with the cache of keys and values that they
return."""

from __future__ import annotations

from tcir.tools.dev.networks.network import WORDS, sequence, shipped, tokens

SMALL = {
    "vocab_size": WORDS, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
    "pad_token_id": 0,
}  # fmt: skip
ONE = {key: value for key, value in SMALL.items() if key != "num_key_value_heads"}
GPT2 = {"vocab_size": WORDS, "n_embd": 64, "n_layer": 1, "n_head": 4, "n_positions": 64}
OPT = {
    "vocab_size": WORDS, "hidden_size": 64, "ffn_dim": 128, "num_hidden_layers": 1,
    "num_attention_heads": 4, "max_position_embeddings": 64, "word_embed_proj_dim": 64,
}  # fmt: skip
BLOOM = {"vocab_size": WORDS, "hidden_size": 64, "n_layer": 1, "n_head": 4}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
STATES = {"vocab_size": WORDS, "hidden_size": 64, "state_size": 8, "num_hidden_layers": 1}
RWKV = {
    "vocab_size": WORDS, "hidden_size": 64, "attention_hidden_size": 64, "num_hidden_layers": 2,
    "context_length": 64,
}  # fmt: skip
HEAD = {"head_dim": 16}
GROUPED = (
    "its experts are an op of transformers, `grouped_mm_fallback`, which is left to PyTorch. "
    "PyTorch lacks this op in f64, so there is no result to compare with"
)
IN_PLACE = (
    "rejected, because its layers scale their own weights in place at the first call, and "
    "tcir's kernels only read weights"
)
GATHERED = (
    "this variant gathers the weights of the chosen experts. By default transformers sorts the "
    "tokens by expert, which is left to PyTorch (above)"
)

NETWORKS = [
    shipped("GPT2", GPT2, tokens),
    shipped("GPT2", GPT2, tokens, attention="eager"),
    shipped("Llama", SMALL, tokens),
    shipped("Llama", SMALL, tokens, attention="eager"),
    shipped("Mistral", {**SMALL, "sliding_window": 8}, tokens),
    shipped("Qwen2", SMALL, tokens),
    shipped("Qwen2", SMALL, tokens, attention="eager"),
    shipped("Qwen3", {**SMALL, **HEAD}, tokens),
    shipped("Gemma", {**SMALL, **HEAD}, tokens),
    shipped("Gemma2", {**SMALL, **HEAD}, tokens, attention="eager"),
    shipped("Phi", SMALL, tokens),
    shipped("Phi3", SMALL, tokens),
    shipped("OPT", OPT, tokens),
    shipped("Bloom", BLOOM, tokens, attention="eager"),
    shipped("GPTNeoX", ONE, tokens),
    shipped("Falcon", ONE, tokens),
    shipped("StableLm", SMALL, tokens),
    shipped("Olmo2", SMALL, tokens),
    shipped("Mamba", STATES, sequence, attention="eager", called="Mamba"),
    shipped("Rwkv", RWKV, sequence, attention="eager", called="RWKV", types=(), why=IN_PLACE),
    shipped("Mixtral", {**SMALL, **EXPERTS}, tokens, types=(), why=GROUPED),
    shipped(
        "Mixtral",
        {**SMALL, **EXPERTS, "experts_implementation": "batched_mm"},
        tokens,
        called="Mixtral, experts gathered",
        why=GATHERED,
    ),
]
