"""cut-cross-entropy: the loss of a linear layer, and its gradients, without the logits."""

from __future__ import annotations

import torch
import torch.nn.functional as fn
from cut_cross_entropy import linear_cross_entropy
from torch import Tensor

from peers.calls import BF16, F16, both_ways, some

TARGET = torch.arange(64) * 7 % 256


def _loss(e: Tensor, c: Tensor) -> Tensor:
    return fn.cross_entropy(e @ c.T, TARGET)


def _capped(e: Tensor, c: Tensor) -> Tensor:
    return fn.cross_entropy(5 * torch.tanh(e @ c.T / 5), TARGET)


for _kind in (F16, BF16):
    both_ways(
        f"loss_{str(_kind)[6:]}",
        lambda e, c: linear_cross_entropy(e, c, TARGET, filter_eps=None),
        _loss,
        lambda k=_kind: (some(64, 64, dtype=k) / 4, some(256, 64, dtype=k) / 4),
    )
both_ways(
    "loss_softcap",
    lambda e, c: linear_cross_entropy(e, c, TARGET, softcap=5.0, filter_eps=None),
    _capped,
    lambda: (some(64, 64, dtype=F16) / 4, some(256, 64, dtype=F16) / 4),
)
both_ways(
    "loss_sum",
    lambda e, c: linear_cross_entropy(e, c, TARGET, reduction="sum", filter_eps=None),
    lambda e, c: 64 * _loss(e, c),
    lambda: (some(64, 64, dtype=F16) / 4, some(256, 64, dtype=F16) / 4),
)
