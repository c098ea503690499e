"""tl.dot on tensor memory: pointers, host descriptors, descriptors that the kernel makes; bf16."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def by_pointers(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    sums = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        at = start + tl.arange(0, K)
        left = tl.load(a + rows[:, None] * k + at, mask=(rows[:, None] < m) & (at < k), other=0.0)
        right = tl.load(
            b + at[:, None] * n + columns, mask=(at[:, None] < k) & (columns < n), other=0.0
        )
        sums = tl.dot(left, right, sums)
    inside = (rows[:, None] < m) & (columns < n)
    tl.store(c + rows[:, None] * n + columns, sums, mask=inside)


@triton.jit
def by_descriptors(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    sums = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        sums = tl.dot(a.load([row, start]), b.load([start, column]), sums)
    c.store([row, column], sums)


@triton.jit
def by_own_descriptors(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    sums = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        sums = tl.dot(left.load([row, start]), right.load([start, column]), sums)
    out.store([row, column], sums)


DEVICE = triton.runtime.driver.active.get_active_torch_device()
m, n, k, tile = 200, 136, 96, {"M": 128, "N": 64, "K": 32}
torch.manual_seed(0)
a = torch.randint(-4, 5, (m, k), device=DEVICE).to(torch.bfloat16)
b = torch.randint(-4, 5, (k, n), device=DEVICE).to(torch.bfloat16)
want = a.float() @ b.float()
grid = (triton.cdiv(m, tile["M"]), triton.cdiv(n, tile["N"]))

c = torch.empty((m, n), device=DEVICE)
by_pointers[grid](a, b, c, m, n, k, **tile)
assert torch.equal(c, want)

c = torch.empty((m, n), device=DEVICE)
blocks = [[tile["M"], tile["K"]], [tile["K"], tile["N"]], [tile["M"], tile["N"]]]
given = [TensorDescriptor.from_tensor(t, block) for t, block in zip((a, b, c), blocks)]
by_descriptors[grid](*given, k, **tile)
assert torch.equal(c, want)

c = torch.empty((m, n), device=DEVICE)
triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device=DEVICE))
by_own_descriptors[grid](a, b, c, m, n, k, **tile)
assert torch.equal(c, want)
print("right")
