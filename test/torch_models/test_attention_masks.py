"""Masks of models: padding, causal, windows, slopes: in the fused kernel, and as in PyTorch."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

if not all(map(importlib.util.find_spec, ("torch", "transformers"))):
    pytest.skip("torch or transformers is not installed", allow_module_level=True)

import torch
import transformers as hf
from tiers import slow

import tcir.torch
from tcir.dialect.ops.attention import AttentionOp
from tcir.dialect.walk import walk
from tcir.passmanager.pipeline import Pipeline
from tcir.program.source import load_module, mlir_context

KEYS = 144
LENGTHS = (30, 141)
SMALL = {
    "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "vocab_size": 64, "max_position_embeddings": KEYS, "attn_implementation": "sdpa",
}  # fmt: skip
Given = tuple[torch.nn.Module, tuple[torch.Tensor, ...], dict[str, torch.Tensor]]


def _padded(left: bool = False) -> torch.Tensor:
    """1 for the tokens of each sequence, 0 for padding."""
    place = torch.arange(KEYS)[None]
    counts = torch.tensor(LENGTHS)[:, None]
    return ((place >= KEYS - counts) if left else (place < counts)).long()


def _tokens() -> torch.Tensor:
    return torch.randint(0, 64, (2, KEYS))


def _bert(written: str = "sdpa") -> Given:
    config = hf.BertConfig(**SMALL | {"attn_implementation": written})
    return hf.BertModel(config), (_tokens(), _padded()), {}


def _gpt2(left: bool = False) -> Given:
    config = hf.GPT2Config(
        n_embd=32, n_layer=1, n_head=2, vocab_size=64, n_positions=KEYS, use_cache=False,
        attn_implementation="sdpa", bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return hf.GPT2Model(config), (_tokens(),), {"attention_mask": _padded(left)}


def _llama() -> Given:
    config = hf.LlamaConfig(**SMALL | {"num_key_value_heads": 1, "use_cache": False})
    return hf.LlamaModel(config), (_tokens(),), {"attention_mask": _padded()}


def _mistral(masked: bool) -> Given:
    config = hf.MistralConfig(
        **SMALL | {"num_key_value_heads": 1, "use_cache": False, "sliding_window": 20}
    )
    more = {"attention_mask": _padded()} if masked else {}
    return hf.MistralModel(config), (_tokens(),), more


class _Heads(torch.nn.Module):
    """nn.MultiheadAttention with a mask of keys."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = torch.nn.MultiheadAttention(32, 2, batch_first=True)

    def forward(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        found, _ = self.heads(x, x, x, key_padding_mask=padding, need_weights=False)
        return found


class _Attention(torch.nn.Module):
    """Heads with a mask, or numbers to add, made by a function of the fourth argument."""

    def __init__(self, mask: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.mask = mask

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, x: torch.Tensor
    ) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, self.mask(x))


def _heads() -> list[torch.Tensor]:
    return [torch.randn(2, 2, KEYS, 16) for _ in range(3)]


def _places() -> tuple[torch.Tensor, torch.Tensor]:
    place = torch.arange(KEYS)
    return place[:, None], place[None, :]


def _up_to(counts: torch.Tensor) -> torch.Tensor:
    _, key = _places()
    return key < counts[:, None, None, None]


def _alibi(slopes: torch.Tensor) -> torch.Tensor:
    row, key = _places()
    bias = slopes[:, None, None] * (key - row).half()
    return bias.masked_fill(key > row, float("-inf"))[None]


def _of(mask: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> Given:
    return _Attention(mask), (*_heads(), x), {}


CAUSAL, WINDOW = {"last": 0}, {"last": 0, "first": -19}
COUNTS = torch.tensor(LENGTHS)
MODELS: dict[str, tuple[Callable[[], Given], dict[str, int], bool]] = {
    "BERT": (_bert, {}, True),
    "BERT, eager": (lambda: _bert("eager"), {}, False),
    "GPT-2": (_gpt2, CAUSAL, True),
    "GPT-2, padded at the left": (lambda: _gpt2(left=True), CAUSAL, True),
    "Llama": (_llama, CAUSAL, True),
    "Mistral": (lambda: _mistral(True), WINDOW, True),
    "Mistral without padding": (lambda: _mistral(False), WINDOW, False),
    "key_padding_mask": (
        lambda: (_Heads(), (torch.randn(2, KEYS, 32), _padded() == 0), {}), {}, True
    ),
    "lengths": (lambda: _of(_up_to, COUNTS), {}, True),
    "lengths and causal": (
        lambda: _of(lambda n: _up_to(n) & (_places()[1] <= _places()[0]), COUNTS), CAUSAL, True,
    ),
    "slopes": (lambda: _of(_alibi, torch.tensor([0.25, 0.0625]).half()), CAUSAL, False),
}  # fmt: skip


def _bands(mlir: str) -> list[tuple[dict[str, int], bool]]:
    """Band of each attention of a program after raising, and whether it has numbers of keys."""
    text = mlir.replace("module {", 'module attributes {tc.target = "sm_90a"} {', 1)
    with mlir_context() as context:
        module = load_module(text, context)
        for each in Pipeline(["raise-attention"]):
            each.run(module)
        ops = [op for op in walk(module.operation) if isinstance(op, AttentionOp)]
        bands = [{n: x for n, x in vars(op.band).items() if x is not None} for op in ops]
        return [(band, op.lengths is not None) for band, op in zip(bands, ops, strict=True)]


def _tensor(found: Any) -> torch.Tensor:
    return found if isinstance(found, torch.Tensor) else found[0]


QUICK = [("lengths", "sm_90a"), ("key_padding_mask", "sm_90a"), ("Mistral", "sm_90a")]
EACH = [(name, target) for name in MODELS for target in ("sm_90a", "sm_100a")]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("name", "target"), [each if each in QUICK else slow(*each) for each in EACH]
)
def test_masks_of_models(name: str, target: str) -> None:
    """The rows of tokens as in PyTorch; one launch of attention, of the keys that rows have."""
    torch.manual_seed(0)
    make, band, counted = MODELS[name]
    model, args, named = make()
    model = model.half().eval()
    args = tuple(x.half() if x.dtype == torch.float32 else x for x in args)
    compiled = tcir.torch.compile(model, args, example_kwargs=named, target=target, verbose=False)
    (part,) = [each for each in compiled.table if each.kernel is not None]
    assert _bands(part.mlir) == [(band, counted)]
    with torch.no_grad():
        expected, got = (_tensor(f(*args, **named)).float() for f in (model, compiled))
    rows = torch.ones(2, KEYS, dtype=torch.bool)
    if "attention_mask" in named:
        rows = named["attention_mask"].bool()
    if expected.dim() == 4:
        rows = rows[:, None, :].expand(2, 2, KEYS)
    assert not got[rows].isnan().any()
    assert (got - expected)[rows].abs().max() <= 4e-3 * expected[rows].abs().max() + 2e-3
