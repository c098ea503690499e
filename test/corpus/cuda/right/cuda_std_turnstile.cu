// Blocks add floats in the order of their numbers: acquire, add, release.
//
// class:      cuda
// launch:     grid=4, block=32
// arg turn:   np.zeros(1, np.int32)
// arg sum:    np.zeros(32, np.float32)
// expect turn: 4
// expect sum: 10
// silicon:    clean
// isa:        clean

#include <cuda/atomic>
extern "C" __global__ void add(int *turn, float *sum) {
  cuda::atomic_ref<int, cuda::thread_scope_device> t(*turn);
  if (threadIdx.x == 0)
    while (t.load(cuda::memory_order_acquire) != blockIdx.x) {}
  __syncthreads();
  sum[threadIdx.x] += blockIdx.x + 1;
  __syncthreads();
  if (threadIdx.x == 0) t.store(blockIdx.x + 1, cuda::memory_order_release);
}
