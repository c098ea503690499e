"""A product on the device of ``--target sm_90a``."""

import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, out):
    rows, columns, inner = tl.arange(0, 64), tl.arange(0, 16), tl.arange(0, 32)
    left = tl.load(a + rows[:, None] * 32 + inner[None, :])
    right = tl.load(b + inner[:, None] * 16 + columns[None, :])
    tl.store(out + rows[:, None] * 16 + columns[None, :], tl.dot(left, right))


assert torch.cuda.get_device_capability() == (9, 0)
assert torch.cuda.get_device_properties(0).name == "simulated H100"
a = torch.randn(64, 32, device="cuda", dtype=torch.float16)
b = torch.randn(32, 16, device="cuda", dtype=torch.float16)
out = torch.empty(64, 16, device="cuda")
kernel = product[(1,)](a, b, out)
assert ".target sm_90a" in kernel.asm["ptx"] and "wgmma.mma_async" in kernel.asm["ptx"]
torch.testing.assert_close(out, a.float() @ b.float())
print("right", torch.cuda.get_device_properties(0).multi_processor_count)
