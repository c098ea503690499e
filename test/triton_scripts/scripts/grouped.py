"""Products of several sizes in one launch: addresses, sizes and strides lie in tensors."""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def grouped(As, Bs, Cs, sizes, count, T: tl.constexpr):
    for g in range(count):
        m, n, k = tl.load(sizes + 3 * g), tl.load(sizes + 3 * g + 1), tl.load(sizes + 3 * g + 2)
        a = tl.load(As + g).to(tl.pointer_type(tl.float16))
        b = tl.load(Bs + g).to(tl.pointer_type(tl.float16))
        c = tl.load(Cs + g).to(tl.pointer_type(tl.float32))
        across = tl.cdiv(n, T)
        for tile in range(tl.program_id(0), tl.cdiv(m, T) * across, tl.num_programs(0)):
            rows = tile // across * T + tl.arange(0, T)[:, None]
            columns = tile % across * T + tl.arange(0, T)[None, :]
            sums = tl.zeros((T, T), tl.float32)
            for start in range(0, k, T):
                down, along = start + tl.arange(0, T)[:, None], start + tl.arange(0, T)[None, :]
                left = tl.load(a + rows * k + along, (rows < m) & (along < k), 0.0)
                right = tl.load(b + down * n + columns, (down < k) & (columns < n), 0.0)
                sums = tl.dot(left, right, sums)
            tl.store(c + rows * n + columns, sums, (rows < m) & (columns < n))


torch.manual_seed(0)
shapes = [(96, 64, 32), (32, 40, 104), (65, 33, 64)]
A = [torch.randint(-4, 5, (m, k), device="cuda").half() for m, _, k in shapes]
B = [torch.randint(-4, 5, (k, n), device="cuda").half() for _, n, k in shapes]
room = torch.full((65 * 33 + 100,), 7.0, device="cuda")
C = [torch.empty((m, n), device="cuda") for m, n, _ in shapes]
C[2] = room[100:].view(65, 33)  # only its address is taken, and not where its storage begins
if sys.argv[1:] == ["short"]:
    C[1] = torch.empty((31, 40), device="cuda")
if sys.argv[1:] == ["gone"]:
    B[0] = B[0].clone()
tables = [torch.tensor([x.data_ptr() for x in group], device="cuda") for group in (A, B, C)]
want = [(a.float() @ b.float()) for a, b in zip(A, B)]
if sys.argv[1:] == ["gone"]:
    B[0] = None
sizes = torch.tensor(shapes, dtype=torch.int32, device="cuda")
grouped[(4,)](*tables, sizes, len(shapes), T=32)
assert all(map(torch.equal, C, want)) and (room[:100] == 7).all()
print("right")
