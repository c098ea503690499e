"""What profilers hook into, clusters, and printing from the device."""

import torch
import triton
import triton.language as tl


@triton.jit
def report(x, BLOCK: tl.constexpr):
    tl.device_print("program", tl.program_id(0))
    tl.store(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(0))


seen = []
triton.knobs.runtime.launch_enter_hook.add(lambda said: seen.append(("enter", said.get()["name"])))
triton.knobs.runtime.launch_exit_hook.add(lambda said: seen.append(("exit", said.get()["name"])))
x = torch.full((96,), 7, dtype=torch.int32, device="cuda")
report[(2,)](x, BLOCK=32)
report[(0,)](x[64:], BLOCK=32)
assert x.reshape(3, 32).unique(dim=1).flatten().tolist() == [0, 1, 7]
assert seen == [("enter", "report"), ("exit", "report")] * 2, seen
