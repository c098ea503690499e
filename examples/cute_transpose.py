"""A CuTe DSL kernel, a transposition through shared memory, that runs without a GPU.

python -m tcir.cute examples/cute_transpose.py
python -m tcir.cute examples/cute_transpose.py --unsynchronised    # the barrier is left out
"""

import sys

import cutlass
import numpy as np
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

TILE = 32


@cute.kernel
def transpose(x: cute.Tensor, y: cute.Tensor, synchronised: cutlass.Constexpr):
    column, row, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    layout = cute.make_layout((TILE, TILE), stride=(TILE + 1, 1))
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, layout)
    tile[row, column] = x[by * TILE + row, bx * TILE + column]
    if cutlass.const_expr(synchronised):
        cute.arch.sync_threads()
    y[bx * TILE + row, by * TILE + column] = tile[column, row]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, synchronised: cutlass.Constexpr):
    grid = (x.shape[1] // TILE, x.shape[0] // TILE, 1)
    transpose(x, y, synchronised).launch(grid=grid, block=(TILE, TILE, 1))


if __name__ == "__main__":
    x = np.arange(64 * 96, dtype=np.float32).reshape(64, 96) + 1
    y = np.zeros((96, 64), np.float32)
    launch(from_dlpack(x), from_dlpack(y), "--unsynchronised" not in sys.argv)
    print("right" if (y == x.T).all() else "wrong")
