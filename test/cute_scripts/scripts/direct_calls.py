"""A function compiled for TVM FFI from placeholders, called with arrays as they are; its host code
has the driver encode a tensor map. Arguments that it was not compiled for are refused."""

import dataclasses

import cutlass
import cutlass.experimental.cuda as cuda
import numpy as np
from cutlass import cute
from cutlass.cute.runtime import from_dlpack, make_fake_compact_tensor, make_fake_stream
from cutlass.experimental import primitives as prims

COLUMNS, ROWS = 32, 8


@cute.kernel
def load_tile(source: cutlass.GridConstant[cuda.TensorMap], out: cute.Tensor, first: cutlass.Int32):
    tile = cutlass.Array(
        cutlass.Float32, ROWS * COLUMNS, space=cutlass.AddressSpace.smem, alignment=128
    )
    full = cutlass.Array(cutlass.Int64, 1, space=cutlass.AddressSpace.smem)
    thread, _, _ = cute.arch.thread_idx()
    if thread == 0:
        prims.mbarrier_init(full, 1)
    prims.fence_mbarrier_init()
    prims.barrier_cta_sync(0)
    if thread == 0:
        prims.mbarrier_arrive_expect_tx(full, source.global_tx_bytes())
        prims.cp_async_bulk_tensor_shared_cta_global(
            tile, source.get_ptr(), (cutlass.Int32(0), first), full
        )
    while not prims.mbarrier_try_wait_parity(full, cutlass.Int32(0), time_limit=10_000_000):
        pass
    for row in cutlass.range_constexpr(ROWS):
        out[row, thread] = (tile.data_ptr() + (row * COLUMNS + thread)).load()


@cute.jit
def rows_from(source: cute.Tensor, out: cute.Tensor, first: cutlass.Int32, stream):
    tiles = cuda.create_tensor_map_tiled(
        global_address=source.iterator.toint(),
        dtype=cutlass.Float32,
        global_dims=[COLUMNS, source.shape[0]],
        global_strides=[COLUMNS * 4 // 16],
        box_dims=[COLUMNS, ROWS],
        swizzle=cuda.TensorMapSwizzle.none,
    )
    load_tile(tiles, out, first).launch(grid=(1, 1, 1), block=(32, 1, 1), stream=stream)


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    if thread < cute.size(x):
        y[thread] = x[thread] + n


@dataclasses.dataclass
class Pair:
    x: cute.Tensor
    y: cute.Tensor


@cute.jit
def add(pair: Pair, n: cutlass.Int32):
    add_kernel(pair.x, pair.y, n).launch(grid=(1, 1, 1), block=(32, 1, 1))


def refused(call, *words):
    try:
        call()
    except (TypeError, ValueError) as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError(words)


rows = cute.sym_int64(divisibility=8)
compiled = cute.compile(
    rows_from,
    make_fake_compact_tensor(cutlass.Float32, (rows, COLUMNS), stride_order=(1, 0)),
    make_fake_compact_tensor(cutlass.Float32, (ROWS, COLUMNS), stride_order=(1, 0)),
    cutlass.Int32(0),
    make_fake_stream(use_tvm_ffi_env_stream=True),
    options="--enable-tvm-ffi",
)
for size in (16, 24):
    source = np.random.default_rng(size).random((size, COLUMNS), np.float32)
    out = np.zeros((ROWS, COLUMNS), np.float32)
    compiled(source, out, 5)
    assert (out == source[5 : 5 + ROWS]).all()
refused(lambda: compiled(source.astype(np.float64), out, 0), "source: expected elements of Float32")
refused(lambda: compiled(source[:12], out, 0), "source.shape[0]: expected a multiple of 8, got 12")
refused(lambda: compiled(source, out.T, 0), "out.shape[0]: expected 8, got 32")
refused(lambda: compiled(source[:, ::-1], out, 0), "source.stride[1]: expected 1, got -1")
refused(lambda: compiled(source, out), "first")

n = cute.sym_int32()
fake = make_fake_compact_tensor(cutlass.Int32, (n,)), make_fake_compact_tensor(cutlass.Int32, (n,))
both = cute.compile(add, Pair(*fake), 1, options="--enable-tvm-ffi")
x, y = np.arange(20, dtype=np.int32), np.zeros(20, np.int32)
both(Pair(x, y), 7)
assert (y == x + 7).all()
refused(lambda: both(Pair(x, y[:8]), 7), "pair.y.shape[0]: expected 20, the size of its symbol")
exact = cute.compile[cute.EnableTVMFFI](add, Pair(from_dlpack(x), from_dlpack(y)), 1)
exact(Pair(x, y), 9)
assert (y == x + 9).all()
print("right")
