"""TileLang: a matrix product of 128 x 128 x 64 in f16, its output allocated by TileLang."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def product(m, n, k, tile=64):
    @T.prim_func
    def main(
        a: T.Tensor((m, k), "float16"),
        b: T.Tensor((k, n), "float16"),
        c: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(n // tile, m // tile, threads=128) as (x, y):
            left = T.alloc_shared((tile, 32), "float16")
            right = T.alloc_shared((32, tile), "float16")
            total = T.alloc_fragment((tile, tile), "float32")
            T.clear(total)
            for step in T.Pipelined(k // 32, num_stages=2):
                T.copy(a[y * tile, step * 32], left)
                T.copy(b[step * 32, x * tile], right)
                T.gemm(left, right, total)
            T.copy(total, c[y * tile, x * tile])

    return main


a, b = (torch.randint(-2, 3, shape, device="cuda").half() for shape in ((128, 64), (64, 128)))
c = product(128, 128, 64)(a, b)
print("right" if torch.equal(c, a.float() @ b.float()) else "wrong")
