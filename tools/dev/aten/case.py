"""Cases of the table in docs/reference/aten.md: each is an op with its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

Shape = tuple[int, ...]
Function = Callable[..., object]
SPECIALS = (float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 0.5, -1.5, 2.5)
"""Special values; the arguments of an elementwise op contain all pairs of them (64 elements)."""


@dataclass(frozen=True)
class Index:
    """An int64 argument whose elements are at least 0 and less than `below`."""

    shape: Shape
    below: int


@dataclass(frozen=True)
class Mask:
    """A boolean argument of an op."""

    shape: Shape


Argument = Shape | Index | Mask


@dataclass(frozen=True)
class Case:
    """An op and its arguments.

    arguments:   shapes of floats, which are drawn from N(0, 1), and other arguments
    elementwise: whether the first elements are all pairs of NaN, infinities, zeros and ties
    multiplied:  whether f32 factors are multiplied as tf32, with 10 bits of mantissa
    """

    name: str
    function: Function
    arguments: tuple[Argument, ...]
    elementwise: bool = False
    multiplied: bool = False

    def drawn(self) -> list[torch.Tensor]:
        """Draws the arguments in f64; the random numbers are the same each time."""
        generator = torch.Generator().manual_seed(0)
        made = [_drawn(each, generator) for each in self.arguments]
        if self.elementwise:
            floats = [each for each in made if each.is_floating_point()]
            number = torch.arange(len(SPECIALS) ** 2)
            for position, each in enumerate(floats):
                digit = number // len(SPECIALS) ** (position % 2) % len(SPECIALS)
                count = min(each.numel(), len(number))
                each.view(-1)[:count] = torch.tensor(SPECIALS, dtype=each.dtype)[digit][:count]
        return made


def _drawn(argument: Argument, generator: torch.Generator) -> torch.Tensor:
    if isinstance(argument, Index):
        return torch.randint(0, argument.below, argument.shape, generator=generator)
    if isinstance(argument, Mask):
        return torch.rand(argument.shape, generator=generator) < 0.5
    return torch.randn(argument, generator=generator, dtype=torch.float64)
