"""A matrix product in Triton for sm_100a, compiled without a GPU, for `compile_time`."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """TMA loads, tcgen05 mma, warp-specialised loop: the same structure as ours."""
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=True):
        acc = tl.dot(a.load([m, k]), b.load([k, n]), acc)
    c.store([m, n], acc)


def compile_once() -> Any:
    """From source to cubin; the cache is bypassed by the caller's environment."""
    pointers = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}
    sizes = {"M": "i32", "N": "i32", "K": "i32"}
    tile = {"BM": 128, "BN": 128, "BK": 64}
    signature = {**pointers, **sizes, **dict.fromkeys(tile, "constexpr")}
    source = ASTSource(fn=matmul, signature=signature, constexprs=tile)
    options = {"num_warps": 4, "num_stages": 4}
    return triton.compile(source, target=GPUTarget("cuda", 100, 32), options=options)
