"""Memory of torch, numpy, runtime and driver that nobody wrote; with ``zeros`` somebody did."""

import sys

import cutlass
import numpy as np
import torch
from cuda.bindings import driver, runtime
from cutlass import cute
from cutlass.cute.runtime import from_dlpack, make_ptr


@cute.kernel
def copy_kernel(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    y[thread] = x[thread]


@cute.jit
def copy(x: cute.Tensor, y: cute.Tensor):
    copy_kernel(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))


@cute.kernel
def from_pointer_kernel(x: cute.Pointer, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    y[thread] = cute.make_tensor(x, cute.make_layout(64))[thread]


@cute.jit
def from_pointer(x: cute.Pointer, y: cute.Tensor):
    from_pointer_kernel(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))


zeros = sys.argv[-1] == "zeros"
x = (torch.zeros if zeros else torch.empty)(64, device="cuda")
y = torch.empty(64, device="cuda")
copy(from_dlpack(x), from_dlpack(y))
copy(from_dlpack((np.zeros if zeros else np.empty)(64, np.float32)), from_dlpack(y))
_, address = runtime.cudaMalloc(256)
_, pointer = driver.cuMemAlloc(256)
if zeros:
    runtime.cudaMemset(address, 0, 256)
    driver.cuMemsetD32(pointer, 1 << 31, 32)
    driver.cuMemcpyHtoD(int(pointer) + 128, np.arange(32, dtype=np.float32), 128)
for memory in (address, int(pointer)):
    from_pointer(
        make_ptr(cutlass.Float32, memory, cute.AddressSpace.gmem, assumed_align=4), from_dlpack(y)
    )
if zeros:
    back = np.empty(64, np.float32)
    driver.cuMemcpyDtoH(back, pointer, 256)
    assert np.array_equal(y.numpy(), back) and back[33] == 1 and np.signbit(back[:32]).all()
    assert driver.cuMemFree(pointer) == (driver.CUresult.CUDA_SUCCESS,)
    assert driver.cuMemFree(pointer) == (driver.CUresult.CUDA_ERROR_INVALID_VALUE,)
