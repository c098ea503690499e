"""A Triton matmul with masks, compared with torch.

    python -m tcir.triton examples/triton_matmul.py
    python -m tcir.triton examples/triton_matmul.py --unmasked    # stores beyond the end of C

Nothing in it knows tcir: with a GPU, python examples/triton_matmul.py does the same.
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def matmul(
    a, b, c, m, n, k, MASKED: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):
    """One tile of M x N of C = A B, row-major; m, n and k need not be multiples of the tile's."""
    rows = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    columns = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        across = start + tl.arange(0, K)[None, :]
        down = start + tl.arange(0, K)[:, None]
        left = tl.load(a + rows * k + across, (rows < m) & (across < k), 0.0)
        right = tl.load(b + down * n + columns, (down < k) & (columns < n), 0.0)
        total += tl.dot(left, right)
    inside = (rows < m) & (columns < n)
    tl.store(c + rows * n + columns, total, inside if MASKED else None)


m, n, k = 200, 136, 328
a = torch.randn(m, k, device="cuda", dtype=torch.float16)
b = torch.randn(k, n, device="cuda", dtype=torch.float16)
c = torch.empty(m, n, device="cuda", dtype=torch.float32)
grid = (triton.cdiv(m, 128), triton.cdiv(n, 64))
matmul[grid](a, b, c, m, n, k, "--unmasked" not in sys.argv, 128, 64, 64)
torch.testing.assert_close(c, a.float() @ b.float(), atol=1e-2, rtol=1e-2)
print("right")
