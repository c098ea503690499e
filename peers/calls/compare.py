"""Whether what a library computed is what was expected, as a word for the page."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from peers.calls import Pair

TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}
"""Largest difference of an element by its type, as a fraction of the largest element expected or of
one, whichever is more."""
LOW_PRECISION = 0.13
"""The same for types of 8 bits."""


def values(pairs: Sequence[Pair]) -> str:
    """ "exact", "within N" or what differs first; N is the largest difference."""
    worst = 0.0
    for got, want, *slack in pairs:
        said, difference = _compared(_tensor(got), _tensor(want), slack[0] if slack else 1.0)
        if said:
            return said
        worst = max(worst, difference)
    return "exact" if worst == 0 else f"within {worst:.2g}"


def _tensor(value: object) -> torch.Tensor:
    return value.detach() if isinstance(value, torch.Tensor) else torch.as_tensor(value)


def _compared(got: torch.Tensor, want: torch.Tensor, slack: float) -> tuple[str, float]:
    """What differs, or nothing and the largest difference."""
    if got.shape != want.shape:
        return f"shape {tuple(got.shape)} for {tuple(want.shape)}", 0.0
    if got.is_complex():
        got, want = torch.view_as_real(got), torch.view_as_real(want.to(torch.complex128))
    kind = got.dtype
    a, b = got.to(torch.float64), want.to(torch.float64)
    exact = not kind.is_floating_point
    relative = 0.0 if exact else TOLERANCE.get(kind, LOW_PRECISION) * slack
    size = b[b.isfinite()].abs().max().item() if b.isfinite().any() else 0.0
    allowed = relative * max(size, 1.0)
    difference = (a - b).abs()
    difference[(a == b) | a.isnan() & b.isnan()] = 0
    bad = ~(difference <= allowed)
    if bad.any():
        place = tuple(bad.nonzero()[0].tolist())
        count = int(bad.sum())
        return f"{count} of {a.numel()} differ, first {place}: {a[place]} for {b[place]}", 0.0
    return "", difference.max().item() if difference.numel() else 0.0
