// Included before each file of a PyTorch extension: its tensors are in the CPU's memory, and what
// asks for tensors, devices and streams of a GPU gets these.
#pragma once
#include <torch/types.h>
#include <ATen/core/interned_strings.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
namespace c10::cuda {
struct OneDevice {  // nothing changes the only device
  template <typename... T> OneDevice(T &&...) {}
  template <typename... T> void set_device(T &&...) {}
  template <typename... T> void set_index(T &&...) {}
};
}  // namespace c10::cuda
namespace at::cuda {
using c10::cuda::OneDevice;
}
#define is_cuda() is_cpu()
#define kCUDA kCPU
#define CUDAGuard OneDevice
#define OptionalCUDAGuard OneDevice
