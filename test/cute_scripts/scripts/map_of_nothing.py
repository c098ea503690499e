"""Host code whose tensor map the driver refuses: no rows."""

import cutlass
import cutlass.experimental.cuda as cuda
import numpy as np
from cutlass import cute
from cutlass.cute.runtime import make_fake_compact_tensor


@cute.kernel
def nothing(tiles: cutlass.GridConstant[cuda.TensorMap]):
    pass


@cute.jit
def host(source: cute.Tensor):
    tiles = cuda.create_tensor_map_tiled(
        global_address=source.iterator.toint(),
        dtype=cutlass.Float32,
        global_dims=[32, source.shape[0]],
        global_strides=[8],
        box_dims=[32, 8],
        swizzle=cuda.TensorMapSwizzle.none,
    )
    nothing(tiles).launch(grid=(1, 1, 1), block=(32, 1, 1))


def run():
    fake = make_fake_compact_tensor(cutlass.Float32, (cute.sym_int64(), 32), stride_order=(1, 0))
    compiled = cute.compile(host, fake, options="--enable-tvm-ffi")
    compiled(np.zeros((8, 32), np.float32)[:0])
