"""Benchmarks as scripts have them; x is incremented by launches that are executed."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def increment(x, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) + 1)


x = torch.zeros(4096, device="cuda")
increment[(4,)](x, BLOCK=1024)
once = triton.testing.do_bench(lambda: increment[(4,)](x, BLOCK=1024))
three = triton.testing.do_bench(
    lambda: [increment[(4,)](x, BLOCK=1024) for _ in range(3)], quantiles=[0.5, 0.2, 0.8]
)
assert (x == 1).all()  # a benchmark leaves tensors as they are
assert 0 < once < 1 and 3 * once <= three[0] < 12 * once and len(set(three)) == 1, (once, three)
assert math.isnan(triton.testing.do_bench(lambda: x + 1))  # torch's own, of the CPU
assert triton.testing.do_bench(lambda: increment[(4,)](x, BLOCK=1024), return_mode="all") == [once]


@triton.testing.perf_report(
    triton.testing.Benchmark(["n"], [1 << 40], "by", ["triton"], ["Triton"], "sizes", {})
)
def of_a_gpu(n, by):
    raise AssertionError("n is too large for a simulated machine")


of_a_gpu.run(print_data=True)
print("right")
