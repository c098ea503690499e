"""CuTe DSL: cp.async, ldmatrix and mma.sync."""

from collections.abc import Callable
from typing import Any

import cutlass
from cutlass import cute
from cutlass.cute.nvgpu import cpasync, warp
from cutlass.cute.runtime import make_fake_compact_tensor

F16, F32 = cutlass.Float16, cutlass.Float32
M, N, K = 64, 64, 64


@cute.kernel
def _copy(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    smem = cutlass.utils.SmemAllocator()
    tile = smem.allocate_tensor(F32, cute.make_layout(512), 16)
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), F32, num_bits_per_copy=128)
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(128), cute.make_layout(4))
    mine = tiled.get_slice(thread)
    cute.copy(tiled, mine.partition_S(x), mine.partition_D(tile))
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    for n in cutlass.range_constexpr(4):
        y[n * 128 + thread] = tile[511 - n * 128 - thread]


@cute.jit
def _copy_host(x: cute.Tensor, y: cute.Tensor):
    _copy(x, y).launch(grid=[1, 1, 1], block=[128, 1, 1])


def _vector(n: int) -> Any:
    return make_fake_compact_tensor(F32, (n,), stride_order=(0,), assumed_align=16)


def async_reversal() -> Any:
    return cute.compile(
        _copy_host, _vector(512), _vector(512), options="--gpu-arch sm_100a --keep-ptx"
    )


@cute.kernel
def _matmul(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma):
    thread, _, _ = cute.arch.thread_idx()
    smem = cutlass.utils.SmemAllocator()
    sa = smem.allocate_tensor(F16, cute.make_layout((M, K), stride=(K + 8, 1)), 16)
    sb = smem.allocate_tensor(F16, cute.make_layout((N, K), stride=(K + 8, 1)), 16)
    for n in cutlass.range(M * K // 128):
        i = n * 128 + thread
        sa[i // K, i % K] = a[i // K, i % K]
        sb[i // K, i % K] = b[i // K, i % K]
    cute.arch.sync_threads()
    part = mma.get_slice(thread)
    ra, rb = part.make_fragment_A(part.partition_A(sa)), part.make_fragment_B(part.partition_B(sb))
    out = part.partition_C(c)
    acc = cute.make_rmem_tensor(out.shape, F32)
    acc.fill(0.0)
    load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), F16)
    copy_a, copy_b = cute.make_tiled_copy_A(load, mma), cute.make_tiled_copy_B(load, mma)
    mine_a, mine_b = copy_a.get_slice(thread), copy_b.get_slice(thread)
    cute.copy(copy_a, mine_a.partition_S(sa), mine_a.retile(ra))
    cute.copy(copy_b, mine_b.partition_S(sb), mine_b.retile(rb))
    cute.gemm(mma, acc, ra, rb, acc)
    cute.autovec_copy(acc, out)


@cute.jit
def _matmul_host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    op = warp.MmaF16BF16Op(F16, F32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
    _matmul(a, b, c, mma).launch(grid=[1, 1, 1], block=[128, 1, 1])


def matmul_mma_sync() -> Any:
    def matrix(dtype: Any, rows: int, columns: int) -> Any:
        return make_fake_compact_tensor(
            dtype, (rows, columns), stride_order=(1, 0), assumed_align=16
        )

    options = "--gpu-arch sm_100a --keep-ptx"
    return cute.compile(
        _matmul_host, matrix(F16, M, K), matrix(F16, N, K), matrix(F32, M, N), options=options
    )


KERNELS: list[tuple[str, Callable[[], Any]]] = [
    ("async_reversal", async_reversal),
    ("matmul_mma_sync", matmul_mma_sync),
]
