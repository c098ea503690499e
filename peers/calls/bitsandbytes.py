"""bitsandbytes: its Triton back end."""

from __future__ import annotations

import torch
from bitsandbytes.backends.triton import ops
from torch import Tensor

from peers.calls import BF16, F16, F32, Pair, call, named, some

CODE = torch.linspace(-1, 1, 256)
NF4 = torch.tensor(
    [
        -1.0,
        -0.6961928,
        -0.52507305,
        -0.3949175,
        -0.28444138,
        -0.18477343,
        -0.09105004,
        0.0,
        0.0795803,
        0.1609302,
        0.2461123,
        0.33791524,
        0.44070983,
        0.562617,
        0.72295684,
        1.0,
    ]
)
FP4 = torch.tensor([0, 0.0625, 8, 12, 4, 6, 2, 3]) / 12
TABLES = {"nf4": NF4, "fp4": torch.cat([FP4, -FP4])}


def _largest(x: Tensor, block: int) -> Tensor:
    return x.reshape(-1, block).abs().amax(1)


@call
def quantize_blockwise() -> list[Pair]:
    x = some(1000)[:960]
    codes, largest = ops.quantize_blockwise(x, CODE, 64)
    unit = x.double().reshape(-1, 64) / _largest(x, 64)[:, None].double()
    nearest = (unit.reshape(-1, 1) - CODE.double()).abs().amin(1)
    found = (unit.reshape(-1) - CODE.double()[codes.long()]).abs()
    return [(largest, _largest(x, 64)), (found, nearest, 1e4)]


for _kind in (F32, F16, BF16):

    def _dequantize(kind: torch.dtype = _kind) -> list[Pair]:
        codes = torch.randint(0, 256, (640,), dtype=torch.uint8)
        largest = torch.rand(10)
        got = ops.dequantize_blockwise(codes, largest, CODE, 64, kind)
        want = CODE.double()[codes.long()].reshape(10, 64) * largest.double()[:, None]
        return [(got, want.flatten())]

    named(f"dequantize_blockwise_{str(_kind)[6:]}", _dequantize)
for _name, _table in TABLES.items():

    def _quantize_4bit(name: str = _name, table: Tensor = _table) -> list[Pair]:
        x = some(4, 128)
        codes, largest = ops.quantize_4bit(x, 64, name, torch.uint8)
        pairs = torch.stack([codes.flatten() >> 4, codes.flatten() & 15], 1).flatten().long()
        unit = x.double().reshape(-1, 64) / _largest(x, 64)[:, None].double()
        nearest = (unit.reshape(-1, 1) - table.double()).abs().amin(1)
        found = (unit.reshape(-1) - table.double()[pairs]).abs()
        return [(largest, _largest(x, 64)), (found, nearest, 1e6)]

    def _dequantize_4bit(name: str = _name, table: Tensor = _table) -> list[Pair]:
        codes, largest = torch.randint(0, 256, (256, 1), dtype=torch.uint8), torch.rand(8)
        got = ops.dequantize_4bit(codes, largest, 64, name, (4, 128), F16)
        pairs = torch.stack([codes.flatten() >> 4, codes.flatten() & 15], 1).flatten().long()
        want = table.double()[pairs].reshape(8, 64) * largest.double()[:, None]
        return [(got, want.reshape(4, 128))]

    named(f"quantize_{_name}", _quantize_4bit)
    named(f"dequantize_{_name}", _dequantize_4bit)


@call
def gemv_4bit() -> list[Pair]:
    codes, largest, x = (
        torch.randint(0, 256, (1024, 1), dtype=torch.uint8),
        torch.rand(32),
        some(1, 64),
    )
    got = ops.gemv_4bit(x, codes, (32, 64), largest, NF4, 64)
    pairs = torch.stack([codes.flatten() >> 4, codes.flatten() & 15], 1).flatten().long()
    weight = NF4.double()[pairs].reshape(32, 64) * largest.double()[:, None]
    return [(got, x.double() @ weight.T)]


def _update(
    name: str, p: Tensor, g: Tensor, m: Tensor, v: Tensor | None, step: int
) -> list[Tensor]:
    """One step of an optimizer, in place, by PyTorch; weight decay 0."""
    if name == "adam":
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        p -= 0.01 * (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-8)
    elif name == "lion":
        p -= 0.01 * (m * 0.9 + g * 0.1).sign()
        m.mul_(0.999).add_(g, alpha=0.001)
    elif name == "momentum":
        m.copy_(g if step == 1 else m * 0.9 + g)
        p -= 0.01 * m
    elif name == "rmsprop":
        m.mul_(0.9).addcmul_(g, g, value=0.1)
        p -= 0.01 * g / (m.sqrt() + 1e-8)
    elif name == "adagrad":
        m.addcmul_(g, g)
        p -= 0.01 * g / (m.sqrt() + 1e-8)
    return [p, m] + ([v] if v is not None else [])


for _name in ("adam", "lion", "momentum", "rmsprop", "adagrad"):

    def _optimizer(name: str = _name) -> list[Pair]:
        p, g, m = some(300), some(300), torch.rand(300)
        v = torch.rand(300) if name == "adam" else None
        want = _update(name, *(x if x is None else x.double() for x in (p, g, m, v)), 3)
        ops.optimizer_update_32bit(
            name, g, p, m, v, None, 0.0, 0.0, 0.9, 0.999, 0.0, 0.0, 1e-8, 0.0, 3, 0.01, 1.0, False
        )
        got = [p, m] + ([v] if v is not None else [])
        return list(zip(got, want, strict=True))

    named(f"{_name}_32bit", _optimizer)
