"""torch.utils.cpp_extension.load_inline: a CUDA kernel for tensors, launched by C++."""

import torch
from torch.utils.cpp_extension import load_inline

CUDA = """
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
template <typename T> __global__ void square(const T *x, T *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i];
}
torch::Tensor fourth_power(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda() && x.device().is_cuda(), "x must be a CUDA tensor");
  const at::cuda::OptionalCUDAGuard guard(device_of(x));
  auto y = torch::empty_like(x);
  auto z = torch::empty({x.numel()}, torch::TensorOptions().dtype(x.dtype()).device(torch::kCUDA));
  int n = x.numel();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "square", [&] {
    auto stream = at::cuda::getCurrentCUDAStream();
    const scalar_t *in = x.data_ptr<scalar_t>();
    square<scalar_t><<<(n + 127) / 128, 128, 0, stream>>>(in, y.data_ptr<scalar_t>(), n);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    square<scalar_t><<<(n + 127) / 128, 128>>>(y.data_ptr<scalar_t>(), z.data_ptr<scalar_t>(), n);
  });
  return z;
}
"""
module = load_inline(
    name="fourth_powers",
    cpp_sources="torch::Tensor fourth_power(torch::Tensor x);",
    cuda_sources=CUDA,
    functions=["fourth_power"],
)
x = torch.arange(300, device="cuda", dtype=torch.float32) / 8
y = module.fourth_power(x[10:])
print("right" if torch.equal(y, (x * x * (x * x))[10:]) and y.is_cuda else "wrong")
