"""Memory of torch and numpy that nobody wrote: ``unwritten.py LAST`` leaves so many elements."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import triton
import triton.language as tl

LAST = int(sys.argv[1])
N = 64 - LAST


@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def total(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(x + i, 1.0)


def empty(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="cuda")


def view():
    x = empty(8, 16)
    x[:, : 16 - LAST] = 3
    return x


def random():
    return empty(64, dtype=torch.uint8)[:N].random_()._base


def through_numpy():
    x = empty(16, 64, dtype=torch.uint8)
    x[:, 48:] = 0  # noise is told from values by rows of eight bytes and more
    x.numpy()[:, : 48 - 8 * LAST] = np.random.default_rng(0).integers(0, 256, (16, 48 - 8 * LAST))
    return x


def out():
    x = torch.empty_like(torch.ones(64, device="cuda"))
    torch.ones(N, out=x[:N])
    return x


def copied():
    y, x = empty(64), empty(64)
    y[:N].fill_(2)
    return x.copy_(y)


def grown():
    return torch.ones(N, device="cuda").resize_(64)


def transposed():
    x = empty(8, 8)
    x.t()[: 8 - LAST] = 5
    return x


def indexed():
    return empty(64).index_fill_(0, torch.arange(64 - 4 * LAST), 1.0)


def layer():
    x = torch.nn.Linear(8, 8, device="cuda").weight.detach()
    return x if LAST == 0 else torch.empty_like(x)


def again():
    torch.full((64,), 7.0, device="cuda")
    return empty(64) if LAST else torch.zeros(64, device="cuda")


def of_numpy():
    x = np.empty((16, 16), np.float32)
    x[: 16 - LAST] = 1
    return torch.from_numpy(x).cuda()


def thread():
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(view).result()


cases = (
    view, random, through_numpy, of_numpy, out, copied, grown, transposed, indexed, layer, again,
    thread,
)  # fmt: skip
for case in cases:
    x = case()
    n = x.untyped_storage().nbytes() // x.element_size()
    print(case.__name__, flush=True)
    copy[(1,)](x, torch.zeros(n, dtype=x.dtype, device="cuda"), n, triton.next_power_of_2(n))
print("atomics", flush=True)
x = empty(64) if LAST else empty(64).zero_()
total[(1,)](x, 64)
print("partly", flush=True)
y = empty(64)
copy[(1,)](torch.ones(64, device="cuda"), y, N, 64)
copy[(1,)](y, empty(64), 64, 64)
