"""Cooperative launches: one that fits, and one with more programs than can run at a time."""

import torch
import triton
import triton.language as tl


@triton.jit
def fill(out):
    tl.store(out + tl.program_id(0), tl.program_id(0))


x = torch.full((8,), -1, dtype=torch.int32)
fill[(8,)](x, launch_cooperative_grid=True)
assert torch.equal(x, torch.arange(8, dtype=torch.int32))
fill[(5000,)](x, launch_cooperative_grid=True)
