"""Networks that are written here by hand, following papers."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tcir.tools.dev.networks.network import Network


def _convolution(
    inner: int, outer: int, size: int, stride: int = 1, groups: int = 1, act: bool = True
) -> nn.Sequential:
    layers: list[nn.Module] = [
        nn.Conv2d(inner, outer, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outer),
    ]
    return nn.Sequential(*layers, *([nn.SiLU()] if act else []))


class Inverted(nn.Module):
    """EfficientNet's inverted-residual block: expansion, depthwise convolution, squeeze and
    excitation, projection, and a residual."""

    def __init__(self, width: int, wide: int, size: int) -> None:
        super().__init__()
        self.expand, self.depth = (
            _convolution(width, wide, 1),
            _convolution(wide, wide, size, groups=wide),
        )
        self.squeeze, self.excite = nn.Conv2d(wide, width, 1), nn.Conv2d(width, wide, 1)
        self.project = _convolution(wide, width, 1, act=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.depth(self.expand(x))
        scale = torch.sigmoid(self.excite(F.silu(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
        return x + self.project(y * scale)


class Efficient(nn.Module):
    """A small EfficientNet: a stem, two blocks, and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            _convolution(3, 16, 3, 2), Inverted(16, 64, 3), Inverted(16, 64, 5)
        )
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).mean((2, 3)))


class UNet(nn.Module):
    """A U-Net with two scales, a skip connection, and nearest-neighbour upsampling."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.down, self.deep = _convolution(3, width, 3), _convolution(width, 2 * width, 3)
        self.up, self.out = _convolution(3 * width, width, 3), nn.Conv2d(width, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        high = self.down(x)
        low = F.interpolate(self.deep(F.max_pool2d(high, 2)), scale_factor=2.0)
        return self.out(self.up(torch.cat([high, low], 1)))


class Mixer(nn.Module):
    """An MLP-Mixer: an MLP over patches and an MLP over channels."""

    def __init__(self, patches: int = 16, width: int = 64) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 8, 8)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.tokens = nn.Sequential(nn.Linear(patches, 32), nn.GELU(), nn.Linear(32, patches))
        self.channels = nn.Sequential(nn.Linear(width, 128), nn.GELU(), nn.Linear(128, width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.patch(x).flatten(2).transpose(1, 2)
        y = y + self.tokens(self.norms[0](y).transpose(1, 2)).transpose(1, 2)
        return (y + self.channels(self.norms[1](y))).mean(1)


class WaveNet(nn.Module):
    """A WaveNet: gated dilated causal convolutions with skip connections."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.first = nn.Conv1d(8, width, 1)
        self.wide = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2**n) for n in range(3))
        self.skip = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x, total = self.first(x), torch.zeros((), dtype=x.dtype)
        for number, (wide, skip) in enumerate(zip(self.wide, self.skip, strict=True)):
            a, b = wide(F.pad(x, (2**number, 0))).chunk(2, 1)
            y = skip(torch.tanh(a) * torch.sigmoid(b))
            x, total = x + y, total + y
        return total


class Graph(nn.Module):
    """A graph network: each node sums the messages of its neighbours."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.message, self.update = nn.Linear(2 * width, width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        y = F.relu(self.message(torch.cat([x[source], x[target]], -1)))
        total = torch.zeros_like(x).index_add(0, target, y)
        return F.relu(self.update(torch.cat([x, total], -1)))


class Experts(nn.Module):
    """A mixture of experts in which each expert computes all tokens, and results are weighted."""

    def __init__(self, width: int = 64, count: int = 4) -> None:
        super().__init__()
        self.router = nn.Linear(width, count)
        self.up = nn.Parameter(torch.randn(count, width, 2 * width) * 0.05)
        self.down = nn.Parameter(torch.randn(count, 2 * width, width) * 0.05)

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.softmax(self.router(x).float(), -1)
        best, which = weights.topk(2, -1)
        gates = torch.zeros_like(weights).scatter(-1, which, best).to(x.dtype)
        y = torch.einsum("etf,efd->etd", F.silu(torch.einsum("td,edf->etf", x, self.up)), self.down)
        return (y * gates.t()[:, :, None]).sum(0)


class Integers(nn.Module):
    """A linear layer with int8 weights and one scale per row."""

    def __init__(self, width: int = 64, outer: int = 96) -> None:
        super().__init__()
        weight = torch.randint(-127, 127, (outer, width), dtype=torch.int8)
        self.register_buffer("weight", weight)
        self.register_buffer("scale", torch.rand(outer, 1) * 0.01)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.to(x.dtype) * self.scale)


class Recurrent(nn.Module):
    """An embedding, a recurrent layer, and a classifier of its last state."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.cells, self.head = kind(32, 32, batch_first=True), nn.Linear(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cells(x)[0][:, -1])


class Volumes(nn.Module):
    """A network of three-dimensional convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv3d(2, 16, 3, padding=1), nn.Conv3d(16, 16, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.second(F.max_pool3d(F.relu(self.first(x)), 2))).mean((2, 3, 4))


def _generator() -> nn.Module:
    """DCGAN's generator: transposed convolutions from a vector to an image."""
    return nn.Sequential(
        nn.ConvTranspose2d(32, 32, 4, 1, 0, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh(),
    )  # fmt: skip


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 32))


def _layer() -> nn.Module:
    return nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)


def _x(*shape: int, name: str = "x") -> dict[str, object]:
    return {name: torch.randn(shape)}


NETWORKS = [
    Network("MLP", _perceptron, lambda: _x(32, 64, name="input")),
    Network("nn.TransformerEncoderLayer", _layer, lambda: _x(2, 16, 64, name="src")),
    Network("EfficientNet's blocks", Efficient, lambda: _x(1, 3, 16, 16)),
    Network("UNet", UNet, lambda: _x(1, 3, 16, 16)),
    Network("MLP-Mixer", Mixer, lambda: _x(2, 3, 32, 32)),
    Network("WaveNet", WaveNet, lambda: _x(1, 8, 64)),
    Network("Graph network", Graph, lambda: {**_x(24, 32), "edges": torch.randint(0, 24, (2, 40))}),
    Network("Mixture of experts", Experts, lambda: _x(16, 64)),
    Network("int8 weights", Integers, lambda: _x(16, 64)),
    Network("LSTM", lambda: Recurrent(nn.LSTM), lambda: _x(2, 4, 32)),
    Network("GRU", lambda: Recurrent(nn.GRU), lambda: _x(2, 4, 32)),
    Network("3-D convolutions", Volumes, lambda: _x(1, 2, 4, 8, 8)),
    Network("DCGAN's generator", _generator, lambda: _x(1, 32, 1, 1, name="input")),
]
