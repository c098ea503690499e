// cuda::atomic_ref of block and of device scope, relaxed: counts need no order.
//
// class:      cuda
// launch:     grid=2, block=64
// arg x:      (np.arange(128) * 11 % 7).astype(np.int32)
// arg bins:   np.zeros(8, np.int32)
// expect bins: np.bincount(x, minlength=8)
// silicon:    clean
// isa:        clean

#include <cuda/atomic>
extern "C" __global__ void histogram(const int *x, int *bins) {
  __shared__ int s[8];
  if (threadIdx.x < 8) s[threadIdx.x] = 0;
  __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_block> bin(s[x[blockIdx.x * 64 + threadIdx.x]]);
  bin.fetch_add(1, cuda::memory_order_relaxed);
  __syncthreads();
  if (threadIdx.x < 8) {
    cuda::atomic_ref<int, cuda::thread_scope_device> all(bins[threadIdx.x]);
    all.fetch_add(s[threadIdx.x], cuda::memory_order_relaxed);
  }
}
