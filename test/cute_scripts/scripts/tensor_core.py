"""A matmul by TMA and tcgen05 with numpy arrays: the host code encodes the tensor maps."""

import sys
from pathlib import Path

import numpy as np
from cutlass.cute.runtime import from_dlpack

sys.path.insert(0, str(Path(__file__).parents[3] / "peers"))
import cute_tensor_core as kernels

rng = np.random.default_rng(1)
a, b = (
    rng.integers(1, 5, (rows, kernels.K)).astype(np.float16) for rows in (kernels.M, 2 * kernels.N)
)
c = np.zeros((kernels.M, 2 * kernels.N), np.float16)
kernels._matmul_host(*(from_dlpack(x, assumed_align=16) for x in (a, b, c)))
want = a.astype(float) @ b.astype(float).T
print("right" if (c == want.astype(np.float16)).all() else "wrong")
