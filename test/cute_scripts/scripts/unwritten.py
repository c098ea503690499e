"""Memory of torch and of cudaMalloc that nobody wrote; with ``zeros`` somebody did."""

import sys

import cutlass
import torch
from cuda.bindings import runtime
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
error, address = runtime.cudaMalloc(256)
if zeros:
    runtime.cudaMemset(address, 0, 256)
from_pointer(
    make_ptr(cutlass.Float32, address, cute.AddressSpace.gmem, assumed_align=4), from_dlpack(y)
)
