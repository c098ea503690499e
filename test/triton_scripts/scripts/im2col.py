"""Gluon: a map of pixels; rows of a strided 3x3 convolution's matrix, with padding."""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor, TensorDescriptorIm2Col


@gluon.jit
def rows(x, out, first, R: gl.constexpr, S: gl.constexpr):
    tile = gl.allocate_shared_memory(x.dtype, x.block_shape, x.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, x.block_type.nbytes)
    tma.async_load_im2col(x, [first, -1, -1, 0], [R, S], bar, tile)
    mbarrier.wait(bar, phase=0)
    tma.async_store(out, [0, 0], tile)
    tma.store_wait(pendings=0)


N, H, W, C, stride = 3, 7, 5, 64, 2
torch.manual_seed(0)
x = torch.randn(N, H, W, C, device="cuda", dtype=torch.float16)
P, Q = (H + 2 - 3) // stride + 1, (W + 2 - 3) // stride + 1
layout = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
pixels = TensorDescriptorIm2Col.from_tensor(
    x,
    [16, C],
    layout,
    element_strides=[1, stride, stride, 1],
    pixel_box_lower_corner=[-1, -1],
    pixel_box_upper_corner=[-1, -1],
)
padded = torch.nn.functional.pad(x, (0, 0, 1, 1, 1, 1))
for r, s in ((0, 0), (1, 2), (2, 1)):
    out = torch.zeros(16, C, device="cuda", dtype=torch.float16)
    to = TensorDescriptor.from_tensor(out, [16, C], layout)
    rows[(1,)](pixels, to, 1, r, s)
    want = padded[1:, r : r + stride * P : stride, s : s + stride * Q : stride].reshape(-1, C)
    assert P * Q < 16 and torch.equal(out, want[:16]), (r, s)
print("right")
