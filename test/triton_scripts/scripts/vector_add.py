"""A script as its author would run it on a GPU: it names the device "cuda"."""

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256})], key=["n"])
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


n = 1000
x, y = torch.rand(n, device="cuda"), torch.rand(n).cuda()
out = torch.empty_like(x)
assert x.is_cuda and torch.cuda.get_device_capability() == (10, 0)
add[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)
torch.cuda.synchronize()
assert torch.equal(out, x + y)
print("right")
