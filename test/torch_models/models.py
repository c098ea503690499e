"""Models with random weights, and what they are called with."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Mlp(nn.Module):
    """Two linear layers and a GELU."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class Bottleneck(nn.Module):
    """ResNet-50's block: 1x1, 3x3, 1x1 convolutions, each with a batch norm, and a residual."""

    def __init__(self, width: int = 256, inner: int = 64) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, inner, 1, bias=False)
        self.conv2 = nn.Conv2d(inner, inner, 3, padding=1, bias=False)
        self.conv3 = nn.Conv2d(inner, width, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(inner), nn.BatchNorm2d(inner)
        self.norm3 = nn.BatchNorm2d(width)
        for norm in (self.norm1, self.norm2, self.norm3):
            nn.init.uniform_(norm.running_mean, -0.2, 0.2)
            nn.init.uniform_(norm.running_var, 0.5, 1.5)
            nn.init.uniform_(norm.weight, 0.5, 1.5)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        return F.relu(self.norm3(self.conv3(y)) + x)


class Decode(nn.Module):
    """One token of a transformer block for each of a batch, beside a cache of keys and values."""

    def __init__(self, width: int = 256, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.kv = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.out, self.mlp = nn.Linear(width, width), Mlp(width)

    def forward(self, x: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, _, width = x.shape
        one = width // self.heads
        y = self.norm1(x)
        q = self.q(y).view(batch, 1, self.heads, one).transpose(1, 2)
        new = self.kv(y).view(batch, 1, 2, self.heads, one).permute(2, 0, 3, 1, 4)
        k, v = torch.cat([k, new[0]], 2), torch.cat([v, new[1]], 2)
        weights = torch.softmax(q @ k.transpose(-1, -2) / one**0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, 1, width))
        return x + self.mlp(self.norm2(x)), k, v


class Tokens(nn.Module):
    """An embedding in front of linear layers, and what no pipeline takes between them."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(100, 64)
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 32)

    def forward(self, tokens: Tensor) -> Tensor:
        y = F.relu(self.first(self.table(tokens)))
        return torch.sigmoid(self.second(torch.lgamma(y + 1)))


def made(
    model: Callable[[], nn.Module], dtype: torch.dtype, *shapes: tuple[int, ...]
) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A model for evaluation, and inputs."""
    torch.manual_seed(0)
    return model().to(dtype).eval(), tuple(torch.randn(shape).to(dtype) for shape in shapes)
