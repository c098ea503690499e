"""A script as for a GPU: torch on "cuda", a stream, a compiled kernel, print, a benchmark."""

import cuda.bindings.driver as cuda
import cutlass
import torch
from cutlass import cute, testing
from cutlass.cute.runtime import from_dlpack, make_ptr


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, other: cute.Pointer, factor: cutlass.Float32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    dim, _, _ = cute.arch.block_dim()
    i = block * dim + thread
    if i == 0:
        cute.printf("factor %f", factor)
    more = cute.make_tensor(other, cute.make_layout(cute.size(x)))
    if i < cute.size(x):
        y[i] = x[i] * factor + more[i]


@cute.jit
def scale(
    x: cute.Tensor,
    y: cute.Tensor,
    other: cute.Pointer,
    factor: cutlass.Float32,
    stream: cuda.CUstream,
):
    blocks = cute.ceil_div(cute.size(x), 128)
    scale_kernel(x, y, other, factor).launch(grid=(blocks, 1, 1), block=(128, 1, 1), stream=stream)


assert torch.cuda.is_available()
x = torch.linspace(1, 2, 300, device="cuda")
y, z = torch.zeros_like(x), torch.arange(300, device="cuda", dtype=torch.float32)
stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
other = make_ptr(cutlass.Float32, z.data_ptr(), cute.AddressSpace.gmem, assumed_align=4)
args = (from_dlpack(x), from_dlpack(y), other, cutlass.Float32(0.5), stream)
compiled = cute.compile(scale, *args)
for _ in range(2):
    compiled(*args)
torch.cuda.synchronize()
print("right" if torch.equal(y, x * 0.5 + z) else "wrong")
print(cutlass.utils.HardwareInfo().get_device_multiprocessor_count())
us = testing.benchmark(compiled, kernel_arguments=testing.JitArguments(*args))
print("modelled" if 0.1 < us < 100 else us)
