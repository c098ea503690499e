// cuda::atomic wait and notify between two warps.
//
// class:      cuda
// launch:     grid=1, block=64
// arg y:      undefined(1, np.int32)
// expect y:   31
// silicon:    clean
// isa:        clean

#include <cuda/atomic>
extern "C" __global__ void wake(int *y) {
  __shared__ int state, data;
  if (threadIdx.x == 0) state = 0;
  __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_block> a(state);
  if (threadIdx.x == 0) {
    data = 31;
    a.store(1, cuda::memory_order_release);
    a.notify_all();
  } else if (threadIdx.x == 32) {
    a.wait(0, cuda::memory_order_acquire);
    *y = data;
  }
}
