"""What a kernel or a script can do wrong, by its argument."""

import sys

import cutlass
import numpy as np
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def fill(out: cute.Tensor, last: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    out[thread + last] = thread


@cute.jit
def launch(out: cute.Tensor, last: cutlass.Int32):
    fill(out, last).launch(grid=(1, 1, 1), block=(64, 1, 1))


@cute.jit
def together(out: cute.Tensor, ctas: cutlass.Constexpr):
    fill(out, 0).launch(grid=(ctas, 1, 1), block=(64, 1, 1), cooperative=True)


@cute.jit
def unknown(out: cute.Tensor):
    out[0] = nothing  # noqa: F821


what = sys.argv[1]
out = np.zeros(64, np.int32)
if what == "right":
    launch(from_dlpack(out), 0)
    assert (out == np.arange(64)).all()
elif what == "outside":
    launch(from_dlpack(out), 1)
elif what == "together":
    try:
        together(from_dlpack(out), 5000)
    except cutlass.cutlass_dsl.DSLCudaRuntimeError as error:
        assert error.error_code == 720  # cudaErrorCooperativeLaunchTooLarge
    together(from_dlpack(out), 1)
    assert (out == np.arange(64)).all()
elif what == "too many":
    together(from_dlpack(out), 5000)
elif what == "driver":
    import cuda.bindings.driver as cuda

    cuda.cuInit(0)
    cuda.cuGraphCreate(0)
elif what == "dsl":
    unknown(from_dlpack(out))
elif what == "map":  # its host code cannot go on, and has no line to say so
    import map_of_nothing

    map_of_nothing.run()
elif what == "own":
    raise ValueError("mine")
elif what == "exit":
    sys.exit(7)
