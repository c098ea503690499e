"""Launches drawn at random, most of them wrong: `hostile.py SEED COUNT`. Each runs, is refused by
Triton, or ends with an error of tcir; anything else is printed, and the exit status is 1."""

import random
import sys
import traceback
import warnings
from collections import Counter

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tcir.errors import Error

warnings.filterwarnings("ignore")


@triton.jit
def add(x, y, out, n, s, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.load(x + at, mask=at < n).to(tl.float32) + s + tl.load(y + at, mask=at < n)
    tl.store(out + at, sums, mask=at < n)


@triton.jit
def by_host(a, out, r, c, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at[:, None] * BLOCK + at[None, :], a.load([r, c]).to(tl.float32))


@triton.jit
def by_kernel(a, out, m, n, r, c, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tile = tl.make_tensor_descriptor(a, [m, n], [n, 1], [BLOCK, BLOCK]).load([r, c])
    tl.store(out + at[:, None] * BLOCK + at[None, :], tile.to(tl.float32))


@triton.jit
def by_table(table, out, n, BLOCK: tl.constexpr):
    x = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n, other=0.0))


TYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16,
         torch.uint32, torch.uint64, torch.float16, torch.bfloat16, torch.float64,
         torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64]  # fmt: skip
NUMBERS = [0, 1, 7, 16, 64, 100, -1, 1 << 31, (1 << 63) - 1, 1 << 63, -(1 << 63), True, 1.5,
           float("inf"), float("nan"), None]  # fmt: skip
GRIDS = [(1,), (2,), (0,), (-1,), (2, 2, 2), (1, 0, 3), (1, 1, 1, 1), lambda meta: (2,), (1.0,), (),
         [1], (1 << 31,), (1, 1 << 17)]  # fmt: skip
draw = random.Random(int(sys.argv[1]))


def tensor(*sizes):
    shape = [draw.choice([0, 1, 16, 33, 64]) for _ in sizes]
    kind = torch.float32 if draw.random() < 0.6 else draw.choice(TYPES)
    made = torch.ones(shape, device="cuda").to(kind)
    match draw.randrange(16):
        case 0:
            return draw.choice([None, 3, 2.5, "x", [1], object(), True, 1 << 40])
        case 1:
            return made.t() if len(shape) == 2 else made[::2]
        case 2:
            return made[3:]
        case 3:
            return torch.ones([1] * len(shape)).expand(shape)
        case 4:
            return torch.empty(shape, device="meta")
        case 5:
            return torch.nn.Parameter(made.float())
    return made


def launch():
    """A kernel and its arguments; what the host's part refuses raises."""
    match draw.randrange(4):
        case 0:
            arguments = [
                tensor(1),
                tensor(1),
                tensor(1),
                draw.choice(NUMBERS),
                draw.choice(NUMBERS),
            ]
            return add, [*arguments, draw.choice([16, 64, 128, 100])]
        case 1:
            base = tensor(1, 2)
            shape = draw.choice([base.shape, (64, 64), (0, 8), (1 << 33, 16)])
            strides = draw.choice([base.stride(), (16, 1), (17, 1), (-16, 1)])
            made = TensorDescriptor(base, list(shape), list(strides), [16, 16])
            made.padding, made.round_f32_to_tf32 = draw.choice(["nan", "zero"]), draw.random() < 0.2
            return by_host, [
                made,
                tensor(1),
                draw.choice([0, -5, 999]),
                draw.choice([0, 8, -5]),
                16,
            ]
        case 2:
            sizes = draw.choice(NUMBERS), draw.choice(NUMBERS)
            return by_kernel, [tensor(1, 2), tensor(1), *sizes, draw.choice([0, -5, 999]), 8, 16]
    x = tensor(1)
    addresses = [draw.choice([x.data_ptr() + draw.choice([0, -4, 2, 1 << 40]), 0, -1])] * 4
    if draw.random() < 0.3:
        del x
    return by_table, [torch.tensor(addresses), tensor(1), draw.choice(NUMBERS), 64]


triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
ended = Counter()
for n in range(int(sys.argv[2])):
    options = {
        "num_warps": draw.choice([1, 3, 4, 32, 64]),
        "num_ctas": draw.choice([1, 1, 1, 2, 3]),
    }
    try:
        kernel, (*arguments, block) = launch()
        grid = draw.choice(GRIDS)
    except Exception:
        ended["no launch"] += 1
        continue
    try:
        kernel[grid](*arguments, BLOCK=block, **options)
        ended["ran"] += 1
    except Error as error:
        ended["internal" if "internal" in str(error) else "refused"] += 1
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if "/tcir/" in f.filename and f.name != "__torch_function__"]
        ended["wrong" if ours else "Triton"] += 1
        if ours:
            print(n, kernel.__name__, arguments, grid, options, repr(error), ours[-1])
print(dict(ended))
sys.exit(ended["wrong"] + ended["internal"] > 0)
