"""Tensors that a kernel finds in a table of addresses, and one in a table that it finds so."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def add_kernel(table: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    gmem, layout = cute.AddressSpace.gmem, cute.make_layout(64)
    x = cute.make_tensor(cute.make_ptr(cutlass.Float32, table[0], gmem), layout)
    inner = cute.make_tensor(cute.make_ptr(cutlass.Int64, table[1], gmem), cute.make_layout(1))
    other = cute.make_tensor(cute.make_ptr(cutlass.Float32, inner[0], gmem), layout)
    y[thread] = x[thread] + other[thread]


@cute.jit
def add(table: cute.Tensor, y: cute.Tensor):
    add_kernel(table, y).launch(grid=(1, 1, 1), block=(64, 1, 1))


x = torch.linspace(1, 2, 64, device="cuda")
other = torch.arange(64, device="cuda", dtype=torch.float32)
inner = torch.tensor([other.data_ptr()], device="cuda")
table = torch.tensor([x.data_ptr(), inner.data_ptr()], device="cuda")
y = torch.zeros(64, device="cuda")
add(from_dlpack(table), from_dlpack(y))
print("right" if torch.equal(y, x + other) else "wrong")
