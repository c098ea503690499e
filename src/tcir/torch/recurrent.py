"""Decompositions of recurrences over a sequence: they are unrolled, and each step has its own
launches.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from tcir.errors import InputError
from tcir.torch.aten import Decompositions, aten

MOST_STEPS = 64
"""Maximum number of steps of a sequence, in all layers and directions."""


def _limited(name: str) -> Callable[..., object]:
    """Decomposition that leaves the op `name` to torch-mlir, or, if it has more than `MOST_STEPS`
    steps, to PyTorch."""

    def decomposition(x: torch.Tensor, state: object, weights: object, *rest: float) -> object:
        _, layers, _, _, bidirectional, batch_first = rest  # biases, dropout, training
        steps = x.shape[int(batch_first)] * int(layers) * (1 + int(bidirectional))
        if steps > MOST_STEPS:
            raise InputError(
                f"expected at most {MOST_STEPS} steps of aten.{name} in all layers and directions, "
                f"got {steps}: each step has launches of its own"
            )
        return NotImplemented

    return decomposition


RECURRENT: Decompositions = {
    getattr(aten, name).input: _limited(name) for name in ("gru", "lstm", "rnn_tanh", "rnn_relu")
}
"""The decompositions of this file, by overload."""
