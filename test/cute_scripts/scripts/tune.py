"""An autotuner of the number of threads: a kernel that it tried has written its result."""

import cutlass
import cutlass.testing
import numpy as np
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def number(out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
    out[block * threads + thread] = block * threads + thread


@cute.jit
def launch(out: cute.Tensor, threads: cutlass.Constexpr):
    number(out).launch(grid=(128 // threads, 1, 1), block=(threads, 1, 1))


def compiled(out, threads):
    function = cute.compile(launch, out, threads)
    return lambda: function(out)


out = np.zeros(128, np.int32)
best = cutlass.testing.tune(
    compiled,
    params_dict={"threads": [32, 128]},
    kernel_arguments=cutlass.testing.JitArguments(from_dlpack(out)),
)
assert best["threads"] in (32, 128) and (out == np.arange(128)).all()
print("right")
