import torch
import triton
import triton.language as tl


@triton.jit
def fill(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, 1024, mask=at < n)


n = 1024 * 1000
x = torch.zeros(n, dtype=torch.int32, device="cuda")
fill[(triton.cdiv(n, 256),)](x, n, BLOCK=256)
assert (x == 1024).all()
print(n)
