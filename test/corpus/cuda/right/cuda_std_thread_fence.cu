// Message passing with relaxed accesses and cuda::atomic_thread_fence on both sides.
//
// class:      cuda
// launch:     grid=2, block=32
// arg data:   undefined(32, np.int32)
// arg flag:   np.zeros(32, np.int32)
// arg out:    undefined(32, np.int32)
// expect data: np.arange(32) - 5
// expect flag: 1
// expect out: np.arange(32) - 5
// silicon:    clean
// isa:        clean

#include <cuda/atomic>
extern "C" __global__ void pass(int *data, int *flag, int *out) {
  int t = threadIdx.x;
  cuda::atomic_ref<int, cuda::thread_scope_device> f(flag[t]);
  if (blockIdx.x == 0) {
    data[t] = t - 5;
    cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
    f.store(1, cuda::memory_order_relaxed);
  } else {
    while (f.load(cuda::memory_order_relaxed) == 0) {}
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
    out[t] = data[t];
  }
}
