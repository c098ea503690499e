import torch
import triton
import triton.language as tl


@triton.autotune(
    [triton.Config({"TIMES": 64}), triton.Config({"TIMES": 1})], key=["n"], reset_to_zero=["x"]
)
@triton.jit
def add(x, n, TIMES: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for _ in range(TIMES):
        tl.store(x + at, tl.load(x + at, mask=at < n) + 1 / TIMES, mask=at < n)


x = torch.zeros(1000, device="cuda")
add[(4,)](x, 1000, BLOCK=256)
assert (x == 1).all()
print(add.best_config.kwargs["TIMES"])
